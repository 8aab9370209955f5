"""Drafts of instructions on Telegram: people see them, the model does not, a tap takes them away; over any kill -9."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from handlers.locales import Phrases, phrases
from tests.e2e.merk_process import Merk, deployment
from tests.fakes.bot_api import FaultKind, Press
from tests.fakes.messages_api import Request

ADA, BOB, GROUP = 42, 77, -100500
WORDS = ("Zwirbelwitz", "Knurpselfax", "Schlonzmeister")
"""Each is in one draft and nowhere else."""
DRAFTS = tuple(f"Answer like a {word}." for word in WORDS)
NAMES = {ADA: "instructions", GROUP: "persona"}
MANY_STARTS = pytest.mark.timeout(400)
"""A start of the program takes seconds, and there are a dozen in one test."""
TWO_DAYS = 48 * 3600 + 60


@dataclass
class Talk:
    """One chat with a Merk that is killed after each step, where `kills` says so."""

    merk: Merk
    chat: int
    say: Phrases
    kills: bool = False
    cards: set[int] = field(default_factory=set[int])
    """Every message that was seen with buttons."""

    @property
    def name(self) -> str:
        """The beginning of the phrases of this work."""
        return NAMES[self.chat]

    def texts(self) -> dict[int, str]:
        return {message.id: message.text for message in self.merk.telegram.messages(self.chat)}

    def working_rows(self) -> list[str]:
        return [row[0] for row in self.merk.rows("SELECT text FROM messages WHERE is_ephemeral ORDER BY id")]

    def lasting_rows(self) -> list[str]:
        return [row[0] for row in self.merk.rows("SELECT text FROM messages WHERE NOT is_ephemeral ORDER BY id")]

    async def write(self, text: str) -> None:
        self.merk.telegram.say(self.chat, text, user=ADA)
        await self.end_step()

    async def press(self, key: str, *, draft: int = 0, user: int = ADA) -> Press:
        """Press the newest button with the words of a phrase; with `draft`, the one on that draft's card."""
        label = self.say(key)
        heading = self.say(f"{self.name}-draft", number=draft) if draft else ""
        found = [
            message
            for message in self.merk.telegram.messages(self.chat, by_bot=True)
            if label in message.labels and message.text.startswith(heading)
        ]
        press = self.merk.telegram.press(self.chat, found[-1].id, label, user=user)
        await self.merk.telegram.wait_for(lambda: press.answers, timeout=30)  # a toast is not said again after a kill
        await self.end_step()
        return press

    async def end_step(self) -> None:
        await self.merk.settle()
        self.cards |= {message.id for message in self.merk.telegram.messages(self.chat, by_bot=True) if message.labels}
        if self.kills:
            polls = self.merk.telegram.world.feed.polls
            await self.merk.kill()
            await self.merk.start(wait=False)
            await self.merk.telegram.wait_for(lambda: self.merk.telegram.world.feed.polls > polls, timeout=60)


def teach(merk: Merk) -> None:
    """A model that proposes the draft whose number it is told."""
    for number, draft in enumerate(DRAFTS, 1):
        merk.model.on(user=f"try {number}", has_tool="propose_instructions").reply(
            tool=("propose_instructions", {"text": draft, "whose": "me"})
        )
    merk.model.on(after_tool="The person sees draft").reply("Have a look.")


async def open_talk(merk: Merk, chat: int, language: str, *, kills: bool = False) -> Talk:
    merk.telegram.private_chat(ADA, "Ada", language=language)
    merk.telegram.add_user(BOB, "Bob", language="de")
    merk.telegram.supergroup(GROUP, "Friends", members={ADA: "member", BOB: "member"})
    teach(merk)
    await merk.start()
    return Talk(merk, chat, phrases(language), kills)


async def propose_three(talk: Talk) -> None:
    """In private by the model, in a group by the owner's command; and a preview among them."""
    for number, draft in enumerate(DRAFTS, 1):
        if talk.chat == ADA:
            await talk.write(f"please try {number}")
        else:
            await talk.write(f"/persona@merk_test_bot {draft}")
        if number == 2:
            await talk.write(f"/{talk.name}@merk_test_bot")
    assert len(talk.cards) == 4


def requests_with(merk: Merk, word: str) -> list[Request]:
    return [request for request in merk.model.requests if word in str(request.body)]


def check_requests(talk: Talk, *applied: str) -> None:
    """No request holds a draft but the one that told the model what became of its call; what is applied is standing."""
    for number, word in enumerate(WORDS, 1):
        found = requests_with(talk.merk, word)
        loops = [request for request in found if f"draft {number} " in (request.scene.tool_result or "")]
        assert len(loops) == (1 if talk.chat == ADA else 0)
        others = [request for request in found if request not in loops]
        assert bool(others) == (word in applied), f"{word} is in {len(others)} other requests"
        assert all(word in request.scene.system and str(request.body).count(word) == 1 for request in others)


def check_servers(merk: Merk) -> None:
    assert merk.telegram.violations == []
    assert merk.model.violations == []


async def ask(talk: Talk, question: str) -> str:
    """A later question; returns the request that it led to."""
    await talk.write(question if talk.chat == ADA else f"@merk_test_bot {question}")
    return next(str(each.body) for each in reversed(talk.merk.model.requests) if question in each.scene.user)


@MANY_STARTS
@pytest.mark.parametrize(
    ("chat", "language", "kills"),
    [(ADA, "de", False), (ADA, "ru", False), (ADA, "en", True), (GROUP, "en", True)],
    ids=["private-de", "private-ru", "private-over-kills", "group-over-kills"],
)
async def test_no_leaves_all_and_yes_removes_exactly_the_working_output(
    chat: int, language: str, kills: bool, tmp_path: Path
) -> None:
    async with deployment(tmp_path) as merk:
        talk = await open_talk(merk, chat, language, kills=kills)
        await ask(talk, "hello before")
        await propose_three(talk)

        # one is applied; No leaves everything, and the model is told that the work goes on
        await talk.press("instructions-apply", draft=3)
        shown, rows = talk.texts(), talk.working_rows()
        assert all(any(word in row for row in rows) for word in WORDS)
        await talk.press("closing-no")
        assert talk.texts().keys() == shown.keys()
        assert talk.working_rows() == rows
        assert "wants to go on" in await ask(talk, "what is the capital of Peru?")

        # another one is applied; Yes removes what the work has shown, and nothing else
        await talk.press("instructions-apply", draft=2)
        await close(talk, talk.say(f"{talk.name}-applied", number=2))

        # the drafts are in nothing that the model is shown from then on
        assert "wants to go on" not in await ask(talk, "and of Chile?")
        check_requests(talk, WORDS[1], WORDS[2])
        assert WORDS[2] not in str(merk.model.requests[-1].body)
        check_servers(merk)


async def close(talk: Talk, line: str) -> None:
    """Say Yes: exactly the cards and their rows go, and one line comes."""
    merk, working = talk.merk, set(talk.cards)
    assert len(working) == 6  # three drafts, a preview, two questions whether that was it
    before, lasting = talk.texts(), talk.lasting_rows()
    await talk.press("closing-yes")
    after = talk.texts()
    assert {message.id for message in merk.telegram.deleted(talk.chat)} == working
    assert {id: text for id, text in before.items() if id not in working}.items() <= after.items()
    assert [text for id, text in after.items() if id not in before] == [line]
    calls = [call.params for call in merk.telegram.calls("deleteMessages?")]
    assert {id for params in calls for id in params.get("message_ids", [params.get("message_id")])} == working
    assert len(calls) == (1 if talk.chat == ADA else len(working))  # a supergroup's batch hides what it refuses
    assert talk.working_rows() == []
    assert talk.lasting_rows() == [*lasting, line]
    assert merk.rows("SELECT 1 FROM session_states") == []


@MANY_STARTS
@pytest.mark.parametrize("kills", [False, True], ids=["in one run", "over-kills"])
async def test_p41_a_strangers_press_in_a_group_gets_a_notice_and_does_nothing(kills: bool, tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        talk = await open_talk(merk, GROUP, "en", kills=kills)
        await talk.write(f"/persona@merk_test_bot {DRAFTS[0]}")

        async def is_refused(key: str) -> None:
            before = talk.texts(), talk.working_rows(), merk.rows("SELECT count(*) FROM instructions")
            press = await talk.press(key, user=BOB)
            assert [answer["text"] for answer in press.answers] == [phrases("de")("press-not-yours")]
            assert (talk.texts(), talk.working_rows(), merk.rows("SELECT count(*) FROM instructions")) == before

        await is_refused("instructions-apply")
        await is_refused("instructions-discard")
        await talk.press("instructions-apply")
        await is_refused("closing-yes")
        await is_refused("closing-no")
        await talk.press("closing-yes")
        assert talk.working_rows() == []
        assert merk.telegram.answers(GROUP) == [talk.say("persona-applied", number=1)]
        check_servers(merk)


@pytest.mark.parametrize("trouble", ["reset", "reset_after"])
async def test_a_kill_between_the_delete_and_the_clean_up_is_finished_at_the_next_start(
    trouble: FaultKind, tmp_path: Path
) -> None:
    """The rows are gone and the process too, whether the last call took effect or not: the chat is cleaned."""
    async with deployment(tmp_path) as merk:
        talk = await open_talk(merk, ADA, "en")
        await propose_three(talk)
        await talk.press("instructions-apply", draft=3)
        telegram, working = merk.telegram, set(talk.cards)
        fault = telegram.fail(trouble, "deleteMessages?", times=None)
        yes = next(message for message in telegram.messages(ADA) if talk.say("closing-yes") in message.labels)
        telegram.press(ADA, yes.id, talk.say("closing-yes"))
        await telegram.wait_for(lambda: fault.hits, timeout=20)
        await merk.kill()
        assert talk.working_rows() == []
        assert merk.rows("SELECT 1 FROM outbox WHERE status = 'wiping'") != []
        assert bool(working & talk.texts().keys()) == (trouble == "reset")
        telegram.heal()
        await merk.start()
        await merk.settle()
        assert {message.id for message in telegram.deleted(ADA)} == working
        assert list(talk.texts().values()).count(talk.say("instructions-applied", number=1)) == 1
        assert talk.say("work-stub") not in talk.texts().values()
        check_servers(merk)


async def test_a_message_too_old_to_be_deleted_becomes_a_stub(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        talk = await open_talk(merk, ADA, "en")
        await propose_three(talk)
        await talk.press("instructions-apply", draft=3)
        old = min(talk.cards)
        merk.telegram.age(ADA, old, TWO_DAYS)
        await talk.press("closing-yes")
        stub = merk.telegram.message(ADA, old)
        assert stub is not None
        assert (stub.text, stub.labels) == (talk.say("work-stub"), [])
        assert {message.id for message in merk.telegram.deleted(ADA)} == talk.cards - {old}
        assert not any(word in text for word in WORDS for text in talk.texts().values())
        check_servers(merk)
