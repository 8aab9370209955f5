"""The bot itself: who it is, its commands, names and menu button."""

import json
import re

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import Json, refuse
from tests.fakes.bot_api.limits import COMMAND_NAME, LANGUAGE_CODE


def describe_bot(emulator: Emulator, _: Json) -> Json:
    return emulator.world.bot


def log_out(emulator: Emulator, _: Json) -> bool:
    emulator.world.logged_out = True
    return True


def close(_emulator: Emulator, _: Json) -> bool:
    """Nothing to do: there is no other server the bot could move to."""
    return True


def set_commands(emulator: Emulator, params: Json) -> bool:
    for command in params["commands"]:
        if not re.fullmatch(COMMAND_NAME, command["command"]):
            raise refuse("BOT_COMMAND_INVALID")
    emulator.world.commands[_audience(params)] = params["commands"]
    return True


def list_commands(emulator: Emulator, params: Json) -> list[Json]:
    return emulator.world.commands.get(_audience(params), [])


def delete_commands(emulator: Emulator, params: Json) -> bool:
    emulator.world.commands.pop(_audience(params), None)
    return True


def _audience(params: Json) -> str:
    return json.dumps([params.get("scope") or {"type": "default"}, _language(params)], sort_keys=True)


def _language(params: Json) -> str:
    language = params.get("language_code", "")
    if not re.fullmatch(LANGUAGE_CODE, language):
        raise refuse("invalid language code specified")
    return language


def _set(emulator: Emulator, params: Json, field: str) -> bool:
    key = f"{field}:{_language(params)}"
    if params.get(field):
        emulator.world.profile[key] = params[field]
    else:
        emulator.world.profile.pop(key, None)
    return True


def _described(emulator: Emulator, params: Json, field: str) -> Json:
    """The text for the language, else the one for everybody, else nothing."""
    profile = emulator.world.profile
    return {field: profile.get(f"{field}:{_language(params)}", profile.get(f"{field}:", ""))}


def set_name(emulator: Emulator, params: Json) -> bool:
    return _set(emulator, params, "name")


def describe_name(emulator: Emulator, params: Json) -> Json:
    return {"name": _described(emulator, params, "name")["name"] or emulator.world.bot["first_name"]}


def set_description(emulator: Emulator, params: Json) -> bool:
    return _set(emulator, params, "description")


def describe_description(emulator: Emulator, params: Json) -> Json:
    return _described(emulator, params, "description")


def set_short_description(emulator: Emulator, params: Json) -> bool:
    return _set(emulator, params, "short_description")


def describe_short_description(emulator: Emulator, params: Json) -> Json:
    return _described(emulator, params, "short_description")


def set_menu_button(emulator: Emulator, params: Json) -> bool:
    """A button without a chat is everybody's default; a default button in a chat gives way to it."""
    button: Json = params.get("menu_button") or {"type": "default"}
    if "chat_id" in params:
        emulator.world.open_chat(params["chat_id"]).menu_button = button
    else:
        emulator.world.menu_button = button
    return True


def describe_menu_button(emulator: Emulator, params: Json) -> Json:
    own = emulator.world.open_chat(params["chat_id"]).menu_button if "chat_id" in params else None
    return own or emulator.world.menu_button
