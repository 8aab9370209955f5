"""The text of a message as a model should read it: code and links as Markdown, the bot's own mention taken out. Pure.

Rule: Telegram counts entities in UTF-16 code units, so the text is cut as UTF-16.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from telegram import MessageEntity

_MENTION = "\0"  # stands for the bot's mention; Telegram passes no control characters
_NEWLINE = "\n".encode("utf-16-le")
_AT_START = re.compile(rf"^\s*{_MENTION}[,:]?\s*")
_INSIDE = re.compile(rf"[^\S\n]*{_MENTION}")
_COMMAND = re.compile(r"(/[A-Za-z][A-Za-z0-9_]*)(?:@([A-Za-z0-9_]+))?(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself, as messages may name it."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class Wording:
    text: str
    is_mention: bool = False
    """The bot is named in it."""
    is_command: bool = False
    is_for_another: bool = False
    """A command that names another bot."""


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def read(text: str, entities: Iterable[MessageEntity], me: Me, *, in_group: bool) -> Wording:
    """Rebuild what was written. Mentions of the bot are taken out in groups only; `/name@me` becomes `/name`."""
    rebuilt, is_mention = _rebuild(text, entities, me if in_group else None)
    if is_mention:
        rebuilt = _INSIDE.sub("", _AT_START.sub("", rebuilt)).strip()
    command = _COMMAND.match(rebuilt)
    if command is None:
        return Wording(rebuilt, is_mention)
    name, addressee = command[1], command[2]
    if addressee and addressee.casefold() != me.username.casefold():
        return Wording(rebuilt, is_mention, is_for_another=True)
    return Wording(name + rebuilt[command.end() :], is_mention, is_command=True)


def _rebuild(text: str, entities: Iterable[MessageEntity], me: Me | None) -> tuple[str, bool]:
    raw = text.replace(_MENTION, " ").encode("utf-16-le", "surrogatepass")
    pieces: list[str] = []
    done = 0
    is_mention = False
    for entity in sorted(entities, key=lambda entity: entity.offset):
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        if start < done or end > len(raw):
            continue  # inside one that is rebuilt already, or past the end
        words = _decode(raw[start:end])
        new = _MENTION if _names(entity, words, me) else _marked(entity, words)
        if new is None:
            continue
        if entity.type == MessageEntity.PRE:  # a fence stands on lines of its own
            before = "" if raw[start - 2 : start] in (b"", _NEWLINE) else "\n"
            after = "" if raw[end : end + 2] in (b"", _NEWLINE) else "\n"
            new = f"{before}{new}{after}"
        is_mention = is_mention or new == _MENTION
        pieces += [_decode(raw[done:start]), new]
        done = end
    return "".join([*pieces, _decode(raw[done:])]), is_mention


def _names(entity: MessageEntity, words: str, me: Me | None) -> bool:
    if me is None:
        return False
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    return entity.type == MessageEntity.MENTION and words.casefold() == f"@{me.username}".casefold()


def _marked(entity: MessageEntity, words: str) -> str | None:
    """The words in Markdown; None for formatting that says nothing."""
    match entity.type:
        case MessageEntity.PRE:
            fence = _fence(words, 3)
            code = words.strip("\n")
            return f"{fence}{entity.language or ''}\n{code}\n{fence}"
        case MessageEntity.CODE:
            ticks = _fence(words, 1)
            padding = " " if "`" in words else ""
            return f"{ticks}{padding}{words}{padding}{ticks}"
        case MessageEntity.TEXT_LINK if entity.url:
            return f"[{words}]({entity.url})"
        case _:
            return None


def _fence(words: str, least: int) -> str:
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    return "`" * (longest + 1 if longest >= least else least)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-16-le", "replace")  # half a surrogate pair cannot be stored
