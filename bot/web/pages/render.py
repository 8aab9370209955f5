"""Templates and the files that pages load. Whatever is put into a page is escaped; a page loads nothing from elsewhere.

Rule: Jinja is known to this module alone.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

LOGIN = "/login"
_HERE = Path(__file__).parents[1]
_STATIC = _HERE / "static"
_KEPT = "public, max-age=31536000, immutable"


class _Files(StaticFiles):
    """Their addresses change with their content: a browser need not ask again."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if scope["query_string"]:
            response.headers["cache-control"] = _KEPT
        return response


def static_files() -> StaticFiles:
    return _Files(directory=_STATIC)


@cache
def static(name: str) -> str:
    """The address of a file, with a mark of its content."""
    return f"/static/{name}?v={hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:12]}"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["static"] = static  # pyright: ignore[reportArgumentType]
    return made


_templates = _environment()


def render(template: str, values: dict[str, Any], status: int = 200) -> HTMLResponse:
    return HTMLResponse(_templates.get_template(template).render(values), status_code=status)
