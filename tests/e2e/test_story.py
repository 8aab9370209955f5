"""The story of the mission, on Telegram, with the real SDKs: told in one chat, known in another, gone everywhere."""

import asyncio
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


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.language)
async def test_told_in_one_chat_known_in_another_gone_everywhere(story: Story, tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        telegram, model = merk.telegram, merk.model
        model.on(user="(?i)remember|merk dir|запомни", has_tool="remember_fact").reply(
            tool=("remember_fact", {"fact": story.fact})
        )
        model.on(user="(?i)forget|vergiss|забудь", has_tool="forget_fact").reply(
            tool=("forget_fact", {"query": story.fact})
        )
        telegram.private_chat(ADA, "Ada", language=story.language)
        await merk.start()

        # chat A: a topic, and a fact that is stored by the tool
        await ask(merk, story.topic)
        await ask(merk, story.remember)
        await telegram.wait_text(ADA, story.saved)
        assert merk.rows("SELECT text FROM facts") == [(story.fact.rstrip("."),)]
        await summarised(merk, 1)

        # another chat knows the fact, and finds the earlier chat for a question near it
        await new_chat(merk)
        assert story.name in texts(await ask(merk, story.question))
        near = texts(await ask(merk, story.near))
        assert "12" in near
        assert story.old_chat in near

        # a third chat forgets it: card, Yes, receipt
        await new_chat(merk)
        await ask(merk, story.forget)
        card = await telegram.wait_text(ADA, story.fact.rstrip("."))
        await telegram.wait_for(lambda: story.yes in telegram.last(ADA).labels, timeout=10)
        del card
        telegram.press(ADA, telegram.last(ADA).id, story.yes)
        await telegram.wait_for(lambda: not merk.rows("SELECT 1 FROM facts"), timeout=20)

        # gone from every store and every file within a minute, while Merk runs
        async with asyncio.timeout(60):
            while merk.files_with(story.name):
                await asyncio.sleep(0.5)
        for table in ("messages", "summaries", "inbox", "outbox", "confirmations", "sessions"):
            assert story.name not in str(merk.rows(f"SELECT * FROM {table}")), table

        # and from the next request of this chat, of chat A and of a new one
        assert story.name not in texts(await ask(merk, story.question))
        telegram.say(ADA, "/chats")
        chats = await telegram.wait_for(lambda: len(telegram.last(ADA).labels) >= 3 and telegram.last(ADA), timeout=10)
        telegram.press(ADA, chats.id, chats.labels[2])
        await telegram.wait_for(lambda: len(telegram.message(ADA, chats.id).versions) > 1, timeout=10)  # pyright: ignore[reportOptionalMemberAccess]
        opened = telegram.message(ADA, chats.id)
        assert opened is not None
        telegram.press(ADA, chats.id, opened.labels[0])
        await telegram.wait_for(lambda: len(telegram.message(ADA, chats.id).versions) > 2, timeout=10)  # pyright: ignore[reportOptionalMemberAccess]
        in_chat_a = texts(await ask(merk, story.question))
        assert story.old_chat in in_chat_a
        assert story.name not in in_chat_a
        await new_chat(merk)
        assert story.name not in texts(await ask(merk, story.question))
        assert merk.files_with(story.name) == []
        assert telegram.violations == []
        assert model.violations == []
        assert await merk.stop() == 0
