"""The story of the mission, on Telegram, with the real SDKs: told in one chat, known in another, gone everywhere."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.merk_process import Merk, deployment
from tests.fakes.messages_api import Request, texts

ADA = 42


@dataclass(frozen=True)
class Story:
    language: str
    topic: str
    remember: str
    fact: str
    question: str
    near: str
    """A question near the earlier topic, in other words."""
    forget: str
    yes: str
    saved: str
    old_chat: str
    name: str = "Bruno"


STORIES = [
    Story(
        "en",
        "We are planning our summer trip to Riga: the ferry leaves on 12 June and the hotel is in the old town.",
        "Remember that my dog is called Bruno.",
        "My dog is called Bruno.",
        "What is my dog called?",
        "When does our holiday to Latvia begin?",
        "Forget that my dog is called Bruno.",
        "Yes, forget",
        "Saved",
        "Riga",
    ),
    Story(
        "de",
        "Wir planen unsere Sommerreise nach Riga: Die Fähre fährt am 12. Juni und das Hotel liegt in der Altstadt.",
        "Merk dir bitte, dass mein Hund Bruno heißt.",
        "Mein Hund heißt Bruno.",
        "Wie heißt mein Hund?",
        "Wann beginnt unser Urlaub in Lettland?",
        "Vergiss, dass mein Hund Bruno heißt.",
        "Ja, vergessen",
        "Gemerkt",
        "Riga",
    ),
    Story(
        "ru",
        "Мы планируем летнюю поездку в Ригу: паром отходит 12 июня, а отель находится в старом городе.",
        "Запомни, что мою собаку зовут Бруно.",
        "Мою собаку зовут Бруно.",
        "Как зовут мою собаку?",
        "Когда начинается наше путешествие в Латвию?",
        "Забудь, что мою собаку зовут Бруно.",
        "Да, забыть",
        "Запомнил",
        "Ригу",
        name="Бруно",
    ),
]


def answers(merk: Merk) -> list[Request]:
    """The requests that were made to answer somebody, as opposed to those in the background."""
    return [request for request in merk.model.requests if request.body.get("stream")]


async def ask(merk: Merk, text: str) -> Request:
    """Say something and return the first request that it led to, once it is answered."""
    before = len(answers(merk))
    shown = len(merk.telegram.messages(ADA, by_bot=True))
    merk.telegram.say(ADA, text)
    await merk.telegram.wait_for(
        lambda: len(answers(merk)) > before and len(merk.telegram.messages(ADA, by_bot=True)) > shown, timeout=30
    )
    return answers(merk)[before]


async def summarised(merk: Merk, count: int) -> None:
    await merk.telegram.wait_for(
        lambda: len(merk.rows("SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL")) >= count, timeout=40
    )


async def new_chat(merk: Merk) -> None:
    before = len(merk.rows("SELECT 1 FROM sessions"))
    merk.telegram.say(ADA, "/newchat")
    await merk.telegram.wait_for(lambda: len(merk.rows("SELECT 1 FROM sessions")) > before, timeout=20)


async def forget(merk: Merk, story: Story) -> None:
    """Ask for it, see the card, say Yes."""
    telegram = merk.telegram
    await ask(merk, story.forget)
    await telegram.wait_for(lambda: story.yes in telegram.last(ADA).labels, timeout=10)
    assert story.fact.rstrip(".") in telegram.last(ADA).text
    telegram.press(ADA, telegram.last(ADA).id, story.yes)
    await telegram.wait_for(lambda: not merk.rows("SELECT 1 FROM facts"), timeout=20)


async def gone(merk: Merk, name: str) -> None:
    """From every file within a minute, while Merk runs; and from every table."""
    await merk.telegram.wait_for(lambda: not merk.files_with(name), timeout=60)
    for table in ("messages", "summaries", "inbox", "outbox", "confirmations", "sessions"):
        assert name not in str(merk.rows(f"SELECT * FROM {table}")), table


async def switch_to_the_oldest(merk: Merk) -> None:
    """By /chats, the last of the list, and its first button."""
    telegram = merk.telegram
    telegram.say(ADA, "/chats")
    await telegram.wait_for(lambda: len(telegram.last(ADA).labels) >= 3, timeout=10)
    listed = telegram.last(ADA)
    for versions, position in ((2, 2), (3, 0)):
        card = telegram.message(ADA, listed.id)
        assert card is not None
        telegram.press(ADA, card.id, card.labels[position])
        await telegram.wait_for(lambda: _versions(merk, listed.id) == versions, timeout=10)  # noqa: B023 - awaited here


def _versions(merk: Merk, message_id: int) -> int:
    card = merk.telegram.message(ADA, message_id)
    return len(card.versions) if card else 0


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.language)
async def test_told_in_one_chat_known_in_another_gone_everywhere(story: Story, tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.model.on(user="(?i)remember|merk dir|запомни", has_tool="remember_fact").reply(
            tool=("remember_fact", {"fact": story.fact})
        )
        merk.model.on(user="(?i)forget|vergiss|забудь", has_tool="forget_fact").reply(
            tool=("forget_fact", {"query": story.fact})
        )
        merk.telegram.private_chat(ADA, "Ada", language=story.language)
        await merk.start()

        # chat A: a topic, and a fact that is stored by the tool
        await ask(merk, story.topic)
        await ask(merk, story.remember)
        await merk.telegram.wait_text(ADA, story.saved)
        assert merk.rows("SELECT text FROM facts") == [(story.fact.rstrip("."),)]
        await summarised(merk, 1)

        # another chat knows the fact, and finds the earlier chat for a question near it
        await new_chat(merk)
        assert story.name in texts(await ask(merk, story.question))
        near = texts(await ask(merk, story.near))
        assert "12" in near
        assert story.old_chat in near

        # a third chat forgets it
        await new_chat(merk)
        await forget(merk, story)
        await gone(merk, story.name)

        # and it is gone from the next request of this chat, of chat A and of a new one
        assert story.name not in texts(await ask(merk, story.question))
        await switch_to_the_oldest(merk)
        in_chat_a = texts(await ask(merk, story.question))
        assert story.old_chat in in_chat_a
        assert story.name not in in_chat_a
        await new_chat(merk)
        assert story.name not in texts(await ask(merk, story.question))
        assert merk.files_with(story.name) == []
        assert merk.telegram.violations == []
        assert merk.model.violations == []
        assert await merk.stop() == 0
