"""What people read where something is refused or missing. Programs get the same as JSON."""

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from bot.web.doors import COOKIE
from bot.web.pages.render import LOGIN, render
from bot.web.pages.visit import frame, strange

_PROGRAMS = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")
_TOLD = {401: "web-login-how", 403: "web-refused", 404: "web-missing", 413: "web-too-large", 422: "web-unreadable"}
_NOBODY, _OURS = 401, 500


def install_errors(site: FastAPI) -> None:
    site.add_exception_handler(HTTPException, _refused)
    site.add_exception_handler(RequestValidationError, _unreadable)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if not wants_page(request):
        return await http_exception_handler(request, error)
    return error_page(request, error.status_code)


async def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if not wants_page(request):
        return await request_validation_exception_handler(request, error)
    return error_page(request, 422)


def wants_page(request: Request) -> bool:
    """Say whether a person's browser asks for a page."""
    is_page = not request.url.path.startswith(_PROGRAMS)
    return is_page and "text/html" in request.headers.get("accept", "")


def error_page(request: Request, status: int) -> Response:
    visit = getattr(request.state, "visit", None)
    around = strange(request) if visit is None or status == _NOBODY else frame(visit)
    say = around["say"]
    said = say(_TOLD.get(status, "web-bug" if status >= _OURS else "web-refused"))
    if status == _NOBODY and COOKIE in request.cookies:
        said = f"{say('web-session-over')} {said}"
    home = around["places"][0][0] if around["places"] else LOGIN
    return render("error.html", {**around, "said": said, "home": home, "is_out": status == _NOBODY}, status)
