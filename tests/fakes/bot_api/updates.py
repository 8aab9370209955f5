"""The way of updates to the bot: long polling or a webhook, never both.

One rule: an update stays pending until the bot confirms it (an offset above it, or a 2xx from its webhook).
"""

import asyncio
import json
import time
from collections.abc import Callable

import aiohttp

from .errors import POLL_ENDED_BY_WEBHOOK, SECOND_POLLER, WEBHOOK_ACTIVE, BotApiError, Json, refuse
from .limits import LONG_POLL_SECONDS, UNASKED_UPDATES, UPDATES_AT_ONCE
from .world import World

_RETRY_PAUSES = (0.1, 0.2, 0.4, 0.8)  # the real server's are longer and more; it gives up in the end as well
_WEBHOOK_TIMEOUT = aiohttp.ClientTimeout(total=60)


class _Poll:
    """One waiting getUpdates."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.error: BotApiError | None = None

    def end(self, error: BotApiError | None) -> None:
        self.error = error
        self.woken.set()


class Updates:
    def __init__(self, world: World, check: Callable[[Json], None]) -> None:
        """`check` sees every update before it is queued, to hold it to the schema."""
        self._world = world
        self._check = check
        self._poll: _Poll | None = None
        self._arrived = asyncio.Event()
        self._closing = False

    def push(self, kind: str, payload: Json) -> None:
        """Queue an update, unless the bot has not asked for its kind: those are not even made."""
        feed = self._world.feed
        allowed = feed.allowed
        if (kind not in allowed) if allowed else (kind in UNASKED_UPDATES):
            return
        update = {"update_id": feed.next_id, kind: json.loads(json.dumps(payload))}  # what is sent stays as it was
        feed.next_id += 1
        self._check(update)
        feed.pending.append(update)
        self._arrived.set()
        if self._poll is not None:
            self._poll.woken.set()

    async def take(self, offset: int, limit: int, timeout: float) -> list[Json]:
        """Answer a getUpdates: confirm, then wait for at most 50 s until something is pending.

        Raises the 409 for a webhook, and for whichever poll is the older one.
        """
        feed = self._world.feed
        if feed.webhook:
            raise refuse(WEBHOOK_ACTIVE, 409)
        if self._poll is not None:
            self._poll.end(refuse(SECOND_POLLER, 409))
        self._confirm(offset)
        feed.polls += 1
        feed.last_poll = time.time()
        poll = self._poll = _Poll()
        try:
            if not feed.pending and timeout > 0 and not self._closing:
                await _wait(poll.woken, min(timeout, LONG_POLL_SECONDS))
        finally:
            if self._poll is poll:
                self._poll = None
        if poll.error is not None:
            raise poll.error
        return feed.pending[: min(max(limit, 1), UPDATES_AT_ONCE)]

    def _confirm(self, offset: int) -> None:
        feed = self._world.feed
        if offset > 0:
            feed.confirmed = max(feed.confirmed, offset - 1)
            feed.pending = [update for update in feed.pending if update["update_id"] >= offset]
        elif offset < 0:
            feed.pending = feed.pending[offset:]

    def set_webhook(self, webhook: Json) -> None:
        """Start delivering by POST; an empty dict goes back to polling. A waiting poll ends with 409."""
        self._world.feed.webhook = webhook
        if webhook and self._poll is not None:
            self._poll.end(refuse(POLL_ENDED_BY_WEBHOOK, 409))
        self._arrived.set()

    def close(self) -> None:
        self._closing = True
        if self._poll is not None:
            self._poll.end(None)

    async def deliver(self) -> None:
        """Post pending updates to the webhook, one after the other, for as long as the emulator lives."""
        feed = self._world.feed
        async with aiohttp.ClientSession(timeout=_WEBHOOK_TIMEOUT) as session:
            while True:
                self._arrived.clear()
                while feed.webhook and feed.pending:
                    update = feed.pending[0]
                    delivered = await self._post(session, update)
                    if not delivered and feed.webhook:
                        feed.given_up.append(update)
                    if delivered or feed.webhook:
                        feed.pending = [other for other in feed.pending if other is not update]
                await self._arrived.wait()

    async def _post(self, session: aiohttp.ClientSession, update: Json) -> bool:
        feed = self._world.feed
        for pause in (*_RETRY_PAUSES, 0.0):
            if not feed.webhook:
                return False
            secret = feed.webhook.get("secret_token")
            headers = {"X-Telegram-Bot-Api-Secret-Token": secret} if secret else {}
            try:
                async with session.post(feed.webhook["url"], json=update, headers=headers, ssl=False) as answer:
                    body = await answer.text()
                    status = answer.status
            except (aiohttp.ClientError, TimeoutError) as error:
                feed.webhook["last_error"] = f"Connection failed: {error}"
            else:
                if status // 100 == 2:
                    self._note_method_in_answer(body)
                    return True
                feed.webhook["last_error"] = f"Wrong response from the webhook: {status}"
            feed.webhook["last_error_date"] = int(time.time())
            await asyncio.sleep(pause)
        return False

    def _note_method_in_answer(self, body: str) -> None:
        if '"method"' in body:
            self._world.violate("not-implemented", "webhook", f"a method in the webhook's answer: {body[:200]}")


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
