"""From a part to the content of an event: threads with their fallback, edits, files. Pure."""

from bot.transports.base import Part
from bot.transports.matrix.client import Json
from bot.transports.matrix.render import FALLBACK_CHARACTERS, Body
from handlers.types import Place

HTML = "org.matrix.custom.html"


def message(part: Part, place: Place, last: str) -> Json:
    """A message; `last` is the newest message of its thread, for clients that know no threads."""
    content = _words(part)
    if place.thread:
        content["m.relates_to"] = {
            "rel_type": "m.thread",
            "event_id": place.thread,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": last or place.thread},
        }
    return content


def edit(part: Part, ref: str) -> Json:
    """A message's new words; beside them a beginning for clients that know no edits."""
    new = _words(part)
    said = str(new["body"])
    short = said if len(said) <= FALLBACK_CHARACTERS else f"{said[:FALLBACK_CHARACTERS]} […]"
    return {
        "msgtype": new["msgtype"],
        "body": f"* {short}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": ref},
    }


def reaction(ref: str, mark: str) -> Json:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": ref, "key": mark}}


def _words(part: Part) -> Json:
    body = part.body if isinstance(part.body, Body) else Body(None, "text")
    content: Json = {
        "msgtype": "m.notice" if body.kind == "notice" else "m.text",
        "body": part.plain,
        "m.mentions": {},  # what is quoted pings nobody
    }
    if body.html:
        content |= {"format": HTML, "formatted_body": body.html}
    return content


def file(name: str, size: int, caption: str) -> Json:
    """A file without its address; the caption stands in the body, as clients show it since version 1.10."""
    content: Json = {
        "msgtype": "m.file",
        "body": caption or name,
        "filename": name,
        "info": {"mimetype": mime_type(name), "size": size},
        "m.mentions": {},
    }
    return content


def mime_type(name: str) -> str:
    endings = {".md": "text/markdown", ".json": "application/json", ".html": "text/html", ".csv": "text/csv"}
    return next((kind for ending, kind in endings.items() if name.casefold().endswith(ending)), "text/plain")
