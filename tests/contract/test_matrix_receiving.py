"""What comes in from Matrix: from where one stopped, whole and in order, with what it refers to."""

from typing import Any

from bot.transports.base import Outgoing, Part
from handlers.types import Place
from tests.contract.matrix_room import last, listening, quiet
from tests.contract.transports import MatrixRig, heard
from tests.fakes.homeserver.server import BOT
from tests.fakes.homeserver.views import edits, messages
from tests.waiting import until

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
    ref = await rig.server.say(
        rig.room, rig.ada, "that", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}}
    )
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


# --- taken back -------------------------------------------------------------------------------------------


async def test_who_takes_a_message_back_names_it_and_its_thread(rig: MatrixRig) -> None:
    await listening(rig)
    root = await rig.server.say(rig.room, rig.ada, "root")
    relation = {"rel_type": "m.thread", "event_id": root}
    ref = await rig.server.say(rig.room, rig.ada, "a secret", **{"m.relates_to": relation})
    await heard(rig, 2)
    rig.server.world.redact(rig.room, rig.ada, ref)
    await rig.server.happen()
    incoming = await last(rig, 3)
    assert (incoming.is_taken_back, incoming.ref, incoming.text, incoming.place.thread) == (True, ref, "", root)
    assert incoming.sender.identity == f"matrix:{rig.ada}"


async def test_what_a_moderator_deletes_nobody_has_taken_back(rig: MatrixRig) -> None:
    await listening(rig)
    ref = await rig.server.say(rig.room, rig.ada, "mine")
    await heard(rig)
    rig.server.world.redact(rig.room, rig.server.person("eve"), ref)
    await quiet(rig, rig.room)
    assert [each.is_taken_back for each in await heard(rig, 2)] == [False, False]


async def test_what_was_deleted_while_merk_was_away_is_told_after_a_restart(rig: MatrixRig) -> None:
    await listening(rig)
    ref = await rig.server.say(rig.room, rig.ada, "a secret")
    await heard(rig)
    await rig.transport.close()
    rig.server.world.redact(rig.room, rig.ada, ref)
    rig.connect()
    await listening(rig)
    incoming = await last(rig, 2)
    assert (incoming.is_taken_back, incoming.ref) == (True, ref)
