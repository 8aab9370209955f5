"""The bot's account and its one device: logged in once, the same device at every start (P47).

Rule: a device that is not the one we know is refused aloud, never replaced: its keys would be nobody's.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog

from bot.transports.matrix import files
from bot.transports.matrix.client import Homeserver, Json
from bot.transports.matrix.errors import AccountError, MatrixError

log = structlog.get_logger(__name__)

Encryption = Literal["required", "optional", "off"]

DEVICE_NAME = "Merk"


@dataclass(frozen=True, slots=True)
class MatrixSettings:
    """What the configuration says."""

    homeserver: str
    user_id: str
    folder: Path
    password: str | None = None
    access_token: str | None = None
    device_id: str | None = None
    encryption: Encryption = "required"
    edit_seconds: float = 5.0
    """The least time between two edits of a growing answer; 0 shows typing and sends once."""
    display_name: str = ""
    avatar: Path | None = None


class Account:
    """Knows who we are on the homeserver, and keeps the access token good."""

    def __init__(self, settings: MatrixSettings, server: Homeserver) -> None:
        """Raises `AccountError` where the folder belongs to another account or device."""
        self._settings = settings
        self._server = server
        self._path = settings.folder / files.DEVICE_FILE
        self._lock = asyncio.Lock()
        self._is_connected = False
        self.logins = 0
        """How often this process has logged in: with an old session the device's keys may have gone."""
        try:
            self._kept = files.read(self._path)
        except (OSError, ValueError) as error:
            raise AccountError(
                f"{self._path} cannot be read ({error}). Restore it, or delete it to log in anew"
            ) from error
        self._check_kept()

    @property
    def user_id(self) -> str:
        return self._settings.user_id

    @property
    def device_id(self) -> str:
        """Empty before the first login."""
        return str(self._kept.get("device_id", ""))

    def _check_kept(self) -> None:
        settings, kept = self._settings, self._kept
        if kept and kept.get("user_id") != settings.user_id:
            raise AccountError(
                f"{settings.folder} belongs to {kept.get('user_id')}, and matrix.user_id is {settings.user_id}: "
                "set it back, or move that folder away to begin anew"
            )
        if kept and settings.device_id and kept.get("device_id") != settings.device_id:
            raise AccountError(
                f"{settings.folder} holds the keys of device {kept.get('device_id')}, and matrix.device_id is "
                f"{settings.device_id}: delete matrix.device_id, or move that folder away to begin anew"
            )

    async def ensure(self) -> None:
        """Return when the homeserver knows us. Raises `AccountError` and `MatrixError`."""
        async with self._lock:
            if not self._is_connected:
                await self._connect()
                self._is_connected = True

    def lost(self, error: MatrixError) -> None:
        """The homeserver does not know the token any more: the next `ensure` looks for a good one."""
        if error.is_logged_out:
            self._is_connected = False

    async def _connect(self) -> None:
        for token in dict.fromkeys(filter(None, (self._kept.get("access_token"), self._settings.access_token))):
            self._server.token = str(token)
            try:
                self._keep(await self._server.call("GET", "/account/whoami"), str(token))
            except MatrixError as error:
                if not error.is_logged_out:
                    raise
                log.warning("matrix.token_refused")
            else:
                return
        await self._log_in()

    async def _log_in(self) -> None:
        settings = self._settings
        if not settings.password:
            raise AccountError(
                "the homeserver does not know the access token: set matrix.password, or a new matrix.access_token"
            )
        self._server.token = ""
        device_id = self.device_id or settings.device_id or ""
        answer = await log_in(self._server, settings.user_id, settings.password, device_id)
        self._server.token = str(answer["access_token"])
        self.logins += 1
        self._keep(answer, self._server.token)
        log.info("matrix.logged_in", user=settings.user_id, device=self.device_id)

    def _keep(self, who: Json, token: str) -> None:
        user_id, device_id = str(who.get("user_id")), str(who.get("device_id") or "")
        if user_id != self._settings.user_id:
            raise AccountError(f"the access token belongs to {user_id}, and matrix.user_id is {self._settings.user_id}")
        if self.device_id and device_id != self.device_id:
            raise AccountError(
                f"the access token belongs to device {device_id}, and {self._settings.folder} holds the keys of "
                f"{self.device_id}: nobody would send that device a key. Use the token of {self.device_id}, "
                "or move that folder away to begin anew"
            )
        kept = {"user_id": user_id, "device_id": device_id, "access_token": token}
        if kept != self._kept:
            files.write(self._path, kept)
            self._kept = kept


async def log_in(server: Homeserver, user_id: str, password: str, device_id: str = "") -> Json:
    """Log in, as this device where it is named: user_id, device_id and access_token. Raises `MatrixError`."""
    body: Json = {
        "type": "m.login.password",
        "identifier": {"type": "m.id.user", "user": user_id},
        "password": password,
        "initial_device_display_name": DEVICE_NAME,
    }
    if device_id:
        body["device_id"] = device_id
    return await server.call("POST", "/login", body)
