"""Buttons on Matrix: reactions, typed numbers, and when they are none."""

from bot.transports.base import Key, Outgoing, Part
from tests.contract.matrix_room import last, listening, quiet
from tests.contract.transports import MatrixRig, heard
from tests.waiting import until

YES_NO = ((Key("Yes", "token-yes"), Key("No", "token-no")),)


async def card(rig: MatrixRig, key: str = "9-9-0") -> str:
    (part,) = rig.transport.render(Outgoing("card", "Sure?", YES_NO))
    return await rig.transport.send(rig.place, part, key)


async def test_a_card_gets_reactions_to_tap_on_which_go_with_its_keys(rig: MatrixRig) -> None:
    def seeds() -> list[str]:
        return [
            event["content"]["m.relates_to"]["key"]
            for _, event in rig.room.events
            if event["type"] == "m.reaction" and event["content"]
        ]

    ref = await card(rig)
    await until(lambda: seeds() == ["1️⃣", "2️⃣"])
    await rig.transport.edit(rig.place, ref, Part("Done."))
    await until(lambda: seeds() == [])


async def test_a_button_lives_over_a_restart(rig: MatrixRig) -> None:
    ref = await card(rig)
    await rig.transport.close()
    rig.connect()
    await listening(rig)
    await rig.server.react(rig.room, rig.ada, ref, "1⃣")  # without what the client left out
    press = (await last(rig)).press
    assert press is not None
    assert (press.token, press.card) == ("token-yes", ref)


async def test_a_typed_number_presses_the_newest_open_card(rig: MatrixRig) -> None:
    await listening(rig)
    await card(rig)
    await rig.say("2")
    press = (await last(rig)).press
    assert press is not None
    assert press.token == "token-no"


async def test_a_number_is_a_message_where_no_card_is_open_for_who_types_it(rig: MatrixRig) -> None:
    await listening(rig)
    await card(rig)
    rig.open_tokens = False
    await rig.say("2")
    incoming = await last(rig)
    assert (incoming.press, incoming.text) == (None, "2")


async def test_a_number_is_a_message_once_an_answer_came_after_the_card(rig: MatrixRig) -> None:
    await listening(rig)
    await card(rig)
    await rig.transport.send(rig.place, rig.transport.render(Outgoing("text", "How many eggs?"))[0], "1-2-0")
    await rig.say("2")
    assert (await last(rig)).press is None


async def test_reactions_that_are_no_buttons_and_taken_back_ones_ask_for_nothing(rig: MatrixRig) -> None:
    await listening(rig)
    ref = await card(rig)
    await rig.server.react(rig.room, rig.ada, ref, "❤️")
    reaction = await rig.server.react(rig.room, rig.ada, ref, "1️⃣")
    rig.server.world.redact(rig.room, rig.ada, reaction)
    await quiet(rig, rig.room)
    presses = [each.press.token for each in await heard(rig, 1) if each.press]
    assert presses in (["token-yes"], []), "undone before it was read, or pressed: never pressed twice"
