"""The dashboard: pages for people, drawn here and complete without a script."""

from fastapi import FastAPI

from bot.web.pages import events, facts, noticed, overview, status
from bot.web.pages.errors import install_errors
from bot.web.pages.render import static_files


def install(site: FastAPI) -> None:
    """Put the pages, what they are made of, and the words for what went wrong onto the site."""
    for each in (overview, events, facts, noticed, status):
        site.include_router(each.router)
    site.mount("/static", static_files(), name="static")
    install_errors(site)
