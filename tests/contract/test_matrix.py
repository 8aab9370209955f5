"""What Matrix alone asks of its transport: rooms, threads, gaps, invitations, edits, tokens."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.transports.base import Fault, Key, Outgoing, Part, SendError
from bot.transports.matrix.errors import AccountError
from handlers.types import Incoming, Place
from tests.contract.transports import MatrixRig, heard, until
from tests.fakes.homeserver.server import BOT
from tests.fakes.homeserver.views import edits, messages
from tests.fakes.homeserver.world import RefusalError, Room

YES_NO = ((Key("Yes", "token-yes"), Key("No", "token-no")),)


@pytest.fixture
async def rig() -> AsyncIterator[MatrixRig]:
    async with MatrixRig() as made:
        yield made


async def last(rig: MatrixRig, count: int = 1) -> Incoming:
    return (await heard(rig, count))[-1]


async def listening(rig: MatrixRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: rig.transport.last_contact() is not None)


async def quiet(rig: MatrixRig, room: Room) -> None:
    """Return when everything said so far in a room was looked at."""
    marker = await rig.server.say(room, rig.ada, "@merk: marker")
    await until(lambda: marker in rig.inbox.calls)


# --- where one stopped -----------------------------------------------------------------------------------


async def test_p46_the_first_start_answers_no_history() -> None:
    fresh = MatrixRig()
    async with fresh.server:
        await fresh.say("long ago")
        fresh.connect()
        await listening(fresh)
        await fresh.say("now")
        assert (await last(fresh)).text == "now"
        assert len(fresh.inbox.calls) == 1
        await fresh.transport.close()
    fresh.folder.cleanup()


async def test_p46_a_gap_of_any_width_is_read_whole_and_in_order(rig: MatrixRig) -> None:
    for number in range(350):
        await rig.say(f"n{number}")
    await listening(rig)
    assert [each.text for each in await heard(rig, 350)] == [f"n{number}" for number in range(350)]


async def test_p46_a_restart_answers_nothing_again(rig: MatrixRig) -> None:
    await listening(rig)
    await rig.say("first")
    await heard(rig)
    await rig.transport.close()
    rig.connect()
    await listening(rig)
    await rig.say("second")
    await heard(rig, 2)
    assert len(rig.inbox.calls) == 2


async def test_a_strange_event_does_not_stop_those_behind_it(rig: MatrixRig) -> None:
    await listening(rig)
    relations: list[Any] = [3, [], {"rel_type": []}, {"rel_type": "m.replace", "event_id": 7}]
    messages: list[dict[str, Any]] = [{}, {"msgtype": 1, "body": {}}]
    for content in [*messages, *({"body": "x", "m.relates_to": relation} for relation in relations)]:
        rig.server.world.add(rig.room, rig.ada, "m.room.message", content)
    marks: list[Any] = [{}, None, "1️⃣"]
    for key in marks:
        relation: dict[str, Any] = {"rel_type": "m.annotation", "event_id": 7, "key": key}
        rig.server.world.add(rig.room, rig.ada, "m.reaction", {"m.relates_to": relation})
    await rig.say("and then?")
    await until(
        lambda: any((found := rig.transport.parse(row)) and found.text == "and then?" for row in rig.inbox.rows)
    )


# --- threads and quotes ----------------------------------------------------------------------------------


async def test_p50_a_thread_is_a_place_and_an_answer_lands_in_it(rig: MatrixRig) -> None:
    await listening(rig)
    root = await rig.server.say(rig.room, rig.ada, "/newchat")
    relation = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True, "m.in_reply_to": {"event_id": root}}
    await rig.server.say(rig.room, rig.ada, "in here", **{"m.relates_to": relation})
    incoming = await last(rig, 2)
    assert (incoming.place.thread, incoming.quote) == (root, "")
    await rig.transport.send(incoming.place, Part("yes"), "1-1-0")
    assert rig.shown(root) == ["yes"]
    sent = messages(rig.room, BOT, root)[-1]["content"]["m.relates_to"]
    assert sent["m.in_reply_to"]["event_id"] == incoming.ref


async def test_a_new_chat_asked_for_inside_a_thread_gets_a_root_of_its_own(rig: MatrixRig) -> None:
    inside = Place("matrix", rig.room.id, "$some-root")
    thread = await rig.transport.open_thread(inside, "Trip", "$asked")
    assert rig.shown() == ["Trip"]
    assert thread == messages(rig.room, BOT)[0]["event_id"]
    assert await rig.transport.open_thread(inside, "Trip", "$asked") == thread


async def test_p44_a_reply_carries_what_it_replies_to(rig: MatrixRig) -> None:
    await listening(rig)
    ref = await rig.transport.send(rig.place, Part("The rent is 800."), "1-1-0")
    await rig.server.say(rig.room, rig.ada, "why?", **{"m.relates_to": {"m.in_reply_to": {"event_id": ref}}})
    incoming = await last(rig)
    assert (incoming.quote, incoming.quote_author, incoming.reply_to) == ("The rent is 800.", "merk", ref)


async def test_among_others_only_what_is_meant_for_merk_is_addressed(rig: MatrixRig) -> None:
    bob = rig.server.person("bob")
    room = rig.server.world.create(rig.ada, BOT, bob, name="Family")
    await listening(rig)
    root = await rig.server.say(room, bob, "/newchat")
    other = await rig.server.say(room, bob, "dinner?")
    for thread in (root, other):
        await rig.server.say(room, bob, "and?", **{"m.relates_to": {"rel_type": "m.thread", "event_id": thread}})
    found = await heard(rig, 4)
    assert [each.is_addressed for each in found] == [True, False, True, False]
    assert {each.chat_kind for each in found} == {"user"}
    assert found[0].chat_title == "Family"


# --- edits -----------------------------------------------------------------------------------------------


async def edit(rig: MatrixRig, who: str, ref: str, text: str) -> None:
    relation = {"rel_type": "m.replace", "event_id": ref}
    await rig.server.say(
        rig.room, who, f"* {text}", **{"m.new_content": {"msgtype": "m.text", "body": text}, "m.relates_to": relation}
    )


async def test_p43_an_edit_names_its_message_and_its_thread(rig: MatrixRig) -> None:
    await listening(rig)
    root = await rig.server.say(rig.room, rig.ada, "root")
    ref = await rig.server.say(rig.room, rig.ada, "teh", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
    await edit(rig, rig.ada, ref, "the")
    incoming = await last(rig, 3)
    assert (incoming.is_edit, incoming.ref, incoming.text, incoming.place.thread) == (True, ref, "the", root)


async def test_nobody_edits_the_words_of_another(rig: MatrixRig) -> None:
    await listening(rig)
    ref = await rig.server.say(rig.room, rig.ada, "mine")
    await edit(rig, rig.server.person("eve"), ref, "not mine")
    await quiet(rig, rig.room)
    assert [each.is_edit for each in await heard(rig, 2)] == [False, False]


async def test_p51_a_growing_answer_is_edited_fifty_times_and_the_final_text_goes_out(rig: MatrixRig) -> None:
    first = rig.transport.render_preview("n0")
    assert first is not None
    ref = await rig.transport.send(rig.place, first, "1-1-0")
    for number in range(60):
        part = rig.transport.render_preview(f"n{number}")
        assert part is not None
        await rig.transport.edit(rig.place, ref, part)
    assert len(edits(rig.room, ref)) == 50
    await rig.transport.edit(rig.place, ref, rig.transport.render(Outgoing("text", "done"))[0])
    assert rig.shown() == ["done"]


async def test_deleting_takes_the_words_of_every_edit_away(rig: MatrixRig) -> None:
    """A homeserver keeps the edits of what was redacted."""
    ref = await rig.transport.send(rig.place, Part("Bruno 1"), "1-1-0")
    await rig.transport.edit(rig.place, ref, Part("Bruno 2"))
    await rig.transport.edit(rig.place, ref, Part("Bruno 3"))
    assert await rig.transport.delete(rig.place, (ref,)) == ()
    assert "Bruno" not in str(rig.room.events)


# --- buttons ---------------------------------------------------------------------------------------------


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


# --- rooms -----------------------------------------------------------------------------------------------


async def test_an_invitation_is_accepted_from_admitted_people_only(rig: MatrixRig) -> None:
    eve = rig.server.person("eve")
    hers, adas = rig.server.world.create(eve), rig.server.world.create(rig.ada)
    await rig.server.invite(hers, eve)
    await listening(rig)
    await rig.server.invite(adas, rig.ada)
    await until(lambda: adas.membership(BOT) == "join")
    assert hers.membership(BOT) == "invite"


async def test_a_strangers_invitation_waits_over_restarts_until_they_are_admitted(rig: MatrixRig) -> None:
    eve = rig.server.person("eve")
    room = rig.server.world.create(eve)
    await listening(rig)
    await rig.server.invite(room, eve)
    await rig.say("something that moves the token on")
    await heard(rig)
    await rig.transport.close()
    rig.admitted.add(f"matrix:{eve}")
    rig.connect()
    await listening(rig)
    await until(lambda: room.membership(BOT) == "join")


async def test_p52_what_cannot_be_decrypted_is_told_once_a_thread(
    rig: MatrixRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.transports.matrix.reading.KEY_SECONDS", 0.0)
    await listening(rig)
    sealed = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA", "session_id": "s", "sender_key": "k"}
    thread = {"m.relates_to": {"rel_type": "m.thread", "event_id": "$root"}}
    for content in (sealed, sealed, sealed | thread, sealed):
        rig.server.world.add(rig.room, rig.ada, "m.room.encrypted", content)
        await rig.say("a word between")
    found = [each for each in await heard(rig, 6) if each.attachments]
    assert [(each.attachments[0].kind, each.place.thread) for each in found] == [
        ("encrypted", ""),
        ("encrypted", "$root"),
    ]


async def test_an_invitation_that_waited_is_accepted_and_what_was_said_since_is_answered(rig: MatrixRig) -> None:
    room = rig.server.world.create(rig.ada)
    await rig.server.say(room, rig.ada, "to myself")
    await rig.server.invite(room, rig.ada)
    await rig.server.say(room, rig.ada, "are you there?")
    await listening(rig)
    assert (await last(rig)).text == "are you there?"
    assert len(rig.inbox.calls) == 1


async def test_an_upgraded_room_is_followed(rig: MatrixRig) -> None:
    await listening(rig)
    new = rig.server.world.create(rig.ada)
    await rig.server.invite(new, rig.server.person("eve"))
    await rig.server.invite(new, rig.ada)
    await until(lambda: new.membership(BOT) == "join")
    rig.server.world.add(rig.room, rig.ada, "m.room.tombstone", {"replacement_room": new.id}, state_key="")
    await rig.server.happen()
    await until(lambda: rig.inbox.rows)
    row = rig.inbox.rows[0]
    assert rig.transport.moved(row) == (rig.room.id, new.id)
    assert rig.transport.parse(row) is None


async def test_merk_leaves_a_room_that_everybody_has_left(rig: MatrixRig) -> None:
    await listening(rig)
    rig.server.world.add(rig.room, rig.ada, "m.room.member", {"membership": "leave"}, state_key=rig.ada)
    await rig.server.happen()
    await until(lambda: rig.room.id not in rig.server.world.rooms)


async def test_what_was_read_is_receipted_and_typing_ends_with_the_answer(rig: MatrixRig) -> None:
    await listening(rig)
    await rig.say("hello")
    incoming = await last(rig)
    await until(lambda: (rig.room.id, "main", incoming.ref) in rig.server.receipts)
    await rig.transport.show_typing(rig.place)
    await rig.transport.send(rig.place, Part("hi"), "1-1-0")
    assert [is_typing for _, is_typing in rig.server.typing] == [True, False]


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "fault", "seconds"),
    [
        (RefusalError(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=4523), Fault.LATER, 4.523),
        (RefusalError(429, "M_LIMIT_EXCEEDED", "Too Many Requests"), Fault.LATER, 5.0),
        (RefusalError(413, "M_TOO_LARGE", "event too large"), Fault.FORMAT, 0.0),
        (RefusalError(403, "M_FORBIDDEN", f"User {BOT} not in room !r"), Fault.NO_CHAT, 0.0),
        (RefusalError(403, "M_FORBIDDEN", "You don't have permission to post"), Fault.REFUSED, 0.0),
        (RefusalError(502, "M_UNKNOWN", "Bad Gateway"), Fault.UNKNOWN, 0.0),
        (RefusalError(400, "M_UNKNOWN", "?"), Fault.REFUSED, 0.0),
    ],
    ids=str,
)
async def test_p51_what_a_homeserver_refuses_is_told_as_what_to_do(
    rig: MatrixRig, refusal: RefusalError, fault: Fault, seconds: float
) -> None:
    rig.server.faults.append(refusal)
    with pytest.raises(SendError) as caught:
        await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert (caught.value.fault, caught.value.retry_after) == (fault, seconds)


async def test_p32_a_send_whose_answer_was_lost_is_there_once_after_a_repeat(rig: MatrixRig) -> None:
    rig.server.lost_answers = 1
    with pytest.raises(SendError) as caught:
        await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert caught.value.fault is Fault.UNKNOWN
    await rig.transport.send(rig.place, Part("hello"), "1-1-0")
    assert rig.shown() == ["hello"]


async def test_a_homeserver_that_is_away_has_certainly_got_nothing(rig: MatrixRig) -> None:
    transport = rig.connect(homeserver="http://127.0.0.1:9")
    with pytest.raises(SendError) as caught:
        await transport.send(rig.place, Part("hello"), "1-1-0")
    assert caught.value.fault is Fault.UNSENT
    await transport.start(rig.inbox.accept)
    await until(lambda: transport.problem)
    assert "cannot be reached" in str(transport.problem)


# --- the account -----------------------------------------------------------------------------------------


async def test_p49_a_token_that_expired_is_replaced_and_the_device_stays(
    rig: MatrixRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.transports.matrix.errors.PAUSES", (0.01,))
    await listening(rig)
    (device,) = rig.server.tokens.values()
    rig.server.tokens.clear()
    await rig.say("still there?")
    assert (await last(rig)).text == "still there?"
    await until(lambda: list(rig.server.tokens.values()) == [device])
    await rig.say("and now?")
    assert (await last(rig, 2)).text == "and now?"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"user_id": "@other:example.org"}, "belongs to @merk:example.org"),
        ({"device_id": "ANOTHER"}, "holds the keys of device DEVICE1"),
    ],
)
async def test_p47_a_folder_of_another_account_or_device_is_refused(
    rig: MatrixRig, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(AccountError, match=said):
        rig.connect(**settings)


async def test_p47_a_token_of_another_device_is_refused_aloud(rig: MatrixRig) -> None:
    rig.server.tokens = {"foreign": "ANOTHER"}
    transport = rig.connect(access_token="foreign", password=None)
    await transport.start(rig.inbox.accept)
    await until(lambda: transport.problem)
    assert "belongs to device ANOTHER" in str(transport.problem)
    assert rig.inbox.calls == []


async def test_the_bots_name_is_set_where_it_differs(rig: MatrixRig) -> None:
    rig.connect(display_name="Merk of the house")
    await listening(rig)
    assert rig.server.world.names[BOT] == "Merk of the house"
    puts = [path for method, path, _ in rig.server.requests if method == "PUT" and "displayname" in path]
    await rig.transport.close()
    rig.connect(display_name="Merk of the house")
    await listening(rig)
    assert [path for method, path, _ in rig.server.requests if method == "PUT" and "displayname" in path] == puts
