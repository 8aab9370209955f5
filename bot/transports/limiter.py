"""One limiter per chat, shared by sends, edits, drafts and typing (pitfall P33).

What may be dropped (a picture of a growing answer) is dropped while the chat must wait; a final message never is.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from bot.transports.base import Pace


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float
    blocked_until: float = 0.0


class Limiter:
    """A token bucket a chat. A refusal of the server (`retry_after`) empties it for that long."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    async def wait(self, chat: str, pace: Pace) -> None:
        """Return when the chat may be written to; finals queue here."""
        while (seconds := self._delay(chat, pace)) > 0:  # noqa: ASYNC110 - time is what is waited for
            await asyncio.sleep(seconds)
        self._buckets[chat].tokens -= 1

    def try_now(self, chat: str, pace: Pace, *, reserve: float = 1.0) -> bool:
        """Take a token for something that may be dropped; `reserve` tokens stay for what may not."""
        if self._delay(chat, pace) > 0 or self._buckets[chat].tokens < 1 + reserve:
            return False
        self._buckets[chat].tokens -= 1
        return True

    def block(self, chat: str, seconds: float) -> None:
        """Obey the server: nothing goes to this chat for so long."""
        bucket = self._buckets.setdefault(chat, _Bucket(0.0, self._clock()))
        bucket.blocked_until = max(bucket.blocked_until, self._clock() + seconds)

    def _delay(self, chat: str, pace: Pace) -> float:
        now = self._clock()
        bucket = self._buckets.setdefault(chat, _Bucket(float(pace.burst), now))
        bucket.tokens = min(float(pace.burst), bucket.tokens + (now - bucket.filled_at) / pace.seconds)
        bucket.filled_at = now
        if bucket.blocked_until > now:
            return bucket.blocked_until - now
        return max(0.0, (1 - bucket.tokens) * pace.seconds)
