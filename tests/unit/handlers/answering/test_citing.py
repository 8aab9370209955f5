"""Marks of recollections are for the machine: no person ever sees one, however an answer comes in."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from handlers.answering.citing import MARKS, Citations
from memory.storage.database import Database
from memory.storage.tables import messages, observation_feedback
from tests.fakes.house import house
from tests.fakes.transport import Preview


def told(pieces: Sequence[str]) -> tuple[list[str], Citations]:
    cited = Citations()
    return [*(cited.read(piece) for piece in pieces), cited.finish()], cited


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Bruno [o12].", "Bruno."),
        ("Bruno[o12], in 2021 [m3][o4].", "Bruno, in 2021."),
        ("[o12] Bruno", " Bruno"),
        ("Bruno [o1, m2].", "Bruno."),
        ("See [1] and [o] and [old].", "See [1] and [o] and [old]."),
        ("`a[m1]` is code [o3]", "`a[m1]` is code"),
        ("```\nx = a[m1]\n```\nso [m2]", "```\nx = a[m1]\n```\nso"),
        ("It ends with a bracket [", "It ends with a bracket ["),
    ],
)
def test_marks_go_and_everything_else_stays(said: str, shown: str) -> None:
    """Whole, and letter by letter."""
    assert "".join(told([said])[0]) == shown
    assert "".join(told(list(said))[0]) == shown


def test_what_was_cited_is_known_once_each_in_order() -> None:
    cited = told(["Bruno [o12] and [o3] and [o12, m", "7]."])[1]
    assert (cited.observations, cited.messages) == ([12, 3], [7])


@given(st.lists(st.text(alphabet="ab[]om12,; \n", max_size=6), max_size=12))
def test_however_it_is_cut_the_text_is_the_same_and_no_part_of_a_mark_is_shown(pieces: list[str]) -> None:
    shown, _ = told(pieces)
    assert "".join(shown) == "".join(told(["".join(pieces)])[0])
    grown = ""
    for piece in shown[:-1]:
        grown += piece
        assert not MARKS.search(grown) or MARKS.search("".join(shown))


async def test_an_answer_shows_no_mark_growing_or_whole_and_its_use_is_counted_once(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, style=Preview.DRAFT) as opened:
        await opened.say("My dog is called Bruno.", ref="r1")
        await opened.say("/keep", reply_to="r1")
        await opened.say("/newchat")
        opened.model.script.append("It is Bruno [o1] as you said [o99].")
        assert "It is Bruno as you said." in await opened.say("What is my dog called?")
        assert not any("[o" in text for text in (*opened.transport.drafts, *opened.transport.texts()))
        async with database.read() as connection:
            stored = (await connection.execute(sa.select(messages.c.text, messages.c.memory_trace))).all()
        assert all("[o" not in row[0] for row in stored)
        assert stored[-1][1]["cited"] == {"observations": [1, 99], "messages": []}
        await opened.memory.learn()
        await opened.memory.learn()
        async with database.read() as connection:
            kinds = (await connection.execute(sa.select(observation_feedback.c.kind))).scalars().all()
        assert sorted(kinds) == ["cited", "retrieved"]
