"""`merk init`: asks for what Merk needs, checks each answer, writes config.toml with mode 0600.

Rule: nothing is written before the last answer. Questions are asked outside the event loop, which hears no Ctrl-C.
"""

import asyncio
import os
import secrets
import sys
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import tomlkit
from rich.console import Console
from rich.markup import escape
from rich.prompt import Confirm, Prompt
from tomlkit.exceptions import ParseError

from bot.admin.matrix_setup import MatrixLogin, ask_matrix
from bot.admin.servers import ANTHROPIC, TELEGRAM, ServerError, ask, find_claude, get_me, result_of
from bot.config import TELEGRAM_TOKEN, AnthropicModels, default_data_dir, home_file
from bot.errors import CommandError
from bot.models.ollama import find_ollama, installed_models
from memory.ports import ModelError

WAIT_SECONDS = 300
MOST_UPDATES = 100
"""What Telegram hands out at once. Asking for more would confirm the first ones, and they would be lost."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Other servers than the usual ones: of the environment, else of the file that is there."""

    telegram: str | None = None
    anthropic: str | None = None
    ollama: str | None = None


def default_target() -> Path:
    """The file that would be read: MERK_CONFIG, ./config.toml where it is, else one's own."""
    if named := os.environ.get("MERK_CONFIG"):
        return Path(named).expanduser()
    here = Path("config.toml")
    return here if here.is_file() else home_file()


def set_up(target: Path, console: Console) -> None:
    """Ask, check, write. Raises `CommandError`, KeyboardInterrupt and EOFError; then nothing was changed."""
    if not sys.stdin.isatty():
        raise CommandError(f"`merk init` asks questions: run it in a terminal, or write {target} yourself.")
    _check_writable(target)
    document = _existing(target)
    if target.exists() and not Confirm.ask(
        f"{escape(str(target))} is there already. Change it? What is not asked here stays as it is.",
        console=console,
        default=False,
    ):
        raise CommandError("Nothing was changed.")
    servers = _servers(document)
    empty = "leave it as it is" if target.exists() else "go without"
    _ask_telegram(console, document, servers.telegram, empty)
    login = ask_matrix(console, _data_dir(document), empty)
    if login is not None:
        _put_matrix(document, login)
    _ask_model(console, document, servers, empty)
    write(target, document)
    if login is not None:
        login.keep()
    console.print(f"\nWritten to {escape(str(target))}. Try [bold]merk doctor[/bold], then [bold]merk run[/bold].")


def write(target: Path, document: tomlkit.TOMLDocument) -> None:
    """Write the file so that nobody else can read it; the one it replaces stays beside it."""
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(tomlkit.dumps(document))
            if target.exists():
                target.replace(target.with_name(f"{target.name}.old"))
            fresh.rename(target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{target} cannot be written ({error.strerror}).") from error


def _check_writable(target: Path) -> None:
    """Before anybody types a token for nothing."""
    if target.is_dir():
        raise CommandError(f"{target} is a folder. Name a file with --config.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CommandError(f"{target.parent} cannot be made ({error.strerror}). Name a file with --config.") from error
    if not os.access(target.parent, os.W_OK):
        raise CommandError(f"{target.parent} cannot be written. Name another file with --config.")


def _existing(target: Path) -> tomlkit.TOMLDocument:
    if not target.exists():
        fresh = tomlkit.document()
        fresh.add(tomlkit.comment("Written by `merk init`. config.example.toml documents every key."))
        return fresh
    try:
        return tomlkit.parse(target.read_text(encoding="utf-8-sig"))
    except (ParseError, UnicodeDecodeError, OSError) as error:
        raise CommandError(f"{target} cannot be read ({error}). Mend it, or move it away, and try again.") from error


def _named(document: tomlkit.TOMLDocument, *keys: str) -> str | None:
    """A setting of the environment, else of the file that is there."""
    if variable := os.environ.get("MERK_" + "__".join(keys).upper()):
        return variable
    value: Any = document.unwrap()
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _servers(document: tomlkit.TOMLDocument) -> Servers:
    return Servers(
        telegram=_named(document, "telegram", "base_url"),
        anthropic=_named(document, "model", "anthropic", "base_url"),
        ollama=_named(document, "model", "ollama", "host"),
    )


def _data_dir(document: tomlkit.TOMLDocument) -> Path:
    """Where Merk keeps its data, by the file that is being changed."""
    named = _named(document, "tenant", "data_dir")
    return Path(named).expanduser() if named else default_data_dir()


def _put(document: tomlkit.TOMLDocument, section: str, **values: object) -> None:
    """Set keys of a section such as "model.anthropic"; None leaves a key as it is."""
    table: Any = document
    for name in section.split("."):
        if not isinstance(table.get(name), dict):
            table[name] = tomlkit.table()
        table = table[name]
    for key, value in values.items():
        if value is not None:
            table[key] = value


def _put_owner(document: tomlkit.TOMLDocument, identity: str) -> None:
    known = cast("dict[str, Any]", document.unwrap().get("access", {})).get("owners", [])
    _put(document, "access", owners=list(dict.fromkeys([*known, identity])))


def _put_matrix(document: tomlkit.TOMLDocument, login: MatrixLogin) -> None:
    _put(document, "matrix", homeserver=login.homeserver, user_id=login.user_id, password=login.password)
    _put_owner(document, f"matrix:{login.owner}")


# --- Telegram ------------------------------------------------------------------------------------


def _ask_telegram(console: Console, document: tomlkit.TOMLDocument, url: str | None, empty: str) -> None:
    console.print(f"[bold]Telegram.[/bold] Make a bot with @BotFather and paste its token (empty: {empty}).")
    while token := Prompt.ask("Token", console=console, default="", show_default=False).strip():
        me = _meet(console, url or TELEGRAM, token)
        if me is None:
            continue
        console.print(f"This is @{me['username']}.", markup=False)
        owner = _find_owner(console, url or TELEGRAM, token, str(me["username"]))
        _put(document, "telegram", token=token, base_url=url)
        _put_owner(document, f"telegram:{owner}")
        return


def _meet(console: Console, url: str, token: str) -> dict[str, Any] | None:
    """Who the bot is; None, and why, where the token does not tell."""
    if not TELEGRAM_TOKEN.match(token):
        console.print("A token looks like 123456:ABC-DEF. Copy it once more from @BotFather.")
        return None
    try:
        me = asyncio.run(get_me(url, token))
    except ServerError as error:
        console.print(f"{error}. Check the network, then paste the token again.", markup=False)
        return None
    if me is None:
        console.print("Telegram does not know this token. Copy it once more from @BotFather.")
    return me


def _find_owner(console: Console, url: str, token: str, username: str) -> int:
    """The sender of a code that only the person at this terminal sees."""
    code = secrets.token_hex(4)
    console.print(f"Now send your bot this, from your own account:  [bold]/start {code}[/bold]")
    console.print(f"(or open https://t.me/{username}?start={code})", highlight=False)
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        waiting = _waiting(url, token)
        for update in waiting:
            message = update.get("message", {})
            if code in message.get("text", "") and message["chat"]["type"] == "private":
                console.print(f"Hello {message['from']['first_name']}, you are the owner.", markup=False)
                return int(message["from"]["id"])
        if len(waiting) >= MOST_UPDATES:
            console.print("So many messages wait for this bot that yours cannot be seen.")
            return _ask_id(console)
        time.sleep(0.5)
    raise CommandError("The code did not arrive within five minutes. Nothing was changed; run `merk init` again.")


def _waiting(url: str, token: str) -> list[dict[str, Any]]:
    """What waits for the bot. Without an offset nothing is confirmed, so that all of it stays."""
    try:
        answer = asyncio.run(ask("POST", url, f"/bot{token}/getUpdates", data={"timeout": 3, "limit": MOST_UPDATES}))
        if answer.status_code == HTTPStatus.CONFLICT:
            raise CommandError(
                "Another program polls for this bot, or it has a webhook. Stop that first (a running Merk, too), "
                "then run `merk init` again."
            )
        return result_of(url, answer)["result"]
    except ServerError:  # it answered a moment ago: the deadline decides
        time.sleep(1)
        return []


def _ask_id(console: Console) -> int:
    while not (typed := Prompt.ask("Your numeric Telegram id", console=console).strip()).isdecimal():
        console.print("It is a number, such as 123456789; bots like @userinfobot tell you yours.")
    return int(typed)


# --- the model -----------------------------------------------------------------------------------


def _ask_model(console: Console, document: tomlkit.TOMLDocument, servers: Servers, empty: str) -> None:
    console.print(f"\n[bold]Model.[/bold] Paste a Claude key (empty: {empty}).")
    while key := Prompt.ask("Claude key", console=console, default="", password=True, show_default=False).strip():
        try:
            found = asyncio.run(find_claude(servers.anthropic or ANTHROPIC, key, AnthropicModels().small))
        except ServerError as error:
            console.print(f"{error}. Check the network, then paste the key again.", markup=False)
            continue
        if found == "refused key":
            console.print("Anthropic does not accept this key. Copy it once more.")
            continue
        console.print("The key works.")
        _put(document, "model.anthropic", api_key=key, base_url=servers.anthropic)
        return
    if os.environ.get("ANTHROPIC_API_KEY"):
        console.print("ANTHROPIC_API_KEY is set here: Merk uses it wherever it is set.")
    _look_for_ollama(console, document, servers.ollama)


def _look_for_ollama(console: Console, document: tomlkit.TOMLDocument, host: str | None) -> None:
    found = asyncio.run(find_ollama(host))
    if not found:
        console.print("No Ollama answers here; without a key Merk has its small built-in model.")
        return
    try:
        names = [name for name in asyncio.run(installed_models(found)) if "embed" not in name]
    except ModelError:
        names = list[str]()  # it stopped between two questions
    has = f"with {', '.join(names[:5])}; without a key Merk uses it" if names else "without a model: ollama pull qwen3"
    console.print(f"Ollama answers at {found} {has}.", markup=False)
    if host or os.environ.get("OLLAMA_HOST"):
        _put(document, "model.ollama", host=found)
