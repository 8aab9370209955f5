"""`merk init` asks for Merk's account on Matrix: homeserver, user, password, checked by a login that is kept.

Rule: nothing is written here before `keep`, which comes after the last answer of all.
"""

import asyncio
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.prompt import Prompt

from bot.config import MATRIX_USER
from bot.errors import CommandError
from bot.transports.matrix import files
from bot.transports.matrix.account import log_in
from bot.transports.matrix.client import Homeserver
from bot.transports.matrix.errors import FORBIDDEN, MatrixError

VERSIONS_ROOT = "/_matrix/client"


@dataclass(frozen=True, slots=True)
class MatrixLogin:
    """An account that has logged in, and who its owner is."""

    homeserver: str
    user_id: str
    password: str
    owner: str
    device: dict[str, Any]
    folder: Path

    def keep(self) -> None:
        """Store the device, so that `merk run` is this one and no second (P47). Raises `CommandError`."""
        path = self.folder / files.DEVICE_FILE
        try:
            files.write(path, self.device)
        except OSError as error:
            raise CommandError(f"{path} cannot be written ({error.strerror}); `merk run` will log in anew.") from error


def ask_matrix(console: Console, data_dir: Path, empty: str) -> MatrixLogin | None:
    """Ask until a login succeeds; None where nobody wants Matrix. Raises `CommandError`."""
    console.print(f"\n[bold]Matrix.[/bold] Where is the account that you made for Merk? (empty: {empty})")
    while typed := Prompt.ask("Homeserver", console=console, default="", show_default=False).strip():
        homeserver = (typed if "://" in typed else f"https://{typed}").rstrip("/")
        if asyncio.run(_answers(console, homeserver)):
            return _ask_account(console, homeserver, data_dir / "matrix")
    return None


async def _answers(console: Console, homeserver: str) -> bool:
    try:
        async with Homeserver(homeserver) as server:
            await server.call("GET", "/versions", root=VERSIONS_ROOT)
    except MatrixError as error:
        console.print(
            f"No homeserver answers there ({error.detail}). It is the address of its client-server API, such as "
            "https://matrix.example.org",
            markup=False,
        )
        return False
    return True


def _ask_account(console: Console, homeserver: str, folder: Path) -> MatrixLogin:
    device: dict[str, Any] | None = None
    user_id = password = ""
    while device is None:
        user_id = _ask_user(console, "Merk's user id there")
        password = Prompt.ask("Its password", console=console, default="", password=True, show_default=False)
        device = asyncio.run(_log_in(console, homeserver, user_id, password, folder))
    console.print(f"Logged in as {user_id}, device {device['device_id']}.", markup=False)
    if find_spec("nio") is None:
        console.print("For encrypted rooms install more: pip install 'merk[matrix]'", markup=False)
    owner = _ask_user(console, "Your own user id")
    while owner == user_id:
        console.print("That is Merk's. Yours is the account that you write with.")
        owner = _ask_user(console, "Your own user id")
    return MatrixLogin(homeserver, user_id, password, owner, device, folder)


def _ask_user(console: Console, question: str) -> str:
    while not MATRIX_USER.match(typed := Prompt.ask(question, console=console).strip()):
        console.print("A user id looks like @merk:example.org.")
    return typed


async def _log_in(
    console: Console, homeserver: str, user_id: str, password: str, folder: Path
) -> dict[str, Any] | None:
    """The device that the homeserver gave us; None, and why, where it did not."""
    known = _known(folder)
    if known and known.get("user_id") != user_id:
        console.print(
            f"{folder} holds the keys of {known.get('user_id')}: take that one, or move it away.", markup=False
        )
        return None
    try:
        async with Homeserver(homeserver) as server:
            made = await log_in(server, user_id, password, str(known.get("device_id", "")))
    except MatrixError as error:
        why = "The homeserver does not accept them" if error.status == FORBIDDEN else "The login did not succeed"
        console.print(f"{why} ({error.detail}). Try once more.", markup=False)
        return None
    return {name: str(made[name]) for name in ("user_id", "device_id", "access_token")}


def _known(folder: Path) -> dict[str, Any]:
    """The device of an earlier start: it stays the same one, because its keys are all there is to it."""
    path = folder / files.DEVICE_FILE
    try:
        return files.read(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read ({error}). Restore it, or delete it to log in anew.") from error
