"""What always holds of working output, over random sequences of turns, tools, presses, closings and restarts."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory.storage.database import Database
from memory.storage.tables import messages, outbox, session_states
from tests.fakes.house import House, house
from tests.fakes.model import Step, call

CANARY = "zq{}canary"
"""In every working text: where it is found, working output got out."""

STEPS = st.sampled_from(
    ("chat", "draft", "new draft", "read", "keep", "propose", "yes", "no", "/close", "/newchat", "restart", "day")
)


class Walk:
    """One sequence: what was put into working output, and which requests may hold it."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def _fresh(self) -> str:
        self.texts.append(CANARY.format(len(self.texts)))
        return f"Text {self.texts[-1]}"

    def script(self, step: str) -> Sequence[Step]:
        match step:
            case "draft" | "new draft":
                is_new = step == "new draft"
                return (call("write_draft", title="Some mail", text=self._fresh(), new=is_new), "Shown.")
            case "read":
                return (call("read_work"), "Read.")
            case "keep":
                return (call("keep_draft"), "Tried.")
            case "propose":
                return (call("propose_instructions", text=self._fresh(), whose="me"), "Proposed.")
            case _:
                return ()


async def check(opened: House, walk: Walk, kept: set[str]) -> None:
    async with opened.database.read() as connection:
        orphans = sa.select(messages.c.text).where(
            messages.c.is_ephemeral, messages.c.session_id.not_in(sa.select(session_states.c.session_id))
        )
        assert list((await connection.execute(orphans)).scalars()) == []
        sent = sa.select(outbox.c.refs).where(outbox.c.status == "sent")
        shown = {ref for refs in (await connection.execute(sent)).scalars() for ref in refs}
        waiting = sa.select(sa.func.count()).select_from(outbox).where(outbox.c.status.not_in(("sent",)))
        assert (await connection.execute(waiting)).scalar_one() == 0
        durable = sa.select(messages.c.text).where(~messages.c.is_ephemeral)
        kept |= {text for text in walk.texts for row in (await connection.execute(durable)).scalars() if text in row}
    assert shown == set(opened.transport.shown)


async def walk_through(database: Database, folder: Path, steps: Sequence[str]) -> None:
    walk = Walk()
    kept: set[str] = set()
    before: House | None = None
    at = 0
    while at < len(steps):
        async with house(database, folder, before=before) as opened:
            while at < len(steps) and steps[at] != "restart":
                await take(opened, walk, steps[at], kept)
                await check(opened, walk, kept)
                at += 1
            before = opened
        at += 1


async def take(opened: House, walk: Walk, step: str, kept: set[str]) -> None:
    first = len(opened.model.requests)
    match step:
        case "yes" | "no":
            label = "👍 Yes, close" if step == "yes" else "👎 No, continue"
            if label in opened.transport.tokens():
                await opened.press(label)
        case "/close" | "/newchat":
            await opened.say(step)
        case "day":
            opened.clock.advance(hours=25)
            await opened.app.sweep()
            await opened.settle()
        case _:
            opened.model.script += walk.script(step)
            await opened.say(f"Unrelated words about {step} and Peru")
            # the first request of a turn comes before any of its tools: it holds history alone
            seen = repr(opened.model.requests[first])
            leaked = [text for text in walk.texts if text in seen and text not in kept]
            assert leaked == [], step


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=3, max_size=14))
@example(steps=["draft", "keep", "no", "new draft"])  # a card that took the place of one of them goes with it
def test_nothing_working_is_left_over_leaks_or_is_shown_in_vain(empty_database: Path, steps: list[str]) -> None:
    """No working row without open work; no working text in a later request; what is seen is what the database says."""

    async def run(folder: Path) -> None:
        shutil.copy(empty_database, folder / "merk.db")
        database = Database.at(folder / "merk.db")
        try:
            await walk_through(database, folder, steps)
        finally:
            await database.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
