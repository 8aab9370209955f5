"""What every transport must do, whatever network it is for. `transports` lists them."""

from collections.abc import AsyncIterator
from itertools import count

import pytest

from bot.transports.base import Fault, Key, Outgoing, Part, Preview, SendError
from memory.storage.inbox import InboxRow
from tests.contract.transports import RIGS, Rig, heard
from tests.waiting import until

ROWS = count(1)
KEYS = ((Key("Yes", "token-yes"), Key("No", "token-no")),)


@pytest.fixture(params=RIGS, ids=lambda rig: rig.name)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    kind: type[Rig] = request.param
    async with kind() as made:
        yield made


async def post(rig: Rig, outgoing: Outgoing) -> list[str]:
    """Render and send as the delivery does."""
    row = next(ROWS)
    return [
        await rig.transport.send(rig.place, part, f"{row}-{n}") for n, part in enumerate(rig.transport.render(outgoing))
    ]


# --- receiving -----------------------------------------------------------------------------------------


async def test_what_a_person_says_is_heard(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("Grüße 🎉")
    (incoming,) = await heard(rig)
    assert (incoming.text, incoming.place, incoming.chat_kind) == ("Grüße 🎉", rig.place, "ai")
    assert incoming.sender.identity.startswith(f"{rig.name}:")
    assert incoming.is_addressed
    assert incoming.inbox_ids == (1,)


async def test_messages_are_heard_in_order(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    for number in range(20):
        await rig.say(f"number {number}")
    assert [incoming.text for incoming in await heard(rig, 20)] == [f"number {number}" for number in range(20)]


async def test_p31_what_came_while_nobody_listened_is_heard(rig: Rig) -> None:
    if not rig.redelivers:
        pytest.skip("this network keeps nothing")
    await rig.say("while you were out")
    await rig.transport.start(rig.inbox.accept)
    assert [incoming.text for incoming in await heard(rig)] == ["while you were out"]


async def test_p31_a_kill_during_the_commit_loses_nothing(rig: Rig) -> None:
    """An update is acknowledged only after it was accepted."""
    if not rig.redelivers:
        pytest.skip("this network keeps nothing")
    rig.inbox.gate.clear()
    await rig.transport.start(rig.inbox.accept)
    await rig.say("important")
    killed = rig.inbox
    await until(lambda: killed.calls)
    await rig.die()
    await rig.transport.start(rig.inbox.accept)
    assert [incoming.text for incoming in await heard(rig)] == ["important"]
    assert killed.rows == []


async def test_a_repeated_update_has_the_same_id(rig: Rig) -> None:
    if not rig.redelivers:
        pytest.skip("this network keeps nothing")
    rig.inbox.gate.clear()
    await rig.transport.start(rig.inbox.accept)
    await rig.say("once")
    killed = rig.inbox
    await until(lambda: killed.calls)
    await rig.die()
    await rig.transport.start(rig.inbox.accept)
    await heard(rig)
    assert rig.inbox.calls == killed.calls


async def test_an_update_that_cannot_be_stored_comes_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a store raises must not end the receiving."""
    monkeypatch.setattr("bot.transports.telegram.errors.POLL_PAUSES", (0.01,))
    monkeypatch.setattr("bot.transports.matrix.errors.PAUSES", (0.01,))
    rig.inbox.failures = 3
    await rig.transport.start(rig.inbox.accept)
    await rig.say("first")
    await rig.say("second")
    assert [incoming.text for incoming in await heard(rig, 2)] == ["first", "second"]


async def test_nothing_is_accepted_after_the_end(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("before")
    await heard(rig)
    await rig.transport.stop_receiving()
    await rig.say("after")
    await rig.transport.close()
    await rig.transport.close()
    assert len(rig.inbox.rows) == 1


async def test_the_end_waits_for_a_commit_under_way(rig: Rig) -> None:
    rig.inbox.gate.clear()
    await rig.transport.start(rig.inbox.accept)
    await rig.say("half way")
    await until(lambda: rig.inbox.calls)
    rig.inbox.gate.set()
    await rig.transport.stop_receiving()
    assert len(rig.inbox.rows) == 1


async def test_p40_health_is_the_age_of_the_last_answer(rig: Rig) -> None:
    assert rig.transport.last_contact() is None
    await rig.transport.start(rig.inbox.accept)
    await rig.say("hello")
    await heard(rig)
    age = rig.transport.last_contact()
    assert age is not None
    assert 0 <= age < 5


@pytest.mark.parametrize("payload", [{}, {"message": {}}, {"message": 1}, {"callback_query": {"id": 1}}, {"x": None}])
async def test_nonsense_asks_for_nothing(rig: Rig, payload: dict[str, object]) -> None:
    """Understanding never raises: one strange update must not stop those behind it."""
    assert rig.transport.moved(InboxRow(1, rig.name, "1", payload, 0)) is None
    assert rig.transport.parse(InboxRow(1, rig.name, "1", payload, 0)) is None


# --- sending -------------------------------------------------------------------------------------------


async def test_a_message_is_sent_edited_and_deleted(rig: Rig) -> None:
    (ref,) = await post(rig, Outgoing("text", "first"))
    assert rig.shown() == ["first"]
    await rig.transport.edit(rig.place, ref, Part("second"))
    assert rig.shown() == ["second"]
    assert await rig.transport.delete(rig.place, (ref,)) == ()
    assert rig.shown() == []


async def test_p32_an_edit_that_changes_nothing_is_a_success(rig: Rig) -> None:
    (ref,) = await post(rig, Outgoing("text", "the same"))
    await rig.transport.edit(rig.place, ref, Part("the same"))
    assert rig.shown() == ["the same"]


async def test_p46_a_repeat_is_no_second_message_where_the_transport_says_so(rig: Rig) -> None:
    if not rig.transport.resends_safely:
        pytest.skip("this network knows no repeats")
    (part,) = rig.transport.render(Outgoing("text", "once"))
    key = f"{next(ROWS)}-0"
    refs = {await rig.transport.send(rig.place, part, key) for _ in range(2)}
    assert len(refs) == 1
    assert rig.shown() == ["once"]


async def test_an_edit_of_what_is_gone_says_so(rig: Rig) -> None:
    (ref,) = await post(rig, Outgoing("text", "soon gone"))
    await rig.transport.delete(rig.place, (ref,))
    with pytest.raises(SendError) as caught:
        await rig.transport.edit(rig.place, ref, Part("too late"))
    assert caught.value.fault is Fault.NO_MESSAGE


async def test_what_is_gone_already_counts_as_deleted(rig: Rig) -> None:
    refs = tuple([(await post(rig, Outgoing("text", f"{n}")))[0] for n in range(3)])
    await rig.transport.delete(rig.place, refs[:1])
    assert await rig.transport.delete(rig.place, refs) == ()
    assert await rig.transport.delete(rig.place, refs[:1]) == ()
    assert rig.shown() == []


async def test_p34_a_long_answer_arrives_whole_and_in_order(rig: Rig) -> None:
    words = [f"wörd{number}🎉" for number in range(1500)]
    refs = await post(rig, Outgoing("text", " ".join(words)))
    assert len(set(refs)) == len(refs)
    assert " ".join(rig.shown()).split() == words


async def test_p35_the_plain_fallback_needs_no_formatting(rig: Rig) -> None:
    """The delivery sends a part without its body after a refusal."""
    (part,) = rig.transport.render(Outgoing("text", "**bold** and `code`"))
    await rig.transport.send(rig.place, Part(part.plain), f"{next(ROWS)}-0")
    assert rig.shown() == ["bold and code"]


async def test_an_answer_with_nothing_to_see_is_still_a_message(rig: Rig) -> None:
    """A growing message must be replaced by something."""
    assert len(rig.transport.render(Outgoing("text", " \n"))) == 1
    await post(rig, Outgoing("text", " \n"))
    assert len(rig.shown()) == 1


async def test_a_button_comes_back_as_a_press_of_who_pressed(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    (ref,) = await post(rig, Outgoing("card", "Sure?", KEYS))
    await rig.press("No")
    (incoming,) = await heard(rig)
    assert incoming.press is not None
    assert (incoming.press.token, incoming.press.card) == ("token-no", ref)
    assert incoming.place == rig.place
    assert incoming.sender.identity.startswith(f"{rig.name}:")
    await rig.transport.acknowledge(incoming, "Left as it was.")
    await rig.transport.acknowledge(incoming, "")  # a second time does no harm


async def test_buttons_hang_on_the_last_part(rig: Rig) -> None:
    parts = rig.transport.render(Outgoing("card", "word " * 2000, KEYS))
    assert [part.keys for part in parts] == [*[()] * (len(parts) - 1), KEYS]


async def test_an_edit_takes_the_buttons_away(rig: Rig) -> None:
    (ref,) = await post(rig, Outgoing("card", "Sure?", KEYS))
    await rig.transport.edit(rig.place, ref, *rig.transport.render(Outgoing("card", "Done.")))
    assert rig.shown() == ["Done."]
    with pytest.raises(ValueError, match="Yes"):
        await rig.press("Yes")


async def test_a_file_is_handed_over(rig: Rig) -> None:
    refs = await post(rig, Outgoing("card", "Your facts", file=("facts.md", "# Grüße")))
    assert refs
    assert "Your facts" in rig.shown()[0]


async def test_a_file_with_a_long_text_has_the_text_before_it(rig: Rig) -> None:
    parts = rig.transport.render(Outgoing("card", "word " * 400, KEYS, file=("facts.md", "x")))
    assert [bool(part.file) for part in parts][-1]
    assert [part.keys for part in parts][-1] == KEYS
    assert all(not part.file for part in parts[:-1])
    assert len(await post(rig, Outgoing("card", "word " * 400, file=("facts.md", "x")))) == len(parts)


# --- in passing ----------------------------------------------------------------------------------------


async def test_a_growing_answer_is_shown_in_its_style(rig: Rig) -> None:
    style = rig.transport.preview_style(rig.place)
    for text in ("The **answ", "The **answer** is `4"):
        part = rig.transport.render_preview(text)
        assert part is not None
        if style is Preview.DRAFT:
            await rig.transport.draft(rig.place, 2**40 + 1, part)
    assert rig.shown() == []
    await post(rig, Outgoing("text", "The **answer** is `42`."))
    assert rig.shown() == ["The answer is 42."]


async def test_nothing_to_see_is_no_preview(rig: Rig) -> None:
    assert rig.transport.render_preview("") is None


async def test_waiting_is_shown_and_taken_back(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("a question")
    (incoming,) = await heard(rig)
    await rig.transport.mark_waiting(incoming, waiting=True)
    await rig.transport.mark_waiting(incoming, waiting=False)
    await rig.transport.show_typing(rig.place)


async def test_paces_leave_room_for_an_answer(rig: Rig) -> None:
    pace = rig.transport.pace(rig.place)
    assert pace.burst >= 2
    assert pace.seconds > 0
    assert pace.preview_seconds > 0


# --- threads -------------------------------------------------------------------------------------------


async def test_a_thread_is_opened_and_written_to(rig: Rig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("/newchat A plan")
    (asked,) = await heard(rig)
    thread = await rig.transport.open_thread(rig.place, "A  plan\n" + "x" * 200, asked.ref)
    if not rig.has_threads:
        assert thread is None
        return
    assert thread
    place = type(rig.place)(rig.place.transport, rig.place.chat, thread)
    await rig.transport.send(place, Part("in the thread"), f"{next(ROWS)}-0")
    await rig.transport.show_typing(place)
    assert rig.shown(thread) == ["in the thread"]
    assert rig.shown() == []
