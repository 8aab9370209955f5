"""Long polling. Rule: the offset moves past an update only after it was taken in, so a kill loses nothing (P31).

The library's own updater is not used for this: it ends for good on one 401, repeats a batch for ever when one update
in it has a shape it does not know, and cannot begin before getMe and deleteWebhook have answered.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import structlog
from telegram.request import BaseRequest

from bot.transports.telegram.contact import Contact
from bot.transports.telegram.errors import is_blocked_by_webhook, pause

log = structlog.get_logger(__name__)

ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "callback_query",
    "message_reaction",
    "my_chat_member",
    "chat_member",
)
"""Asked for by name: reactions and members never come unasked, and what nobody reads is not even made."""
LONG_POLL_SECONDS = 30
"""Of 50 the server allows: well below the two minutes after which silence counts as illness."""
ANSWER_SECONDS = 10.0
"""What an answer may take beyond the long poll before the connection counts as dead."""

Take = Callable[[dict[str, Any]], Awaitable[None]]
"""Returns when the update is committed; does not return, and does not raise, as long as it cannot be."""


class Poller:
    """Asks one server for updates until it is cancelled; no error ends it."""

    def __init__(
        self, request: BaseRequest, url: str, contact: Contact, take: Take, delete_webhook: Callable[[], Awaitable[Any]]
    ) -> None:
        """`delete_webhook` is called if one is in the way at the start."""
        self._request = request
        self._url = url
        self._contact = contact
        self._take = take
        self._delete_webhook = delete_webhook
        self._offset = 0
        self._has_polled = False

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                await self._poll()
                failures = 0
            except Exception as error:  # noqa: BLE001 - whatever it is, a deaf bot is worse; it is told as a problem
                if is_blocked_by_webhook(error) and not self._has_polled and await self._make_way():
                    continue
                self._contact.lost(error)
                await asyncio.sleep(pause(error, failures))
                failures += 1

    async def _poll(self) -> None:
        query = {"timeout": LONG_POLL_SECONDS, "allowed_updates": json.dumps(ALLOWED_UPDATES)}
        if self._offset:
            query["offset"] = self._offset
        answer: Any = await self._request.post(
            f"{self._url}?{urlencode(query)}", read_timeout=LONG_POLL_SECONDS + ANSWER_SECONDS
        )
        self._has_polled = True
        self._contact.made()
        for update in answer:
            await self._take(update)
            self._offset = update["update_id"] + 1

    async def _make_way(self) -> bool:
        """Take down the webhook of an earlier configuration. Updates that wait are kept."""
        try:
            await self._delete_webhook()
        except Exception as error:  # noqa: BLE001 - as above
            self._contact.lost(error)
            return False
        log.info("telegram.webhook_deleted")
        return True
