"""Which embedder answers questions while another one's vectors are being made.

Rule: a vector can be asked by the embedder that made it and by no other. The former one answers until the new vectors
are whole; where it cannot be had any more, words alone do.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from memory.ports import Embedder, EmbedderError, Vector
from memory.storage import kept
from memory.storage.database import Database

MakeEmbedder = Callable[[str], Awaitable[Embedder | None]]
"""The embedder of this key, where it can still be had."""

_FORMER = "memory.former_embedder"
"""kept_values: the key of the embedder whose vectors are whole, until those of the new one are and it is cleared."""

log = structlog.get_logger(__name__)


def key_of(embedder: Embedder) -> str:
    """What the vectors of an embedder are marked with. Raises EmbedderError while it does not know itself."""
    return f"{embedder.name}:{embedder.dimension}"


class Serving:
    """An embedder for questions: the configured one, or the former one while its vectors are the whole ones."""

    def __init__(self, database: Database, embedder: Embedder, make: MakeEmbedder | None = None) -> None:
        self._database = database
        self._embedder = embedder
        self._make = make
        self._former: Embedder | None = None
        self._whole = ""
        self.former_key = ""
        """Of the vectors that answer meanwhile; "" = the configured embedder's own do."""

    @property
    def is_former(self) -> bool:
        return bool(self.former_key)

    @property
    def is_silent(self) -> bool:
        """The former vectors are the whole ones, and nobody can ask them."""
        return self.is_former and self._former is None

    @property
    def _asked(self) -> Embedder:
        return self._former or self._embedder

    @property
    def name(self) -> str:
        return self._asked.name

    @property
    def dimension(self) -> int:
        return self._asked.dimension

    @property
    def floor(self) -> float:
        return self._asked.floor

    async def embed_query(self, text: str) -> Vector:
        self._require()
        return await self._asked.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self._require()
        return await self._asked.embed_documents(texts)

    async def close(self) -> None:
        """Let go of the former one; the configured one is its owner's."""
        former, self._former = self._former, None
        if former is not None:
            await former.close()

    def _require(self) -> None:
        if self.is_silent:
            raise EmbedderError(
                f"the vectors of {self.former_key} cannot be asked any more, the new ones are not whole"
            )

    # --- a change -----------------------------------------------------------------------------------

    async def begin(self, others: dict[str, int]) -> bool:
        """Serve what is whole. `others` counts the rows that are in step with another embedder than the configured
        one; say whether there is anything of another embedder at all.
        """
        async with self._database.read() as connection:
            self._whole = str(await kept.load(connection, _FORMER) or "") or max(
                others, key=others.__getitem__, default=""
            )
        if self._whole not in ("", key_of(self._embedder)):  # else it was changed back before the change was through
            self.former_key = self._whole
            await self.find_former()
        return bool(self._whole)

    async def note(self) -> None:
        """Keep in mind, over restarts and further changes, whose vectors are the whole ones."""
        async with self._database.read() as connection:
            is_noted = await kept.load(connection, _FORMER) == self._whole
        if not is_noted:
            await self._keep(self._whole)

    async def find_former(self) -> None:
        """Try to have the former embedder again, where it could not be had before."""
        if self._make is None or not self.is_silent:
            return
        found = await self._make(self.former_key)
        if found is not None and key_of(found) != self.former_key:
            await found.close()
            found = None
        self._former = found
        log.info("embedder.changes", former=self.former_key, answers=found is not None)

    async def end(self) -> None:
        """The new vectors are whole: from now on they answer."""
        self.former_key = ""
        await self.close()

    async def forget_former(self) -> None:
        """Nothing is left of the former vectors."""
        self._whole = ""
        await self._keep("")

    async def _keep(self, key: str) -> None:
        async with self._database.write() as connection:
            await kept.put(connection, _FORMER, key, 0)
