"""From the chat into the browser: a link that is good once, then a session.

Rule: opening the link changes nothing, for whoever previews links in a chat opens them too; its button logs in.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from bot.web.doors import COOKIE, Visitor, form, need_person
from bot.web.inside import Inside, inside
from bot.web.pages.render import LOGIN, render
from bot.web.pages.visit import strange
from memory.instants import to_ms
from memory.storage import tokens

HOME = "/"
"""Where a login leads."""
LINK_KEY = "key"

router = APIRouter(include_in_schema=False)


@router.get(LOGIN)
async def offer(request: Request, key: str = "") -> Response:
    """The page with the button."""
    return _page(request, "web-login-how", key=key)


@router.post(LOGIN)
async def log_in(
    request: Request, site: Annotated[Inside, Depends(inside)], given: Annotated[dict[str, str], Depends(form)]
) -> Response:
    """Use the link up. 401 for one that was used, is too old or never was."""
    now = to_ms(site.clock.now())
    async with site.database.write() as connection:
        opened = await tokens.log_in(connection, given.get(LINK_KEY, ""), now, key=site.session_key)
    if opened is None:
        return _page(request, "web-login-over", status=401)
    response = RedirectResponse(HOME, status_code=303)
    response.set_cookie(
        COOKIE,
        opened[1],
        max_age=tokens.SESSION_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.post("/logout")
async def log_out(
    request: Request, site: Annotated[Inside, Depends(inside)], _who: Annotated[Visitor, Depends(need_person)]
) -> Response:
    """End this browser's session. The form carries `form_key`, as all forms do."""
    async with site.database.write() as connection:
        await tokens.log_out(connection, request.cookies.get(COOKIE, ""), key=site.session_key)
    response = RedirectResponse(LOGIN, status_code=303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _page(request: Request, said: str, *, key: str = "", status: int = 200) -> HTMLResponse:
    around = strange(request)
    values = {**around, "key": key, "key_name": LINK_KEY, "said": around["say"](said)}
    return render("login.html", values, status)
