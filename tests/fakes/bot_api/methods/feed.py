"""How the bot receives updates."""

import re
from urllib.parse import urlsplit

from tests.fakes.bot_api.emulator import Emulator
from tests.fakes.bot_api.errors import Json, refuse
from tests.fakes.bot_api.limits import WEBHOOK_SECRET

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def take_updates(emulator: Emulator, params: Json) -> list[Json]:
    if "allowed_updates" in params:
        emulator.world.feed.allowed = params["allowed_updates"] or None
    return await emulator.updates.take(params.get("offset", 0), params.get("limit", 100), params.get("timeout", 0))


def set_webhook(emulator: Emulator, params: Json) -> bool:
    address: str = params["url"]
    if not address:
        return delete_webhook(emulator, params)
    url = urlsplit(address)
    if url.scheme != "https" and url.hostname not in _LOOPBACK:  # tests on loopback need no certificate
        raise refuse("bad webhook: An HTTPS URL must be provided for webhook")
    secret = params.get("secret_token")
    if secret is not None and not re.fullmatch(WEBHOOK_SECRET, secret):
        raise refuse("secret token contains unallowed characters")
    _drop_pending(emulator, params)
    if "allowed_updates" in params:
        emulator.world.feed.allowed = params["allowed_updates"] or None
    kept = ("url", "secret_token", "max_connections")
    emulator.updates.set_webhook({name: params[name] for name in kept if name in params})
    return True


def delete_webhook(emulator: Emulator, params: Json) -> bool:
    _drop_pending(emulator, params)
    emulator.updates.set_webhook({})
    return True


def _drop_pending(emulator: Emulator, params: Json) -> None:
    if params.get("drop_pending_updates"):
        emulator.world.feed.pending.clear()


def describe_webhook(emulator: Emulator, _: Json) -> Json:
    feed = emulator.world.feed
    described: Json = {
        "url": feed.webhook.get("url", ""),
        "has_custom_certificate": False,
        "pending_update_count": len(feed.pending),
    }
    if "last_error" in feed.webhook:
        described["last_error_message"] = feed.webhook["last_error"]
        described["last_error_date"] = feed.webhook["last_error_date"]
    if "max_connections" in feed.webhook:
        described["max_connections"] = feed.webhook["max_connections"]
    if feed.allowed:
        described["allowed_updates"] = feed.allowed
    return described
