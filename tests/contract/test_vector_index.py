"""What every vector index promises; the exact one in memory is the oracle for the real one."""

import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.ports import Vector, VectorIndex, VectorRow
from memory.storage.index.chroma import ChromaIndex
from tests.fakes.index import Disk, ExactIndex

DIMENSION = 12


def make_exact(_directory: Path) -> VectorIndex:
    return ExactIndex(dimension=DIMENSION)


def make_chroma(directory: Path) -> VectorIndex:
    return ChromaIndex(directory / "chroma", name="test", dimension=DIMENSION)


@pytest.fixture(params=[make_exact, make_chroma], ids=["exact", "chroma"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    make: Callable[[Path], VectorIndex] = request.param
    made = make(tmp_path)
    await made.open()
    yield made
    await made.close()


WIDE = 20


@pytest.fixture(params=["exact", "chroma"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[VectorIndex, VectorIndex]]:
    """The same index before and after a change of embedder."""
    disk: Disk = {}
    former: VectorIndex = ExactIndex(name="former", dimension=WIDE, disk=disk)
    index: VectorIndex = ExactIndex(name="test", dimension=DIMENSION, disk=disk)
    if request.param == "chroma":
        former = ChromaIndex(tmp_path / "chroma", name="former", dimension=WIDE)
        index = ChromaIndex(tmp_path / "chroma", name="test", dimension=DIMENSION)
    yield former, index
    await index.close()


def wide(seed: int) -> Vector:
    drawn = np.random.default_rng(seed).standard_normal(WIDE, dtype=np.float32)
    return drawn / np.float32(np.linalg.norm(drawn))


def vector(seed: int) -> Vector:
    drawn = np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32)
    return drawn / np.float32(np.linalg.norm(drawn))


def row(owner: str, row_id: str, seed: int) -> VectorRow:
    return VectorRow(id=row_id, owner=owner, vector=vector(seed))


async def test_a_new_index_is_empty(index: VectorIndex) -> None:
    assert await index.count() == 0
    assert await index.ids("anna") == set()
    assert await index.query(["anna"], vector(1), 5) == []
    assert await index.delete("anna", ["m1"]) == 0


async def test_the_same_vector_comes_first_with_cosine_one(index: VectorIndex) -> None:
    await index.upsert([row("anna", f"m{seed}", seed) for seed in range(30)])
    best, *rest = await index.query(["anna"], vector(7), 5)
    assert (best.id, best.owner) == ("m7", "anna")
    assert best.cosine == pytest.approx(1, abs=1e-5)
    assert len(rest) == 4
    assert [hit.cosine for hit in rest] == sorted((hit.cosine for hit in rest), reverse=True)


async def test_an_opposite_vector_has_cosine_minus_one(index: VectorIndex) -> None:
    await index.upsert([VectorRow("m1", "anna", -vector(1))])
    (hit,) = await index.query(["anna"], vector(1), 5)
    assert hit.cosine == pytest.approx(-1, abs=1e-5)


async def test_p28_an_unscoped_query_is_refused(index: VectorIndex) -> None:
    """Even when it would find nothing."""
    with pytest.raises(ValueError, match="owners"):
        await index.query([], vector(1), 5)


async def test_only_the_named_owners_are_searched(index: VectorIndex) -> None:
    owners = [f"telegram:{number}|dm" for number in range(40)]  # more owners than shards
    await index.upsert([row(owner, "m1", number) for number, owner in enumerate(owners)])
    hits = await index.query(owners[3:6], vector(3), 40)
    assert {hit.owner for hit in hits} == set(owners[3:6])
    assert hits[0].owner == owners[3]


async def test_the_limit_holds_over_all_owners(index: VectorIndex) -> None:
    await index.upsert([row(f"o{number}", "m1", number) for number in range(40)])
    owners = [f"o{number}" for number in range(40)]
    assert len(await index.query(owners, vector(3), 7)) == 7
    assert await index.query(owners, vector(3), 0) == []


async def test_owners_may_use_the_same_ids(index: VectorIndex) -> None:
    """Owners that differ by a separator do not meet either."""
    await index.upsert([row("a", "b\nc", 1), row("a\nb", "c", 2), row("a", "c", 3)])
    assert await index.ids("a") == {"b\nc", "c"}
    assert await index.ids("a\nb") == {"c"}
    assert await index.delete("a", ["c"]) == 1
    assert await index.ids("a\nb") == {"c"}
    assert {(hit.owner, hit.id) for hit in await index.query(["a", "a\nb"], vector(1), 9)} == {
        ("a", "b\nc"),
        ("a\nb", "c"),
    }


async def test_upsert_replaces(index: VectorIndex) -> None:
    await index.upsert([row("anna", "m1", 1)])
    await index.upsert([row("anna", "m1", 2)])
    assert await index.count() == 1
    (hit,) = await index.query(["anna"], vector(2), 5)
    assert hit.cosine == pytest.approx(1, abs=1e-5)


async def test_the_last_of_two_rows_with_one_id_wins(index: VectorIndex) -> None:
    await index.upsert([row("anna", "m1", 1), row("anna", "m1", 2)])
    (hit,) = await index.query(["anna"], vector(2), 5)
    assert hit.cosine == pytest.approx(1, abs=1e-5)


async def test_p28_delete_removes_what_it_names_and_counts_what_was_there(index: VectorIndex) -> None:
    await index.upsert([row("anna", f"m{number}", number) for number in range(45)])
    await index.upsert([row("bert", f"m{number}", number) for number in range(5)])
    assert await index.delete("anna", [f"m{number}" for number in range(40)] + ["m3", "unknown"]) == 40
    assert await index.delete("anna", []) == 0
    assert await index.ids("anna") == {f"m{number}" for number in range(40, 45)}
    assert await index.count() == 10
    assert "m3" not in {hit.id for hit in await index.query(["anna"], vector(3), 50)}


async def test_what_remains_is_still_found_after_erasure(index: VectorIndex) -> None:
    await index.upsert([row(f"o{number % 5}", f"m{number}", number) for number in range(60)])
    await index.delete("o1", ["m1", "m6"])
    await index.delete("o2", list(await index.ids("o2")))
    await index.erase_residue()
    assert await index.count() == 46
    assert await index.ids("o2") == set()
    assert (await index.query(["o1"], vector(11), 1))[0].id == "m11"
    await index.upsert([row("o1", "m1", 1), row("o2", "new", 99)])
    assert (await index.query(["o1"], vector(1), 1))[0].id == "m1"
    assert (await index.query(["o2"], vector(99), 1))[0].id == "new"
    await index.erase_residue()
    assert await index.count() == 48


async def test_a_vector_of_another_dimension_is_refused(index: VectorIndex) -> None:
    wrong = np.ones(DIMENSION + 1, dtype=np.float32)
    with pytest.raises(ValueError, match="dimensions"):
        await index.upsert([VectorRow("m1", "anna", wrong)])
    with pytest.raises(ValueError, match="dimensions"):
        await index.query(["anna"], wrong, 5)
    assert await index.count() == 0


async def test_a_vector_that_is_not_finite_is_refused(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match="finite"):
        await index.upsert([VectorRow("m1", "anna", np.full(DIMENSION, np.nan, dtype=np.float32))])


async def test_a_closed_index_says_so_and_opens_again_with_its_rows(index: VectorIndex) -> None:
    await index.upsert([row("anna", "m1", 1)])
    await index.close()
    await index.close()
    with pytest.raises(OSError, match="not open"):
        await index.count()
    await index.open()
    await index.open()
    assert await index.ids("anna") == {"m1"}


# --- the oracle ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Upsert:
    owner: str
    row_id: str
    seed: int


@dataclass(frozen=True)
class Delete:
    owner: str
    row_ids: list[str]


@dataclass(frozen=True)
class Erase:
    pass


@dataclass(frozen=True)
class Reopen:
    pass


@dataclass(frozen=True)
class Ask:
    owner: str


Step = Upsert | Delete | Erase | Reopen | Ask
owners = st.sampled_from(["a", "b", "telegram:42|dm", "tèam|группа", "a\n"])
ids = st.sampled_from([f"m{number}" for number in range(6)])
upserts = st.builds(Upsert, owners, ids, st.integers(0, 40))
deletes = st.builds(Delete, owners, st.lists(ids, max_size=4))
asks = st.builds(Ask, owners)
others = st.builds(Erase) | st.builds(Reopen)
steps = st.lists(upserts | upserts | upserts | deletes | asks | asks | others, max_size=25)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps, seed=st.integers(0, 40), asked=st.lists(owners, min_size=1), limit=st.integers(0, 30))
async def test_the_real_index_answers_as_the_oracle_does(
    steps: list[Step], seed: int, asked: list[str], limit: int
) -> None:
    """Whatever was written, deleted, erased and reopened before."""
    with tempfile.TemporaryDirectory() as directory:
        real, oracle = make_chroma(Path(directory)), make_exact(Path(directory))
        await real.open()
        await oracle.open()
        for step in steps:
            assert await take(step, real) == await take(step, oracle)
        assert await real.count() == await oracle.count()
        for owner in asked:
            assert await real.ids(owner) == await oracle.ids(owner)
        found = await real.query(asked, vector(seed), limit)
        expected = await oracle.query(asked, vector(seed), limit)
        assert [hit.cosine for hit in found] == pytest.approx([hit.cosine for hit in expected], abs=1e-5)
        everything = {
            (hit.owner, hit.id): hit.cosine for hit in await oracle.query(asked, vector(seed), 1000)
        }  # hits with one cosine may come in any order
        for hit in found:
            assert hit.cosine == pytest.approx(everything[hit.owner, hit.id], abs=1e-5)
        await real.close()


async def take(step: Step, index: VectorIndex) -> int | None:
    match step:
        case Upsert(owner, row_id, seed):
            return await index.upsert([row(owner, row_id, seed)])
        case Delete(owner, row_ids):
            return await index.delete(owner, row_ids)
        case Erase():
            return await index.erase_residue()
        case Ask(owner):  # what was read for an answer may be remembered
            return len(await index.query([owner], vector(0), 30))
        case Reopen():
            await index.close()
            return await index.open()


async def test_another_embedders_vectors_answer_until_they_are_dropped(
    pair: tuple[VectorIndex, VectorIndex],
) -> None:
    former, index = pair
    await former.open()
    await former.upsert([VectorRow("m1", "anna", wide(1)), VectorRow("m2", "anna", wide(2))])
    await former.upsert([VectorRow("m1", "bert", wide(1))])
    await former.close()
    await index.open()
    await index.upsert([row("anna", "m9", 9)])
    hits = await index.query_other("former", WIDE, ["anna"], wide(2), 5)
    assert [hit.id for hit in hits] == ["m2", "m1"]
    assert {hit.owner for hit in hits} == {"anna"}
    assert await index.query_other("nobody", WIDE, ["anna"], wide(2), 5) == []
    with pytest.raises(ValueError, match="owners"):
        await index.query_other("former", WIDE, [], wide(2), 5)
    await index.drop_others()
    assert await index.query_other("former", WIDE, ["anna"], wide(2), 5) == []
    assert [hit.id for hit in await index.query(["anna"], vector(9), 5)] == ["m9"]
