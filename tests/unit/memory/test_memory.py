"""Memory as a whole: opening, the loop, health, rebuilding."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from memory.memory import Memory
from memory.ports import EmbedderError, Vector
from memory.types import MemorySettings
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.unit.memory.world import World


class _Broken(ExactIndex):
    """An index whose directory cannot be used until it is repaired."""

    is_broken = True

    async def open(self) -> None:
        if self.is_broken:
            raise OSError("no such directory")
        await super().open()


class _OtherEmbedder(WordEmbedder):
    name = "other"  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]


class _Slow(WordEmbedder):
    """Its first call loads a model."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def embed_query(self, text: str) -> Vector:
        seconds, self.seconds = self.seconds, 0.0
        await asyncio.sleep(seconds)
        return await super().embed_query(text)


async def _lines(memory: Memory) -> dict[str, tuple[bool, str]]:
    return {line.name: (line.ok, line.detail) for line in await memory.health()}


async def test_a_healthy_memory_says_so(world: World) -> None:
    assert await _lines(world.memory) == {
        "messages": (True, "in step"),
        "store": (True, "answers"),
        "embedder": (True, "words:64"),
        "index": (True, "in step"),
        "learning": (True, "in step"),
        "observations": (True, "off: plain cannot do it"),
    }


async def test_an_index_that_does_not_open_is_not_fatal(world: World) -> None:
    """Degraded, said in health with a remedy, and made good as soon as it opens."""
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    broken = _Broken()
    world.vectors = broken
    memory = world.reborn()
    await memory.open()
    assert await memory.learn() == 1
    (index,) = [line for line in await memory.health() if line.name == "index"]
    assert not index.ok
    assert index.remedy
    assert [each.session_id for each in (await memory.recall(ada, 0, "fence paint")).recollections] == [session.id]
    broken.is_broken = False
    await memory.learn()
    assert (await _lines(memory))["index"] == (True, "in step")
    assert await broken.ids(ada.owner) == {f"{session.id}.0"}


async def test_an_index_that_lost_its_rows_is_filled_again(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    await world.memory.learn()
    world.vectors = ExactIndex()
    memory = world.reborn()
    await memory.open()
    assert (await _lines(memory))["index"] == (True, "1 to embed")
    await memory.learn()
    assert await world.vectors.ids(ada.owner) == {f"{session.id}.0"}


async def test_p27_a_vector_without_a_summary_is_swept_at_start(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "The fence needs paint.", "OK")
    await world.talk(ada, "The roof leaks badly.", "OK")
    await world.memory.learn()
    async with world.database.write() as connection:
        await connection.exec_driver_sql("DELETE FROM summaries WHERE session_id = 1")
    await world.reborn().open()
    assert await world.vectors.ids(ada.owner) == {"2.0"}
    assert not world.vectors.has_residue


async def test_a_dead_embedder_is_caught_up_with_later(world: World) -> None:
    ada = await world.person("ada")
    world.embedder.down = True
    await world.talk(ada, "The fence needs paint.", "OK")
    assert await world.memory.learn() == 1
    (row,) = await world.rows("summaries")
    assert row["indexed_as"] is None
    lines = await _lines(world.memory)
    assert lines["embedder"] == (False, "words: EmbedderError")
    assert lines["index"] == (True, "1 to embed")
    world.embedder.down = False
    assert await world.memory.learn() == 0
    assert (await world.rows("summaries"))[0]["indexed_as"] == "words:64"


async def test_p30_another_embedder_embeds_everything_anew(world: World) -> None:
    ada = await world.person("ada")
    for i in range(25):
        await world.talk(ada, f"Fence number {i} needs paint.", "OK")
    await world.memory.learn()
    world.embedder, world.vectors = _OtherEmbedder(), ExactIndex()
    memory = world.reborn()
    await memory.open()
    assert (await _lines(memory))["index"] == (True, "25 to embed")
    await memory.learn()
    assert {row["indexed_as"] for row in await world.rows("summaries")} == {"other:64"}
    assert await world.vectors.count() == 25


async def test_everything_derived_is_rebuilt_from_sql(world: World) -> None:
    ada = await world.person("ada")
    for i in range(23):
        await world.talk(ada, f"Fence number {i} needs paint.", "OK")
    await world.memory.learn()
    async with world.database.write() as connection:
        await connection.exec_driver_sql("DELETE FROM summary_words")
    world.vectors = ExactIndex()
    memory = world.reborn()
    seen: list[tuple[int, int]] = []
    assert await memory.reindex(lambda done, total: seen.append((done, total))) == 23
    assert seen[-2:] == [(20, 23), (23, 23)]
    assert max(done for done, _ in seen) == 46, "the messages, too"
    world.embedder.down = True
    assert [each.session_id for each in (await memory.recall(ada, 0, "fence number 7")).recollections] == [8]
    with pytest.raises(EmbedderError):
        await memory.reindex()


async def test_the_loop_learns_when_woken_and_stops_at_once(world: World) -> None:
    ada = await world.person("ada")
    stop = asyncio.Event()
    loop = asyncio.create_task(world.memory.learn_forever(stop))
    await world.talk(ada, "The fence needs paint.", "OK")
    world.memory.wake()
    async with asyncio.timeout(5):
        while not await world.rows("summaries"):  # noqa: ASYNC110 - the row is what is waited for
            await asyncio.sleep(0.01)
        stop.set()
        await loop


async def test_the_loop_tries_a_failure_again_by_itself(world: World) -> None:
    """Nobody speaks and the work that failed is still done, when its time has come."""
    stop = asyncio.Event()
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    await world.insert(
        "learning", kind="summaries", session_id=session.id, retry_at=world.now + 200, attempts=1, last_error="X"
    )
    loop = asyncio.create_task(world.memory.learn_forever(stop))
    await asyncio.sleep(0.1)
    world.clock.advance(seconds=1)
    async with asyncio.timeout(5):
        while not await world.rows("summaries"):  # noqa: ASYNC110 - the row is what is waited for
            await asyncio.sleep(0.01)
        stop.set()
        await loop


async def test_d20_a_question_that_comes_while_memory_opens_waits_for_it(world: World) -> None:
    """Loading the model takes longer than a recall may: the first question after a start is recalled by meaning."""
    ada = await world.person("ada")
    await world.talk(ada, "The fence needs paint.", "OK")
    await world.memory.learn()
    world.embedder = _Slow(0.4)
    memory = world.reborn(settings=MemorySettings(recall_seconds=0.2))
    opening = asyncio.create_task(memory.open())
    await asyncio.sleep(0)
    assert (await memory.recall(ada, 0, "hi")).degraded == ()
    assert not opening.done(), "a greeting waits for nothing"
    found = await memory.recall(ada, 0, "Which fence?")
    assert found.degraded == ()
    assert found.trace["sessions"][0]["cosine"] is not None
    await opening


async def test_d20_an_embedder_that_does_not_answer_is_not_fatal(world: World) -> None:
    world.embedder.down = True
    await world.memory.open()
    assert (await _lines(world.memory))["index"] == (True, "in step")


@pytest.mark.parametrize("error", [OSError("disk full"), OperationalError("INSERT", (), Exception("disk full"))])
async def test_d21_a_full_disk_is_one_line_in_the_log(
    world: World, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = asyncio.Event()

    async def learn() -> int:
        failed.set()
        raise error

    monkeypatch.setattr(world.memory, "learn", learn)
    stop = asyncio.Event()
    running = asyncio.create_task(world.memory.learn_forever(stop))
    world.memory.wake()
    await failed.wait()
    stop.set()
    await running
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "learn.failed" in lines[0]
