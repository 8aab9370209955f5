"""A change of embedder: from the first start with another one until nothing of the former one's vectors is left.

Rule: what is whole answers. The new vectors take over all at once, and only then do the former ones go.
"""

import structlog

from memory.ports import EmbedderError
from memory.recall.evidence import Evidence
from memory.storage.index.serving import Serving
from memory.storage.index.vectors import Vectors
from memory.types import Health

log = structlog.get_logger(__name__)


class Change:
    """Looks after a change, if there is one. Its state is in the rows: a restart goes on with it."""

    def __init__(self, serving: Serving, evidence: Evidence, vectors: Vectors) -> None:
        self._serving = serving
        self._evidence = evidence
        self._vectors = vectors
        self._has_looked = False
        self._is_under_way = False

    async def look(self) -> None:
        """Find out which vectors are the whole ones; writes nothing. Nothing is known while the embedder is silent."""
        try:
            ours = self._evidence.name
        except EmbedderError:
            return
        others = {key: count for key, count in (await self._made_by()).items() if key is not None and key != ours}
        self._is_under_way = await self._serving.begin(others)
        self._has_looked = True

    async def proceed(self) -> None:
        """Take a step, where one can be taken: the former embedder is had again, or the new vectors take over."""
        if not self._has_looked:
            await self.look()
        if not self._is_under_way:
            return
        await self._serving.note()
        await self._serving.find_former()
        done, total = await self.progress()
        if not self._vectors.is_open or done < total:
            return
        await self._serving.end()
        try:
            await self._evidence.drop_others()
            await self._vectors.drop_others()
        except OSError as error:  # with the next step
            log.warning("embedder.former_not_removed", error=type(error).__name__)
            return
        await self._serving.forget_former()
        self._is_under_way = False
        log.info("embedder.changed", rows=total)

    async def progress(self) -> tuple[int, int]:
        """(done, total): of the rows that have vectors, how many have the new ones."""
        made = await self._made_by()
        made.pop(None, None)  # what came since: it waits for its first ones
        return made.get(self._evidence.name, 0), sum(made.values())

    async def health(self) -> list[Health]:
        """One line while a change is under way, none else."""
        if not self._is_under_way:
            return []
        done, total = await self.progress()
        answers = "its vectors answer"
        if self._serving.is_silent:
            answers = f"only words answer until then, as {self._serving.former_key} cannot be asked any more"
        elif self._serving.is_former:
            answers = f"{self._serving.former_key} answers until then"
        said = f"{done} of {total} embedded anew with {self._evidence.name}; {answers}"
        remedy = "It goes on by itself; `merk reindex` does it at once, while Merk is stopped."
        return [Health("embedding", ok=not self._serving.is_silent, detail=said, remedy=remedy, done=done, total=total)]

    async def _made_by(self) -> dict[str | None, int]:
        made = await self._evidence.made_by()
        for key, count in (await self._vectors.made_by()).items():
            made[key] = made.get(key, 0) + count
        return made
