"""Our own reactions on a card, for people to tap on: put there, and taken away with the keys. Best effort."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

import structlog

from bot.transports.base import Fault, Key, SendError
from bot.transports.matrix import content, keys
from bot.transports.matrix.client import Homeserver
from bot.transports.matrix.keys import Cards
from bot.transports.matrix.sending import REACTION, Sender
from handlers.types import Place

log = structlog.get_logger(__name__)

TRIES = 4


class Buttons:
    """Keeps the reactions under a card what its keys are."""

    def __init__(self, server: Homeserver, sender: Sender, cards: Cards) -> None:
        self._server = server
        self._sender = sender
        self._cards = cards
        self._tasks: set[asyncio.Task[None]] = set()

    def show(self, place: Place, ref: str, rows: Sequence[Sequence[Key]]) -> None:
        """Remember a message's keys at once; the reactions follow."""
        self._cards.put(ref, place, rows)
        marks = keys.symbols(rows)
        self._spawn(self._seed(place, ref, marks if len(marks) <= keys.SEEDED_MOST else ()))

    def take_away(self, place: Place, ref: str) -> None:
        """The message has no keys any more."""
        seeds = self._cards.seeds(ref)
        self._cards.remove(ref)
        if seeds:
            self._spawn(self._clear(place, tuple(seeds.values())))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _seed(self, place: Place, ref: str, marks: tuple[str, ...]) -> None:
        seeds = self._cards.seeds(ref)
        for mark in marks:
            if mark not in seeds:
                event_id = await self._patiently(place, ref, mark)
                if event_id is None or self._cards.token(ref, mark) is None:
                    break  # refused, or settled meanwhile
                seeds[mark] = event_id
                self._cards.note_seeds(ref, seeds)
        await self._clear(place, tuple(event_id for mark, event_id in seeds.items() if mark not in marks))

    async def _patiently(self, place: Place, ref: str, mark: str) -> str | None:
        for _ in range(TRIES):
            try:
                return await self._sender.send(place, REACTION, content.reaction(ref, mark), f"{ref}-{mark}")
            except SendError as error:
                if error.fault not in (Fault.LATER, Fault.UNSENT, Fault.UNKNOWN):
                    log.info("matrix.no_reaction", fault=error.fault)
                    return None
                await asyncio.sleep(error.retry_after or 1)
            if self._cards.token(ref, mark) is None:
                return None
        return None

    async def _clear(self, place: Place, events: tuple[str, ...]) -> None:
        for event_id in events:
            for _ in range(TRIES):
                try:
                    await self._sender.ask(partial(self._server.redact, place.chat, event_id), place)
                except SendError as error:
                    if error.fault is not Fault.LATER:
                        break
                    await asyncio.sleep(error.retry_after)
                else:
                    break

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
