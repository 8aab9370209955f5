"""What only Telegram can do to a send, over the real HTTP path to the emulator."""

from collections.abc import AsyncIterator

import pytest

from bot.transports.base import Fault, Key, Outgoing, Part, Preview, SendError
from bot.transports.telegram import transport as module
from bot.transports.telegram.transport import TelegramTransport
from handlers.types import Place
from memory.instants import SystemClock
from tests.contract.transports import TelegramRig, heard
from tests.fakes.bot_api.faults import FaultKind
from tests.waiting import until

FORUM = -1001000000001
SUPERGROUP = -1001000000002
GROUP = -55


@pytest.fixture
async def rig() -> AsyncIterator[TelegramRig]:
    async with TelegramRig() as made:
        made.api.add_user(43, "Bob")
        yield made


async def fault_of(rig: TelegramRig, place: Place | None = None, part: Part | None = None) -> SendError:
    with pytest.raises(SendError) as caught:
        await rig.transport.send(place or rig.place, part or Part("hello"), "1-0")
    return caught.value


def place(chat: int, thread: int | None = None) -> Place:
    return Place("telegram", str(chat), str(thread or ""))


# --- faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fault", "has_arrived"),
    [
        ("429", Fault.LATER, False),
        ("500", Fault.UNKNOWN, False),
        ("502", Fault.UNKNOWN, False),
        ("reset", Fault.UNKNOWN, False),
        ("reset_after", Fault.UNKNOWN, True),
        ("timeout_after", Fault.UNKNOWN, True),
        ("parse", Fault.FORMAT, False),
        ("thread_not_found", Fault.NO_THREAD, False),
        ("blocked", Fault.NO_CHAT, False),
    ],
)
async def test_every_failure_of_a_send_has_its_fault_and_goes_out_once(
    rig: TelegramRig, monkeypatch: pytest.MonkeyPatch, kind: FaultKind, fault: Fault, *, has_arrived: bool
) -> None:
    """The library repeats nothing by itself: what may have arrived is never sent twice."""
    monkeypatch.setattr(module, "READ_SECONDS", 0.3)
    rig.connect()
    rig.api.fail(kind, "sendMessage", seconds=0.6)
    assert (await fault_of(rig)).fault is fault
    assert len(rig.api.calls("sendMessage")) == 1
    assert rig.shown() == (["hello"] if has_arrived else [])


@pytest.mark.parametrize(
    ("code", "text", "fault"),
    [
        (400, "TOPIC_CLOSED", Fault.THREAD_CLOSED),
        (400, "TOPIC_DELETED", Fault.NO_THREAD),
        (400, "chat not found", Fault.NO_CHAT),
        (403, "user is deactivated", Fault.NO_CHAT),
        (400, "message is too long", Fault.FORMAT),
        (400, "ENTITY_BOUNDS_INVALID", Fault.FORMAT),
        (400, "REPLY_MARKUP_TOO_LONG", Fault.REFUSED),
        (413, "Request Entity Too Large", Fault.REFUSED),
        (401, "Unauthorized", Fault.UNSENT),
    ],
)
async def test_every_refusal_has_its_fault(rig: TelegramRig, code: int, text: str, fault: Fault) -> None:
    rig.api.fail("custom", "sendMessage", code=code, text=text)
    assert (await fault_of(rig)).fault is fault


async def test_p33_a_flood_says_how_long_to_wait(rig: TelegramRig) -> None:
    rig.api.fail("429", "sendMessage", retry_after=7)
    found = await fault_of(rig)
    assert (found.fault, found.retry_after) == (Fault.LATER, 7.0)


async def test_p33_nothing_in_passing_is_sent_while_telegram_wants_silence(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("a question")
    (incoming,) = await heard(rig)
    rig.api.fail("429", "sendMessage", retry_after=2)
    await fault_of(rig)
    await rig.transport.mark_waiting(incoming, waiting=True)
    assert rig.api.calls("setMessageReaction") == []
    assert rig.api.violations == []


async def test_a_server_that_is_not_there_leaves_it_unsent() -> None:
    transport = TelegramTransport("1:x", SystemClock(), lambda _: [], base_url="http://127.0.0.1:9")
    with pytest.raises(SendError) as caught:
        await transport.send(place(42), Part("hello"), "1-0")
    assert caught.value.fault is Fault.UNSENT
    await transport.close()


async def test_a_moved_chat_names_its_new_id(rig: TelegramRig) -> None:
    rig.api.group(GROUP, "Kitchen", [42, 43])
    new = rig.api.migrate(GROUP)
    found = await fault_of(rig, place(GROUP))
    assert (found.fault, found.detail) == (Fault.MOVED, str(new))
    await rig.transport.start(rig.inbox.accept)
    await until(lambda: len(rig.inbox.rows) == 2)
    assert {rig.transport.moved(row) for row in rig.inbox.rows} == {(str(GROUP), str(new))}
    assert [rig.transport.parse(row) for row in rig.inbox.rows] == [None, None]


async def test_a_blocked_bot_has_no_chat(rig: TelegramRig) -> None:
    rig.api.block(rig.ada)
    assert (await fault_of(rig)).fault is Fault.NO_CHAT


@pytest.mark.parametrize("kind", ["429", "500", "reset", "blocked"])
async def test_everything_that_writes_raises_nothing_but_send_errors(rig: TelegramRig, kind: FaultKind) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("hello")
    (incoming,) = await heard(rig)
    ref = await rig.transport.send(rig.place, Part("sent"), "1-0")
    rig.api.fail(kind, "(send|edit|delete|create|answer|setMessage).*", times=None)
    for call in (
        rig.transport.edit(rig.place, ref, Part("x")),
        rig.transport.delete(rig.place, (ref,)),
        rig.transport.draft(rig.place, 1, Part("x")),
        rig.transport.show_typing(rig.place),
        rig.transport.open_thread(rig.place, "x"),
    ):
        with pytest.raises(SendError):
            await call
    await rig.transport.mark_waiting(incoming, waiting=True)
    await rig.transport.acknowledge(incoming, "x")


# --- form ----------------------------------------------------------------------------------------------


async def test_formatting_buttons_and_no_link_preview_reach_the_chat(rig: TelegramRig) -> None:
    keys = ((Key("Yes", "t" * 64),),)
    (part,) = rig.transport.render(Outgoing("text", "**bold** 🎉 `code` https://example.org", keys))
    await rig.transport.send(rig.place, part, "1-0")
    shown = rig.api.last(rig.ada)
    assert (shown.marked("bold"), shown.marked("code"), shown.labels) == (["bold"], ["code"], ["Yes"])
    assert shown.raw["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in rig.api.calls("sendMessage")[0].params
    assert rig.api.violations == []


async def test_a_file_carries_its_text_as_caption(rig: TelegramRig) -> None:
    (part,) = rig.transport.render(Outgoing("card", "Your **facts**", file=("facts.md", "# Grüße")))
    await rig.transport.send(rig.place, part, "1-0")
    shown = rig.api.last(rig.ada)
    assert (shown.text, shown.raw["document"]["file_name"]) == ("Your **facts**", "facts.md")
    stored = rig.api.world.files[shown.raw["document"]["file_id"]]
    assert stored.data == "# Grüße".encode()


async def test_p42_an_acknowledgement_that_comes_too_late_is_no_failure(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.transport.send(rig.place, Part("Sure?", keys=((Key("Yes", "y"),),)), "1-0")
    await rig.press("Yes")
    (incoming,) = await heard(rig)
    rig.api.age_press(rig.api.presses()[0].id, 60)
    await rig.transport.acknowledge(incoming, "x" * 300)
    assert rig.api.presses()[0].answers == []


async def test_a_long_toast_is_cut(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.transport.send(rig.place, Part("Sure?", keys=((Key("Yes", "y"),),)), "1-0")
    await rig.press("Yes")
    (incoming,) = await heard(rig)
    await rig.transport.acknowledge(incoming, "x" * 300)
    assert rig.api.presses()[0].answers == [{"text": "x" * 200}]


async def test_waiting_is_a_pair_of_eyes(rig: TelegramRig) -> None:
    await rig.transport.start(rig.inbox.accept)
    await rig.say("a question")
    (incoming,) = await heard(rig)
    await rig.transport.mark_waiting(incoming, waiting=True)
    assert rig.api.reactions(rig.ada, int(incoming.ref)) == ["👀"]
    await rig.transport.mark_waiting(incoming, waiting=False)
    assert rig.api.reactions(rig.ada, int(incoming.ref)) == []


@pytest.mark.parametrize("draft_id", [0, 1, 2**31 - 1, 2**31, 2**63])
async def test_draft_ids_are_never_zero_and_fit(rig: TelegramRig, draft_id: int) -> None:
    await rig.transport.draft(rig.place, draft_id, Part("growing"))
    assert 0 < rig.api.drafts(rig.ada)[0].draft_id < 2**31


async def test_groups_are_written_to_more_slowly_and_see_edits(rig: TelegramRig) -> None:
    """Telegram allows twenty messages a minute there, and drafts in private chats only."""
    private, group = rig.transport.pace(rig.place), rig.transport.pace(place(FORUM))
    assert group.seconds >= 60 / 20
    assert group.preview_seconds > private.preview_seconds
    assert rig.transport.preview_style(rig.place) is Preview.DRAFT
    assert rig.transport.preview_style(place(FORUM)) is Preview.EDIT


# --- threads -------------------------------------------------------------------------------------------


async def test_p36_every_call_to_a_topic_carries_it(rig: TelegramRig) -> None:
    for chat in (rig.ada, rig.api.forum(FORUM, "Team", [42])):
        thread = await rig.transport.open_thread(place(chat), "Plans")
        there = Place("telegram", str(chat), thread or "")
        await rig.transport.send(there, Part("text", keys=((Key("Yes", "y"),),)), "1-0")
        await rig.transport.send(there, Part("file", file=("a.txt", "x")), "1-1")
        await rig.transport.show_typing(there)
        if chat == rig.ada:
            await rig.transport.draft(there, 1, Part("growing"))
    calls = rig.api.calls("send.*")
    assert len(calls) == 7
    assert all(call.params.get("message_thread_id") for call in calls)
    assert rig.api.violations == []


async def test_p36_the_general_topic_gets_no_id(rig: TelegramRig) -> None:
    rig.api.forum(FORUM, "Team", [42])
    await rig.transport.send(place(FORUM), Part("hello"), "1-0")
    await rig.transport.show_typing(place(FORUM))
    assert all("message_thread_id" not in call.params for call in rig.api.calls("send.*"))
    assert rig.api.answers(FORUM, thread=None) == ["hello"]


async def test_p37_a_deleted_or_closed_topic_is_reported_and_nothing_slips_into_the_main_chat(rig: TelegramRig) -> None:
    thread = rig.api.topic(rig.ada, "Plans")
    rig.api.delete_topic(rig.ada, thread)
    assert (await fault_of(rig, place(rig.ada, thread))).fault is Fault.NO_THREAD
    rig.api.forum(FORUM, "Team", [42])
    closed = rig.api.topic(FORUM, "Plans")
    rig.api.close_topic(FORUM, closed)
    assert (await fault_of(rig, place(FORUM, closed))).fault is Fault.THREAD_CLOSED
    assert rig.shown() == []


async def test_p37_what_slipped_into_the_main_chat_is_taken_back(rig: TelegramRig) -> None:
    """Until June 2026 a deleted private topic raised no error."""
    thread = rig.api.topic(rig.ada, "Plans")
    rig.api.delete_topic(rig.ada, thread, slips=True)
    assert (await fault_of(rig, place(rig.ada, thread))).fault is Fault.NO_THREAD
    assert rig.shown() == []


async def test_p37_topics_that_were_switched_off_are_reported(rig: TelegramRig) -> None:
    thread = rig.api.topic(rig.ada, "Plans")
    rig.api.switch_topics(rig.ada, on=False)
    assert (await fault_of(rig, place(rig.ada, thread))).fault is Fault.NO_THREAD
    assert rig.shown() == []


async def test_where_there_are_no_threads_none_is_opened(rig: TelegramRig) -> None:
    rig.api.switch_topics(rig.ada, on=False)
    assert await rig.transport.open_thread(rig.place, "Plans") is None
    rig.api.forum(FORUM, "Team", [42], bot="member")
    assert await rig.transport.open_thread(place(FORUM), "Plans") is None


# --- deleting ------------------------------------------------------------------------------------------


async def sent(rig: TelegramRig, chat: int, count: int) -> tuple[str, ...]:
    return tuple([await rig.transport.send(place(chat), Part(f"{n}"), "k") for n in range(count)])


async def test_many_messages_go_in_hundreds(rig: TelegramRig) -> None:
    refs = await sent(rig, rig.ada, 120)
    assert await rig.transport.delete(rig.place, refs) == ()
    assert [len(call.params["message_ids"]) for call in rig.api.calls("deleteMessages")] == [100, 20]
    assert rig.shown() == []


async def test_one_message_that_is_too_old_keeps_no_other_from_going(rig: TelegramRig) -> None:
    """In a private chat it fails the whole batch; it is found by halving, and told."""
    refs = await sent(rig, rig.ada, 20)
    rig.api.age(rig.ada, int(refs[13]), 49 * 3600)
    assert await rig.transport.delete(rig.place, refs) == (refs[13],)
    assert rig.shown() == ["13"]
    assert len(rig.api.calls("deleteMessages?")) < 12


async def test_in_a_supergroup_what_stays_is_told_as_well(rig: TelegramRig) -> None:
    """There a batch passes over it and says that all is well."""
    rig.api.supergroup(SUPERGROUP, "Kitchen", [42])
    refs = await sent(rig, SUPERGROUP, 3)
    rig.api.age(SUPERGROUP, int(refs[1]), 49 * 3600)
    assert await rig.transport.delete(place(SUPERGROUP), refs) == (refs[1],)


@pytest.mark.parametrize("kind", ["500", "reset_after"])
async def test_a_delete_that_may_have_worked_is_simply_repeated(rig: TelegramRig, kind: FaultKind) -> None:
    (ref,) = await sent(rig, rig.ada, 1)
    rig.api.fail(kind, "deleteMessage")
    with pytest.raises(SendError) as caught:
        await rig.transport.delete(rig.place, (ref,))
    assert caught.value.fault is Fault.UNSENT
    assert await rig.transport.delete(rig.place, (ref,)) == ()


async def test_an_edit_of_a_file_is_sent_anew(rig: TelegramRig) -> None:
    """There is no text in it to edit."""
    ref = await rig.transport.send(rig.place, Part("facts", file=("a.txt", "x")), "1-0")
    with pytest.raises(SendError) as caught:
        await rig.transport.edit(rig.place, ref, Part("done"))
    assert caught.value.fault is Fault.NO_MESSAGE
