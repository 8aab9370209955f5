"""Closes by the clock what nobody has touched for a day. Never while something is being answered in its place."""

from collections.abc import Callable
from datetime import timedelta

from bot.transports.posting import Context, post
from handlers import closing
from handlers.locales import phrases
from handlers.types import Event, Notice, Place, Wipe
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import people, working
from memory.storage.database import Database


async def close_idle_work(database: Database, clock: Clock, is_busy: Callable[[Place], bool]) -> int:
    """Close work that was last touched `WORK_HOURS` ago; return how many pieces."""
    now = clock.now()
    before = to_ms(now - timedelta(hours=closing.WORK_HOURS))
    async with database.read() as connection:
        due = await working.idle_since(connection, before)
    closed = 0
    for idle in due:
        place = Place(idle.transport, idle.chat, idle.thread)
        if is_busy(place):
            continue
        state = idle.state
        async with database.write() as connection:
            if is_busy(place) or await working.load(connection, state.session_id) != state:
                continue  # somebody has come back to it while we looked
            user = await people.by_id(connection, state.user_id)
            say = phrases(user.reads if user else "en")
            events: list[Event] = [Wipe(state.session_id, say("work-stub"))]
            if not state.data.get("light"):
                events.append(Notice(closing.line(say, state, "time")))
            await post(connection, Context(place, state.user_id, state.session_id, None), events, to_ms(now))
        closed += 1
    return closed
