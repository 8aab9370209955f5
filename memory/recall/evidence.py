"""Messages as evidence: kept in step with the log off the path of any answer, and searched within their owners.

Rule: triggers say what changed, so whatever is held in memory is as old as two counters and never trusted beyond.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.language.text import has_words, one_line, sentences, without_marks
from memory.ports import Embedder, EmbedderError
from memory.recall.question import Question
from memory.recall.shelf import NO_CODES, NOWHERE, Codes, Ints, Posting, Shelf
from memory.storage.database import Database
from memory.storage.index import message_vectors, message_words
from memory.storage.index.message_vectors import Waiting
from memory.storage.index.message_words import Changes
from memory.storage.index.serving import Serving, key_of
from memory.types import Health

Progress = Callable[[int, int], None]
"""(done, total)"""

_WORDS_BATCH = 25
"""Messages indexed in one transaction: 5 ms at most."""
_VECTORS_BATCH = 16
_DROPPED = 500
_PAUSE_SECONDS = 0.01
_PIECE = 400
"""Characters of a part of a long message, and how many parts a person's and an assistant's may have."""
_MOST_PARTS = {True: 6, False: 2}
_MOST_POSTINGS = 500
"""Words of one shelf."""
_MOST_BYTES = 768 * 1024 * 1024
"""Of shelves held in memory; the one used longest ago goes first. A thousand messages are 0.7 MB."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """The owners' messages, and where the question's words stand in them."""

    shelf: Shelf
    hits: list[list[Posting]]
    names: dict[int, str]


@dataclass(frozen=True, slots=True)
class _Held:
    """A shelf as old as two counters, with where the words stand in its messages that were asked for."""

    changes: Changes
    shelf: Shelf
    postings: dict[str, Posting] = field(default_factory=dict[str, Posting])

    def keep(self, read: Mapping[str, Posting]) -> None:
        """Remember where these words stand, if anywhere; with too much remembered, begin anew."""
        self.postings.update(read)
        size = sum(posting.nbytes for posting in self.postings.values())
        if len(self.postings) > _MOST_POSTINGS or size > self.shelf.nbytes:
            self.postings.clear()


class Evidence:
    """The one user of the words and vectors of messages."""

    def __init__(self, database: Database, embedder: Embedder, serving: Serving | None = None) -> None:
        self._database = database
        self._embedder = embedder
        self._serving = serving or Serving(database, embedder)
        self._held: OrderedDict[tuple[str, ...], _Held] = OrderedDict()
        self._names: dict[int, str] = {}
        self._working = asyncio.Lock()
        self.has_more = False
        """The last round of catching up ended before its work."""

    @property
    def name(self) -> str:
        return key_of(self._embedder)

    # --- keeping in step ----------------------------------------------------------------------------

    async def catch_up(self, progress: Progress | None = None, seconds: float | None = None) -> int:
        """Index and embed what waits, in batches; return how many were embedded. A silent embedder is no error.

        `seconds`: so long at most, other work comes in between; `has_more` says whether that was not enough.
        """
        async with self._working:
            self.has_more = False
            await self._index()
            try:
                return await self._embed(progress, seconds)
            except EmbedderError as error:
                log.warning("evidence.not_embedded", error=type(error).__name__)
                return 0

    async def rebuild(self, progress: Progress | None = None) -> int:
        """All of it, from the log. Raises EmbedderError."""
        async with self._working:
            async with self._database.write() as connection:
                await message_words.begin_anew(connection)
            await self._index()
            return await self._embed(progress)

    async def behind(self) -> int:
        """How many messages are not indexed or not embedded yet."""
        async with self._database.search() as connection:
            waiting = await message_words.waiting(connection)
            try:
                return waiting + await message_vectors.behind(connection, self.name)
            except EmbedderError:  # its dimension is not known before it first answered
                return waiting

    async def made_by(self) -> dict[str | None, int]:
        """How many messages are in step with which embedder's key; None: with none yet."""
        async with self._database.search() as connection:
            return await message_vectors.made_by(connection)

    async def drop_others(self) -> None:
        """Remove all vectors but the configured embedder's, in short steps."""
        after: int | None = 0
        while after is not None:
            async with self._database.write() as connection:
                after = await message_vectors.drop_others(connection, self.name, after, _DROPPED)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def health(self) -> Health:
        """How far the messages are in step."""
        return Health.following("messages", await self.behind(), to="index")

    async def _index(self) -> None:
        while True:
            async with self._database.write() as connection:
                done = await message_words.index_waiting(connection, _WORDS_BATCH)
            if done < _WORDS_BATCH:
                return

    async def _embed(self, progress: Progress | None, seconds: float | None = None) -> int:
        total, done, began = 0, 0, time.monotonic()
        while batch := await self._next():
            if seconds is not None and time.monotonic() - began > seconds:
                self.has_more = True
                return done
            total = total or (await self.behind() if progress else 0)
            parts = [_parts(row) for row in batch]
            vectors = iter(await self._embedder.embed_documents([text for each in parts for text in each]))
            made = [(row, [next(vectors) for _ in of_row]) for row, of_row in zip(batch, parts, strict=True)]
            async with self._database.write() as connection:
                await message_vectors.put(connection, self.name, made)
            done += len(batch)
            if progress:
                progress(done, total)
        return done

    async def _next(self) -> list[Waiting]:
        async with self._database.search() as connection:
            return await message_vectors.waiting(connection, await self._name(), _VECTORS_BATCH)

    async def _name(self) -> str:
        """The embedder's name and dimension; asks it once, where only it knows."""
        try:
            return self.name
        except EmbedderError:
            await self._embedder.embed_query("ok")
            return self.name

    # --- searching ----------------------------------------------------------------------------------

    async def find(self, owners: Sequence[str], question: Question) -> Found:
        """The evidence of these owners. Raises ValueError without owners, and the database's errors."""
        if not owners:
            raise ValueError("a search names the owners it may see (P28)")
        async with self._database.search() as connection:
            held = await self._hold(connection, tuple(sorted(owners)))
            hits = await self._hits(connection, held, message_words.terms_of(owners, question.forms))
            names = await self._names_of(connection, held.shelf)
        return Found(held.shelf, hits, names)

    async def _hits(
        self, connection: AsyncConnection, held: _Held, words: Sequence[Sequence[str]]
    ) -> list[list[Posting]]:
        """Where the words stand: as remembered, for what was asked once is asked again, or as read now."""
        terms = {term for word in words for term in word}
        unknown = terms - held.postings.keys()
        found = {term: held.postings[term] for term in terms - unknown}
        if unknown:
            read = await message_words.hits(connection, unknown)
            new = {term: held.shelf.posting(read.get(term, NOWHERE)) for term in unknown}
            held.keep(new)
            found |= new
        there = {term: posting for term, posting in found.items() if len(posting.whose)}
        return [[there[term] for term in word if term in there] for word in words]

    async def _names_of(self, connection: AsyncConnection, shelf: Shelf) -> dict[int, str]:
        people = shelf.people
        if not people <= self._names.keys():
            self._names |= await message_words.names(connection, people)
        return {person: self._names[person] for person in people if person in self._names}

    async def _hold(self, connection: AsyncConnection, owners: tuple[str, ...]) -> _Held:
        """The owners' columns: as held, with what was added since, or read anew."""
        async with self._database.read() as look_up:  # found by its key: not worth a trip to another thread
            now = await message_words.changes_of(look_up, owners)
        if self._serving.is_former:  # its vectors go with their words only; new ones are none of theirs
            now = replace(now, vectors=-1)
        held = self._held.get(owners)
        if held is None or held.changes != now:
            held = self._held[owners] = await self._read(connection, owners, now, held)
            while len(self._held) > 1 and sum(each.shelf.nbytes for each in self._held.values()) > _MOST_BYTES:
                self._held.popitem(last=False)
        self._held.move_to_end(owners)
        return held

    async def _read(
        self, connection: AsyncConnection, owners: tuple[str, ...], now: Changes, held: _Held | None
    ) -> _Held:
        if held is not None:
            rows = await message_words.columns(connection, owners, held.shelf.last)
            codes = await self._codes(connection, owners, held.shelf.last_coded)
            if now == Changes(held.changes.words + len(rows), held.changes.vectors + len(codes[0])):
                return await self._with_later(connection, owners, now, held, rows, codes)  # only added at the end
        rows = await message_words.columns(connection, owners, 0)
        return _Held(now, Shelf.of(rows, await self._codes(connection, owners, 0)))

    async def _with_later(
        self, connection: AsyncConnection, owners: tuple[str, ...], now: Changes, held: _Held, rows: Ints, codes: Codes
    ) -> _Held:
        shelf, postings = held.shelf.with_later(rows, codes), dict(held.postings)
        if len(rows) and postings:
            later = await message_words.later_hits(connection, owners, held.shelf.last, postings.keys())
            for term, ids in later.items():
                postings[term] = postings[term].with_later(shelf.posting(ids))
        return _Held(now, shelf, postings)

    async def _codes(self, connection: AsyncConnection, owners: Sequence[str], after: int) -> Codes:
        if self._serving.is_silent:
            return NO_CODES
        try:
            name, dimension = key_of(self._serving), self._serving.dimension
        except EmbedderError:
            return NO_CODES
        return await message_vectors.of_owners(connection, owners, name, after, dimension)


def _parts(row: Waiting) -> list[str]:
    """What is embedded of a message: itself, or a long one's sentences in pieces."""
    pieces: list[str] = [""]
    for sentence in sentences(without_marks(row.text)):
        if pieces[-1] and len(pieces[-1]) + len(sentence) > _PIECE:
            pieces.append("")
        pieces[-1] += sentence
    told = [one_line(piece) for piece in pieces]
    return [piece for piece in told if has_words(piece)][: _MOST_PARTS[row.is_person]] or [told[0] or "…"]
