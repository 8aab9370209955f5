"""A peopled Bot API emulator and an impatient client of it, for the tests of the emulator itself.

One rule: the client is the real library; nothing here knows how the emulator works.
"""

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup
from telegram.request import HTTPXRequest

from tests.fakes.bot_api import BotApi

_NO_TLS = {"verify": False}  # loopback speaks plain HTTP, and reading the system's certificates takes 0.1 s a client
ADA, BOB, FORUM, GROUP, BASIC = 42, 43, -1001, -1002, -5


@asynccontextmanager
async def peopled_api() -> AsyncGenerator[BotApi]:
    """Ada's private chat; a forum, a supergroup and a basic group with Ada and Bob."""
    async with BotApi() as api:
        api.private_chat(ADA, "Ada")
        api.forum(FORUM, "Forum", {ADA: "creator", BOB: "member"})
        api.supergroup(GROUP, "Group", [ADA, BOB])
        api.group(BASIC, "Basic", [ADA, BOB])
        yield api


def impatient_bot(api: BotApi) -> Bot:
    """A client that gives up on an answer after half a second, and on updates after two."""
    sender, poller = (HTTPXRequest(read_timeout=seconds, httpx_kwargs=_NO_TLS) for seconds in (0.5, 2))
    return Bot(api.token, f"{api.base_url}/bot", f"{api.base_url}/file/bot", sender, poller)


def keyboard(*data: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton(f"Button {item[:9]}", callback_data=item) for item in data]])


async def refused(kind: type[Exception], text: str, call: Awaitable[object]) -> None:
    """Expect an error whose text contains `text`, in any case: the library changes the first letters."""
    with pytest.raises(kind) as caught:
        await call
    assert text.casefold() in str(caught.value).casefold(), f"{text!r} is not in {caught.value!s}"


async def raw_call(api: BotApi, method: str, *, token: str = "", **request: Any) -> dict[str, Any]:
    """Call a method past the library, which would not let wrong parameters through."""
    async with httpx.AsyncClient(verify=False) as client:
        return (await client.post(f"{api.base_url}/bot{token or api.token}/{method}", **request)).json()
