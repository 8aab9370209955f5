"""The text of a message as a model should read it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram import MessageEntity, User

from bot.transports.telegram.wording import Me, read, units

ME = Me(4242, "Merk_Bot")


def entity(kind: str, text: str, part: str, *, url: str | None = None, language: str | None = None) -> MessageEntity:
    """An entity over the first occurrence of `part`, counted as Telegram counts."""
    return MessageEntity(kind, units(text[: text.index(part)]), units(part), url=url, language=language)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@merk_bot what is new?", "what is new?"),
        ("@MERK_BOT, what is new?", "what is new?"),
        ("Hey @merk_bot, what is new?", "Hey, what is new?"),
        ("what is new, @merk_bot", "what is new,"),
        ("🎉 party @merk_bot 🎉", "🎉 party 🎉"),
        ("@merk_bot", ""),
    ],
)
def test_a_mention_in_a_group_is_taken_out(text: str, left: str) -> None:
    part = text[text.index("@") :][: len("@merk_bot")]
    found = read(text, [entity("mention", text, part)], ME, in_group=True)
    assert (found.text, found.is_mention) == (left, True)


def test_a_mention_by_name_counts() -> None:
    """Telegram links a user without a user name as text_mention; bots can be linked so as well."""
    link = MessageEntity("text_mention", 0, 4, user=User(4242, "Merk", is_bot=True))
    assert read("Merk, hello", [link], ME, in_group=True).text == "hello"
    other = MessageEntity("text_mention", 0, 4, user=User(43, "Merk", is_bot=False))
    assert not read("Merk, hello", [other], ME, in_group=True).is_mention


def test_another_name_and_a_private_chat_stay_as_they_are() -> None:
    text = "@merk_bot_two hello"
    assert read(text, [entity("mention", text, "@merk_bot_two")], ME, in_group=True).text == text
    text = "@merk_bot hello"
    assert read(text, [entity("mention", text, "@merk_bot")], ME, in_group=False).text == text


def test_the_name_alone_without_an_entity_is_no_mention() -> None:
    """In an address such as ada@merk_bot Telegram marks none."""
    assert not read("mail ada@merk_bot", [], ME, in_group=True).is_mention


@pytest.mark.parametrize(
    ("text", "left", "is_command", "is_for_another"),
    [
        ("/memory", "/memory", True, False),
        ("/remember@merk_bot the milk", "/remember the milk", True, False),
        ("/remember@other_bot the milk", "/remember@other_bot the milk", False, True),
        ("/usr/bin is a folder", "/usr/bin is a folder", False, False),
        ("and / or", "and / or", False, False),
        ("see /memory", "see /memory", False, False),
    ],
)
def test_commands_are_normalised(text: str, left: str, is_command: bool, is_for_another: bool) -> None:
    found = read(text, [], ME, in_group=True)
    assert (found.text, found.is_command, found.is_for_another) == (left, is_command, is_for_another)


def test_code_and_links_are_markdown_again() -> None:
    text = "🎉 run x=1 or see docs\nprint(1)\nok"
    entities = [
        entity("pre", text, "print(1)", language="python"),
        entity("code", text, "x=1"),
        entity("text_link", text, "docs", url="https://example.org"),
        entity("bold", text, "run"),
    ]
    expected = "🎉 run `x=1` or see [docs](https://example.org)\n```python\nprint(1)\n```\nok"
    assert read(text, entities, ME, in_group=False).text == expected


def test_code_in_the_middle_of_a_line_gets_lines_of_its_own() -> None:
    assert read("do a=1 now", [MessageEntity("pre", 3, 3)], ME, in_group=False).text == "do \n```\na=1\n```\n now"


def test_backticks_in_code_do_not_end_it() -> None:
    assert read("a`b", [MessageEntity("code", 0, 3)], ME, in_group=False).text == "`` a`b ``"
    assert read("a```b", [MessageEntity("pre", 0, 5)], ME, in_group=False).text == "````\na```b\n````"


KINDS = st.sampled_from(["pre", "code", "text_link", "mention", "text_mention", "bold", "url", "bot_command"])
ENTITIES = st.lists(st.builds(MessageEntity, KINDS, st.integers(0, 50), st.integers(0, 50), st.just("https://e.org")))
TEXTS = st.text(st.characters(exclude_categories=()), max_size=60)


@given(TEXTS, ENTITIES, st.booleans())
def test_any_text_with_any_entities_is_read_and_can_be_stored(
    text: str, entities: list[MessageEntity], in_group: bool
) -> None:
    """Lone surrogates and entities that cut a pair or overlap must not break anything."""
    found = read(text, entities, ME, in_group=in_group)
    assert found.text.encode("utf-8").decode() == found.text


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60))
def test_text_without_entities_is_left_alone(text: str) -> None:
    assert read(f"x{text}", [], ME, in_group=True).text == f"x{text}"
