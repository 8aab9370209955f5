"""Other people's messages, which stand beside the measured ones in every store: the same texts, the same vectors.

Rule: in Merk they are rows, words and vectors as it writes them itself, of owners who are never asked for.
"""

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench import fill
from memory.ports import Embedder
from memory.storage.database import Database
from memory.storage.tables import chats, messages, sessions, users

HOW = (
    "the same texts and vectors in every store; vectors: the embedder's of 1,000 kinds of sentence, each moved a little"
)
PER_PERSON = 500
_SEED = 20261201
_FIRST = 1_000_000_000
"""Ids below are those of the measured conversations."""
_NOW = 1_760_000_000_000


@dataclass(frozen=True, slots=True)
class Others:
    """Message by message; each person's stand together."""

    texts: list[str]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def people(self) -> int:
        return -(-len(self) // PER_PERSON)

    def rows(self) -> list[dict[str, str]]:
        """As the peers get them."""
        return [
            {"owner": f"u{_person(n)}", "turn": str(n), "text": f"Person {_person(n)}: {text}"}
            for n, text in enumerate(self.texts)
        ]


async def make(embedder: Embedder, count: int) -> Others:
    """So many messages of `bench.fill`'s sentences, the same in every run."""
    made = await fill.sentences(embedder, count, random.Random(_SEED))
    vectors = np.array([vector for _, vector in made], dtype=np.float32).reshape(count, embedder.dimension)
    return Others([text for text, _ in made], vectors)


async def put(database: Database, embedder: Embedder, others: Others) -> None:
    """Into Merk: everybody has a chat with sessions of their own."""
    common = {"created_at": _NOW}
    people = range(others.people)
    named = ({"id": _FIRST + n, "name": f"Person {n}", "role": "member"} | common for n in people)
    await fill.insert(database, users, named)
    talking = {"transport": "others", "kind": "ai"} | common
    await fill.insert(database, chats, ({"id": _FIRST + n, "external_id": str(n)} | talking for n in people))
    held = dict.fromkeys((_session(n), _person(n)) for n in range(len(others)))
    await fill.insert(database, sessions, (_session_row(*each) for each in held))
    await fill.insert(database, messages, (_message(n, text) for n, text in enumerate(others.texts)))
    await fill.write_evidence(database, embedder, lambda number, _: others.vectors[number - _FIRST])


def _person(number: int) -> int:
    return number // PER_PERSON


def _session(number: int) -> int:
    """Counted over all people; the last of each is shorter."""
    return _FIRST + _person(number) * PER_PERSON + number % PER_PERSON // fill.PER_SESSION


def _session_row(session: int, person: int) -> dict[str, object]:
    owned: dict[str, object] = {
        "chat_id": _FIRST + person,
        "user_id": _FIRST + person,
        "owner": f"u{person}",
        "is_current": False,
    }
    return owned | {"id": session, "thread": str(session), "created_at": _NOW, "last_used_at": _NOW}


def _message(number: int, text: str) -> dict[str, object]:
    person = _person(number)
    return {
        "id": _FIRST + number,
        "session_id": _session(number),
        "user_id": _FIRST + person,
        "role": "user",
        "speaker": f"Person {person}",
        "text": text,
        "created_at": _NOW + number,
    }
