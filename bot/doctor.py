"""`merk doctor`: what works, what does not, and the command that mends it. Works beside a running Merk."""

import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx

from bot.config import ConfigError, Settings
from bot.lock import owner_of
from bot.providers import choose_embedder, choose_model
from memory.ports import EmbedderError, ModelError
from memory.storage.migrate import HEAD
from memory.types import Health

LEAST_FREE_BYTES = 500_000_000
CLOCK_SECONDS = 60
STALE_SECONDS = 180

TELEGRAM = "https://api.telegram.org"

Check = Callable[[Settings], Awaitable[Health]]


async def examine(settings: Settings) -> list[Health]:
    """Run every check; a check that fails says so instead of raising."""
    found = [Health("configuration", True, "read and valid")]
    checks: list[tuple[str, Check]] = [
        ("database", _database),
        ("index", _index),
        ("embedder", _embedder),
        ("model", _model),
        ("telegram", _telegram),
        ("clock", _clock),
        ("disk", _disk),
    ]
    for name, check in checks:
        try:
            found.append(await check(settings))
        except (OSError, sqlite3.Error, httpx.HTTPError, ConfigError) as error:
            found.append(Health(name, False, str(error) or type(error).__name__, "merk doctor --verbose"))
    return found


async def _database(settings: Settings) -> Health:
    path = settings.tenant.data_dir / "merk.db"
    if not path.is_file():
        return Health("database", True, f"{path} will be made at the first start")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
        sound = opened.execute("PRAGMA quick_check").fetchone()
        revision = opened.execute("SELECT version_num FROM alembic_version").fetchone()
    if sound != ("ok",):
        return Health("database", False, f"{path} is damaged", "merk restore FILE")
    if revision != (HEAD,):
        return Health("database", True, f"{path} will be brought up to date at the next start")
    return Health("database", True, f"{path}, {path.stat().st_size / 1e6:.1f} MB")


async def _index(settings: Settings) -> Health:
    """What is not indexed yet is caught up by a running Merk; the figures come from SQL and the index's folder."""
    path = settings.tenant.data_dir / "merk.db"
    if not path.is_file():
        return Health("index", True, "nothing to index yet")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
        total, waiting, failed = opened.execute(
            "SELECT (SELECT count(*) FROM summaries), (SELECT count(*) FROM summaries WHERE indexed_as IS NULL), "
            "(SELECT count(*) FROM learning WHERE attempts > 0)"
        ).fetchone()
    if total and not (settings.tenant.data_dir / "chroma").is_dir():
        return Health("index", False, "the index's folder is gone", "merk reindex")
    if failed:
        return Health(
            "index", False, f"{failed} chats could not be summarised yet; they are tried again", "merk doctor --verbose"
        )
    if waiting:
        return Health("index", False, f"{waiting} of {total} summaries are not indexed yet", "merk reindex")
    return Health("index", True, f"{total} summaries")


async def _embedder(settings: Settings) -> Health:
    embedder = await choose_embedder(settings)
    try:
        await embedder.embed_query("doctor")
    except EmbedderError as error:
        return Health("embedder", False, str(error), "ollama serve")
    finally:
        await embedder.close()
    return Health("embedder", True, f"{embedder.name}, {embedder.dimension} dimensions")


async def _model(settings: Settings) -> Health:
    chosen = await choose_model(settings, lambda _done, _all: None)
    try:
        if chosen.provider == "none":
            return Health("model", False, chosen.said, "merk init")
        if chosen.provider == "anthropic":
            return await _claude(settings)
        await chosen.model.traits()
    except ModelError as error:
        return Health("model", False, f"{chosen.said} It does not answer ({error.failure}).", "merk init")
    finally:
        await chosen.model.close()
    return Health("model", True, chosen.said)


async def _claude(settings: Settings) -> Health:
    section = settings.model.anthropic
    assert section.api_key is not None
    url = (section.base_url or "https://api.anthropic.com").rstrip("/")
    headers = {"Authorization": f"Bearer {section.api_key.get_secret_value()}", "anthropic-version": "2026-10-21"}
    async with httpx.AsyncClient(timeout=10) as client:
        answer = await client.get(f"{url}/v1/models/{section.default}", headers=headers)
    if answer.status_code in (401, 403):
        return Health("model", False, "the Claude key is not accepted", "merk init")
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return Health("model", False, f"there is no model {section.default}", "set model.anthropic.default")
    answer.raise_for_status()
    return Health("model", True, f"Claude, {section.default}")


async def _telegram(settings: Settings) -> Health:
    if settings.telegram.token is None:
        return Health("telegram", True, "not set up (merk init)")
    me = await get_me(settings.telegram.base_url, settings.telegram.token.get_secret_value())
    if me is None:
        return Health("telegram", False, "the token is not accepted", "merk init")
    contact = _kept(settings, "telegram.last_contact")
    running = owner_of(settings.tenant.data_dir) is not None
    if running and (contact is None or datetime.now(UTC).timestamp() - contact["at"] > STALE_SECONDS):
        return Health("telegram", False, f"@{me['username']}: no poll for minutes", "systemctl restart merk")
    problem = contact.get("problem") if running and contact else None
    if problem:
        return Health("telegram", False, f"@{me['username']}: {problem}", "stop the other instance")
    return Health("telegram", True, f"@{me['username']}" + (", polling" if running else ", Merk is not running"))


async def get_me(base_url: str | None, token: str) -> dict[str, Any] | None:
    """What Telegram says of a bot; None for a token that it does not accept. Raises httpx.HTTPError."""
    async with httpx.AsyncClient(timeout=10) as client:
        answer = await client.get(f"{(base_url or TELEGRAM).rstrip('/')}/bot{token}/getMe")
    if answer.status_code in (401, 404):
        return None
    answer.raise_for_status()
    return answer.json()["result"]


async def _clock(settings: Settings) -> Health:
    """Compare with a server that we talk to anyway."""
    urls = [settings.telegram.base_url or TELEGRAM] if settings.telegram.token else []
    if settings.model.anthropic.api_key:
        urls.append(settings.model.anthropic.base_url or "https://api.anthropic.com")
    for url in urls:
        async with httpx.AsyncClient(timeout=10) as client:
            answer = await client.head(url)
        if "date" in answer.headers:
            apart = abs((parsedate_to_datetime(answer.headers["date"]) - datetime.now(UTC)).total_seconds())
            if apart > CLOCK_SECONDS:
                return Health("clock", False, f"{apart:.0f} s apart from {url}", "timedatectl set-ntp true")
            return Health("clock", True, f"within {CLOCK_SECONDS} s of {url}")
    return Health("clock", True, f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z} (nothing to compare with)")


async def _disk(settings: Settings) -> Health:
    folder = settings.tenant.data_dir
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        return Health("disk", False, f"only {free / 1e6:.0f} MB free in {folder}", f"df -h {folder}")
    return Health("disk", True, f"{free / 1e9:.1f} GB free")


def _kept(settings: Settings, key: str) -> dict[str, Any] | None:
    path = settings.tenant.data_dir / "merk.db"
    if not path.is_file():
        return None
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
        row = opened.execute("SELECT value FROM kept_values WHERE key = ?", (key,)).fetchone()
    return json.loads(row[0]) if row else None
