"""Who looks at a page, in which language, and how a page is drawn for them."""

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from bot.web.doors import FORM_KEY, Visitor, need_person
from bot.web.inside import Inside, inside
from bot.web.pages.render import render
from bot.web.pages.words import Words
from handlers.locales import nearest, phrases
from memory.scope import VIEW_TELEMETRY, Audience
from memory.types import User

PER_PAGE = 20
MOST = 2**53
"""No id and no page is beyond it; SQLite's own end is further on."""


@dataclass(frozen=True, slots=True)
class Visit:
    """`words` are in the reader's own language and on their clock, `site_words` on the clock of the tenant."""

    site: Inside
    visitor: Visitor
    user: User
    words: Words
    site_words: Words
    path: str

    @property
    def audience(self) -> Audience:
        """A browser's session is private: what is shown is what this person sees when alone with the bot."""
        return Audience(self.user.id, 0, is_private=True)

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return render(template, {**frame(self), **values}, status)

    def go(self, path: str, **query: object) -> RedirectResponse:
        """Away from a form, so that a reload does not send it again."""
        return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, status_code=303)


async def visit(
    request: Request, site: Annotated[Inside, Depends(inside)], visitor: Annotated[Visitor, Depends(need_person)]
) -> Visit:
    """A dependency: the person at a page. 401 and 403 as of `need_person`."""
    user = visitor.user
    assert user is not None
    say = phrases(user.reads)
    ours = ZoneInfo(site.settings.tenant.timezone)
    own = ZoneInfo(user.timezone) if user.timezone else ours
    request.state.visit = Visit(site, visitor, user, Words(say, own), Words(say, ours), request.url.path)
    return request.state.visit


Visiting = Annotated[Visit, Depends(visit)]


async def may_see_telemetry(visit: Visiting) -> None:
    """A dependency of pages that tell of everybody. Raises 403."""
    if not visit.visitor.may(VIEW_TELEMETRY):
        raise HTTPException(403)


def frame(visit: Visit) -> dict[str, Any]:
    """What every page of somebody shows around itself."""
    say = visit.words.say
    places = [("/memory", say("web-nav-memory"))]
    if visit.visitor.may(VIEW_TELEMETRY):
        seeing = [("/", "overview"), ("/events", "events")]
        places = [(path, say(f"web-nav-{name}")) for path, name in seeing] + places
        places.append(("/status", say("web-nav-status")))
    return {
        "say": say,
        "w": visit.words,
        "site_w": visit.site_words,
        "places": places,
        "here": _place(visit.path),
        "who": visit.user.name,
        "form_key_name": FORM_KEY,
        "form_key": visit.visitor.form_key,
        "bot": visit.site.settings.tenant.name,
    }


def strange(request: Request) -> dict[str, Any]:
    """The same where nobody is known yet: in the language of the browser."""
    wished = request.headers.get("accept-language", "en").split(",")[0].split(";")[0].strip()
    return {"say": phrases(nearest(wished or "en")), "places": [], "here": "", "who": "", "bot": "Merk"}


def pages(total: int, size: int = PER_PAGE) -> int:
    """How many there are; at least one."""
    return max(-(-total // size), 1)


def blank(value: object) -> object:
    """A field of a form that was left alone."""
    return None if value == "" else value


def _place(path: str) -> str:
    return "/" + path.strip("/").partition("/")[0]
