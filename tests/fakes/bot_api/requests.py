"""From an HTTP request to typed parameters, and from a problem with them to Telegram's words.

One rule: nothing reaches a method before its parameters are known, present, of the right type and within bounds.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

from aiohttp import web
from aiohttp.multipart import BodyPartReader

from .errors import BotApiError, Json, refuse
from .spec import Field, Method, Problem, Upload

_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_NUMBER = re.compile(r"-?\d+")

# (path, kind of problem, the real server's words); the first row that fits is used.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (r"\w+\.chat_id", "missing", "chat_id is empty"),
    (r"\w+\.text", "missing", "message text is empty"),
    (r"deleteMessages?\.message_id", "missing", "message identifier is not specified"),
    (r"deleteMessages\.message_ids", "missing|short", "message identifiers are not specified"),
    (r"deleteMessages\.message_ids", "long", "too many message identifiers specified"),
    (r"getFile\.file_id", "missing", "file_id not specified"),
    (r"answerCallbackQuery\.text", "long", "MESSAGE_TOO_LONG"),
    (r"createForumTopic\.name", "missing|short", "title must be non-empty"),
    (r"setMyCommands\.commands", "long", "BOT_COMMANDS_TOO_MUCH"),
    (r".*\.command", "short|long", "BOT_COMMAND_INVALID"),
    (r"setMyCommands\.commands\[\d+\]\.description", "short|long", "BOT_COMMAND_DESCRIPTION_INVALID"),
    (
        r".*\.inline_keyboard(\[\d+\])*\.callback_data",
        "short",  # empty data counts as none
        "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
    ),
    (r".*\.callback_data", "long", "BUTTON_DATA_INVALID"),
    (
        r".*\.inline_keyboard(\[\d+\])*\.text",
        "missing",
        "can't parse inline keyboard button: Can't find field \"text\"",
    ),
    (
        r".*\.inline_keyboard",
        "type",
        'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
    ),
)


async def read_params(request: web.Request) -> Json:
    """Collect parameters from the query string and from a JSON, urlencoded or multipart body; files become Uploads.

    `attach://NAME` is replaced by the part of that name, at any depth, once the JSON values are decoded.
    """
    params: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await _json_body(request)
        params |= {name: value for name, value in body.items() if value is not None}
    elif request.content_type.startswith("multipart/"):
        async for part in await request.multipart():
            if isinstance(part, BodyPartReader) and part.name:
                params[part.name] = await _part(part)
    elif request.body_exists:
        params |= dict((await request.post()).items())
    return params


async def _json_body(request: web.Request) -> Json:
    try:
        body = json.loads(await request.text() or "{}")
    except ValueError:
        raise refuse("can't parse the request body as JSON") from None
    if not isinstance(body, dict):
        raise refuse("the request body must be a JSON object")
    return cast("Json", body)


async def _part(part: BodyPartReader) -> str | Upload:
    if part.filename is None:
        return await part.text()
    return Upload(part.filename, part.headers.get("Content-Type", ""), bytes(await part.read()))


def typed(method: Method, raw: Mapping[str, object]) -> Json:
    """Give form strings the type the method expects; what cannot be converted stays as it is, for the checker.

    Uploads that are only referred to (`attach://`) are not parameters of their own.
    """
    uploads = {name: value for name, value in raw.items() if isinstance(value, Upload)}
    attached = {name for name in uploads if name not in method.fields}
    values: Json = {}
    for name, value in raw.items():
        if name not in attached:
            values[name] = _attach(_converted(method.fields.get(name), value), uploads)
    return values


def _converted(known: Field | None, value: object) -> object:
    if known is None or not isinstance(value, str):
        return value
    if "Boolean" in known.types:
        return _BOOLEANS.get(value.lower(), value)
    if "Integer" in known.types and _NUMBER.fullmatch(value):
        return int(value)
    if "String" in known.types:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _attach(value: object, uploads: Mapping[str, Upload]) -> object:
    if isinstance(value, str) and value.startswith("attach://"):
        return uploads.get(value.removeprefix("attach://"), value)
    if isinstance(value, list):
        return [_attach(item, uploads) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _attach(item, uploads) for key, item in cast("Json", value).items()}
    return value


def refuse_problem(problem: Problem) -> BotApiError:
    """The real server's words where it has any, else our own, marked as the emulator's."""
    for path, kinds, words in _WORDS:
        if problem.kind in kinds.split("|") and re.fullmatch(path, problem.path):
            return refuse(words)
    return refuse(f"emulator: {problem}")


def unbuilt_parameter(method: Method, params: Mapping[str, object]) -> str | None:
    return next((name for name in params if name in method.fields and not method.fields[name].built), None)


def loggable(value: object) -> object:
    """The same value with uploads described, so that it can be shown as JSON."""
    if isinstance(value, Upload):
        return f"<{value.name}: {len(value.data)} bytes of {value.mime or 'unknown type'}>"
    if isinstance(value, list):
        return [loggable(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: loggable(item) for key, item in cast("Json", value).items()}
    return value
