"""The control side over HTTP: `POST /emu/OPERATION`, the arguments as a JSON object, the result as JSON.

One rule: an operation is a public method of BotApi, nothing more; bytes go as `{"base64": "…"}`.
"""

import base64
import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from .errors import BotApiError, Json
from .render import render_svg
from .world import Message

if TYPE_CHECKING:
    from .api import BotApi


async def operate(api: "BotApi", name: str, arguments: Json) -> web.Response:
    """Run an operation; 404 names those there are, 400 says what is wrong with the arguments."""
    operations = _operations(api)
    if name not in operations:
        return web.json_response({"error": f"no operation {name}: there are {', '.join(operations)}"}, status=404)
    given = {key: _unpacked(value) for key, value in arguments.items()}
    try:
        result = _run(api, name, given)
        if inspect.isawaitable(result):
            result = await result
    except (TypeError, ValueError, KeyError, TimeoutError, BotApiError) as error:
        return web.json_response({"error": f"{name}: {type(error).__name__}: {error}"}, status=400)
    return web.json_response({"result": plain(result)})


def _run(api: "BotApi", name: str, given: Json) -> Any:
    if name == "render":
        return render_svg(api, **given)
    found = getattr(api, name)
    if not callable(found):
        return found
    inspect.signature(found).bind(**given)
    return found(**given)


def _operations(api: "BotApi") -> list[str]:
    """Every public name but those that take a Python function or are the world itself."""
    hidden = ("wait_for", "world", "port")
    return sorted([name for name in dir(api) if not name.startswith("_") and name not in hidden] + ["render"])


def plain(value: object) -> object:
    """The same value as JSON: messages with what a reader wants first, other records field by field."""
    if isinstance(value, Message):
        return {
            "message_id": value.id,
            "chat_id": value.chat_id,
            "thread": value.thread,
            "text": value.text,
            "labels": value.labels,
            "by_bot": value.by_bot,
            "deleted_by": value.deleted_by,
            "versions": plain(value.versions),
            "raw": value.raw,
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in cast("list[object]", value)]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(packed := cast("Json", value).get("base64"), str):
        return base64.b64decode(packed)
    return cast("Any", value)
