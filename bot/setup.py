"""`merk init`: asks for what Merk needs, checks each answer, writes config.toml with mode 0600."""

import asyncio
import os
import secrets
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import tomlkit
from rich.console import Console
from rich.prompt import Confirm, Prompt

from bot.doctor import TELEGRAM, get_me
from bot.errors import CommandError
from bot.models.ollama import find_ollama

WAIT_SECONDS = 300
ANTHROPIC = "https://api.anthropic.com"


def default_target() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "merk" / "config.toml"


def set_up(
    target: Path, console: Console, *, telegram_url: str | None = None, anthropic_url: str | None = None
) -> None:
    """Ask, check, write. Raises `CommandError`."""
    if target.exists() and not Confirm.ask(f"{target} is there already. Replace it?", console=console, default=False):
        raise CommandError("Nothing was changed.")
    values: dict[str, Any] = {}
    asyncio.run(_ask_telegram(console, values, telegram_url))
    asyncio.run(_ask_model(console, values, anthropic_url))
    write(target, values)
    console.print(f"\nWritten to {target}. Start with: [bold]merk run[/bold]")


def write(target: Path, values: dict[str, Any]) -> None:
    """Write the file so that nobody else can read it; the one it replaces stays beside it."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by `merk init`. config.example.toml documents every key."))
    for section, keys in values.items():
        document[section] = keys
    if target.exists():
        target.rename(target.with_suffix(".toml.old"))
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(tomlkit.dumps(document))


async def _ask_telegram(console: Console, values: dict[str, Any], url: str | None) -> None:
    console.print("[bold]Telegram.[/bold] Make a bot with @BotFather and paste its token (empty: no Telegram).")
    while token := Prompt.ask("Token", console=console, default="", show_default=False).strip():
        try:
            me = await get_me(url, token)
        except httpx.HTTPError as error:
            raise _unreachable("Telegram", error) from error
        if me is None:
            console.print("Telegram does not know this token. Copy it once more from @BotFather.")
            continue
        console.print(f"This is @{me['username']}.")
        values["telegram"] = {"token": token} | ({"base_url": url} if url else {})
        owner = await _find_owner(console, url, token, str(me["username"]))
        values["access"] = {"owners": [f"telegram:{owner}"], "admit": "pairing"}
        return


async def _find_owner(console: Console, url: str | None, token: str, username: str) -> int:
    """The sender of a code that only the person at this terminal sees."""
    code = secrets.token_hex(4)
    console.print(f"Now send your bot this, from your own account:  [bold]/start {code}[/bold]")
    console.print(f"(or open https://t.me/{username}?start={code})", highlight=False)
    deadline = time.monotonic() + WAIT_SECONDS
    async with httpx.AsyncClient(timeout=20) as client:
        while time.monotonic() < deadline:
            # without an offset nothing is confirmed: what waits for the bot stays
            answer = await client.post(
                f"{(url or TELEGRAM).rstrip('/')}/bot{token}/getUpdates", data={"timeout": 5, "limit": 100}
            )
            if answer.status_code == HTTPStatus.CONFLICT:
                raise CommandError("Another program is polling this bot, or it has a webhook. Stop that first.")
            answer.raise_for_status()
            for update in answer.json()["result"]:
                message = update.get("message", {})
                if code in message.get("text", "") and message["chat"]["type"] == "private":
                    console.print(f"Hello {message['from']['first_name']}, you are the owner.")
                    return int(message["from"]["id"])
            await asyncio.sleep(0.5)
    raise CommandError("The code did not arrive within five minutes. Run `merk init` again.")


async def _ask_model(console: Console, values: dict[str, Any], url: str | None) -> None:
    console.print("\n[bold]Model.[/bold] Paste a Claude key (empty: Ollama or the small built-in model).")
    while key := Prompt.ask("Claude key", console=console, default="", password=True, show_default=False).strip():
        if await _key_works(key, url):
            values["model"] = {"anthropic": {"api_key": key} | ({"base_url": url} if url else {})}
            console.print("The key works.")
            return
        console.print("Anthropic does not accept this key. Copy it once more.")
    host = await find_ollama(None)
    if host:
        console.print(f"Ollama answers at {host}; Merk will use it.")
    else:
        console.print("No Ollama answers here; Merk starts with its small built-in model.")


async def _key_works(key: str, url: str | None) -> bool:
    headers = {"Authorization": f"Bearer {key}", "anthropic-version": "2026-10-21"}
    try:
        async with httpx.AsyncClient(timeout=10) as client:
            answer = await client.get(f"{(url or ANTHROPIC).rstrip('/')}/v1/models", headers=headers)
    except httpx.HTTPError as error:
        raise _unreachable("Anthropic", error) from error
    return answer.status_code == HTTPStatus.OK


def _unreachable(who: str, error: httpx.HTTPError) -> CommandError:
    return CommandError(
        f"{who} does not answer ({type(error).__name__}). Check the network, then run `merk init` again."
    )
