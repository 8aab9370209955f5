"""Answers to pressed buttons, and reactions."""

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import TOO_OLD_QUERY, Json, refuse
from tests.fakes.bot_api.limits import REACTIONS_OF_A_BOT, is_reaction


def answer(emulator: Emulator, params: Json) -> bool:
    """Take the one answer a press may have, within its window."""
    press = emulator.world.presses.get(params["callback_query_id"])
    if press is None or not press.is_open():
        raise refuse(TOO_OLD_QUERY)
    press.answers.append({name: value for name, value in params.items() if name != "callback_query_id"})
    return True


def react(emulator: Emulator, params: Json) -> bool:
    world = emulator.world
    chat = world.open_chat(params["chat_id"])
    message = world.message(chat, params["message_id"], "message to react")
    reactions: list[Json] = params.get("reaction") or []
    if len(reactions) > REACTIONS_OF_A_BOT:
        raise refuse("REACTIONS_TOO_MANY")
    if any(reaction["type"] != "emoji" or not is_reaction(reaction["emoji"]) for reaction in reactions):
        raise refuse("REACTION_INVALID")
    message.reactions[world.bot["id"]] = reactions
    return True
