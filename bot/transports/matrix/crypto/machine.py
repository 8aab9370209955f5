"""Encryption by matrix-nio: it keeps keys and opens and seals events; requests that carry words are not its business.

Rule: what must not be lost is on disk before a server or a person sees it.
"""

import asyncio
import copy
import logging
from collections import defaultdict
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import aiohttp
import nio  # pyright: ignore[reportMissingTypeStubs] - there are none; it is used through Any here
import structlog
from nio.crypto.attachments import encrypt_attachment  # pyright: ignore[reportMissingTypeStubs] - see above
from nio.exceptions import EncryptionError, LocalProtocolError  # pyright: ignore[reportMissingTypeStubs] - see above
from nio.store import SqliteStore  # pyright: ignore[reportMissingTypeStubs] - see above

from bot.transports.matrix import files
from bot.transports.matrix.account import Account, MatrixSettings
from bot.transports.matrix.client import Homeserver, Json
from bot.transports.matrix.crypto.cross_signing import Identity, Signed, ensure_signed, look
from bot.transports.matrix.errors import AccountError, MatrixError
from bot.transports.matrix.rooms import Rotation

log = structlog.get_logger(__name__)

MOST_REFUSALS = 5
"""How often the library may repeat a request for keys after a 429: a key that is not shared is a message unread."""

_TO_DO = {
    Signed.FOREIGN: "another client owns this account's cross-signing identity: verify the device there "
    "(merk matrix verify shows its fingerprint), or reset the identity there and restart Merk",
    Signed.NEEDS_PASSWORD: "the homeserver wants the password before it takes the bot's cross-signing keys: "
    "set matrix.password once and restart Merk",
}


class Machine:
    """The keys of the bot's one device."""

    def __init__(self, settings: MatrixSettings, server: Homeserver, account: Account) -> None:
        self._settings = settings
        self._server = server
        self._account = account
        self._client: Any = None  # the library's types are not complete
        self._sealing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        for name in ("nio", "nio.crypto", "nio.rooms"):  # what it warns of we count and tell ourselves
            logging.getLogger(name).setLevel(logging.CRITICAL)

    async def prepare(self) -> None:
        """Open the store, publish our keys, sign our device. Raises `AccountError` and `MatrixError`."""
        if self._client is None:
            self._client = self._open()
        self._client.access_token = self._server.token
        await self._check_device()
        await self._sign()

    def _open(self) -> Any:
        settings, account = self._settings, self._account
        files.make_folder(settings.folder)
        store = settings.folder / files.STORE_FILE
        if not store.exists():
            store.touch(mode=0o600)
        config = nio.AsyncClientConfig(
            store=SqliteStore,
            store_name=files.STORE_FILE,
            pickle_key=files.own_secret(settings.folder / files.SECRET_FILE),
            store_sync_tokens=False,
            encryption_enabled=True,
            max_limit_exceeded=MOST_REFUSALS,
            max_timeouts=1,
        )
        client: Any = nio.AsyncClient(
            self._server.url, account.user_id, account.device_id, str(settings.folder), config
        )
        try:
            client.restore_login(account.user_id, account.device_id, self._server.token)
        except Exception as error:
            raise AccountError(
                f"{store} cannot be opened ({type(error).__name__}): restore it and {files.SECRET_FILE} from a backup, "
                "or move that folder away to begin anew"
            ) from error
        return client

    async def _check_device(self) -> None:
        """What the homeserver has of our device must be what we have."""
        own: str = self._client.olm.account.identity_keys["ed25519"]
        standing = await look(self._server, self._account.user_id, self._account.device_id)
        if standing.fingerprint and standing.fingerprint != own:
            raise AccountError(
                f"the homeserver has other keys of device {self._account.device_id} than {self._settings.folder}: "
                "restore that folder from a backup, or move it away to begin anew with a device of its own"
            )
        if not standing.fingerprint:
            self._client.olm.account.shared = False  # never published, or dropped with the session
        await self._upload_keys()

    async def _sign(self) -> None:
        identity = Identity(self._settings.folder)
        account = self._account
        signed = await ensure_signed(
            self._server, account.user_id, account.device_id, identity, self._settings.password
        )
        if remedy := _TO_DO.get(signed):
            log.warning("matrix.not_signed", reason=remedy)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client.store.database.close()
            self._client = None

    # --- in ---

    async def receive(self, body: Json) -> None:
        """Take keys and memberships out of a sync."""
        response: Any = nio.SyncResponse.from_dict(copy.deepcopy(body))  # it keeps, and changes, what it is given
        if not isinstance(response, nio.SyncResponse):
            log.error("matrix.sync_not_understood", why=str(response)[:200])
            return
        await self._client.receive_response(response)

    async def receive_keys(self, body: Json) -> None:
        """Take keys that did not fit into a sync. The next sync may end where this one does; it counts all the same."""
        place = self._client.next_batch
        await self.receive(body)
        self._client.next_batch = place

    def decrypt(self, room_id: str, event: Json) -> Json | None:
        """The event in plain words; None where its key is not there (yet)."""
        sealed = self._sealed(room_id, event)
        if sealed is None or not self._may_be_from(sealed):
            return None
        try:
            plain: Any = self._client.decrypt_event(sealed).source
        except (EncryptionError, LocalProtocolError):
            return None
        except Exception as error:  # noqa: BLE001 - whatever the library makes of a strange event: it cannot be read
            log.warning("matrix.not_decrypted", ref=sealed.event_id, error=type(error).__name__)
            return None
        return plain if isinstance(plain.get("content"), dict) else None

    def _sealed(self, room_id: str, event: Json) -> Any:
        """The event as the library takes it; None where it is none of those that we could open."""
        if self._client is None:
            return None
        event = copy.deepcopy(event)
        content: Json = event.get("content", {})
        content.setdefault("device_id", "")  # both are deprecated, and the library insists on them
        if "sender_key" not in content:
            content["sender_key"] = self._sender_key(room_id, str(content.get("session_id")))
        sealed: Any = nio.Event.parse_event(event)
        if not isinstance(sealed, nio.MegolmEvent):
            return None
        sealed.room_id = room_id
        return sealed

    def _sender_key(self, room_id: str, session_id: str) -> str:
        """Whose session it is, where the event does not say."""
        sessions: Any = self._client.olm.inbound_group_store
        return next((each.sender_key for each in sessions if (each.room_id, each.id) == (room_id, session_id)), "")

    def _may_be_from(self, event: Any) -> bool:
        """A homeserver says who sent an event; a key that we know to be another person's says that it is not so."""
        for user_id in self._client.olm.device_store.users:
            for device in self._client.olm.device_store.active_user_devices(user_id):
                if device.curve25519 == event.sender_key and user_id != event.sender:
                    log.warning("matrix.key_of_another", ref=event.event_id)
                    return False
        return True

    async def request_key(self, room_id: str, event: Json) -> None:
        """Ask the sender's devices once for the key of an event. Best effort."""
        sealed = self._sealed(room_id, event)
        if sealed is not None and sealed.session_id not in self._client.outgoing_key_requests:
            await self._try("request_key", self._client.request_room_key(sealed))

    # --- out ---

    async def encrypt(self, room_id: str, kind: str, content: Json, rotation: Rotation) -> tuple[str, Json]:
        """The event as it goes into an encrypted room. Raises `MatrixError`."""
        async with self._sealing[room_id]:
            room: Any = self._client.rooms.get(room_id) if self._client else None
            if room is None or not room.encrypted:
                raise MatrixError(0, "not synced", "the room's members are not known yet", was_written=False)
            if not room.members_synced:
                await self._checked(self._client.joined_members(room_id))
            if self._client.should_query_keys:
                await self._checked(self._client.keys_query())
            self._limit(room_id, rotation)
            if self._client.olm.should_share_group_session(room_id):
                await self._share_key(room_id)
                self._limit(room_id, rotation)
            sealed: tuple[str, Json] = self._client.encrypt(room_id, kind, content)
            return sealed

    def _limit(self, room_id: str, rotation: Rotation) -> None:
        """The library does not look at what a room asks for."""
        session: Any = self._client.olm.outbound_group_sessions.get(room_id)
        if session is not None:
            session.max_messages, session.max_age = rotation.messages, timedelta(seconds=rotation.seconds)

    async def _share_key(self, room_id: str) -> None:
        """Give everybody in the room the key of what follows, to each of their devices."""
        await self._checked(self._client.share_group_session(room_id, ignore_unverified_devices=True))
        olm = self._client.olm
        shared: set[tuple[str, str]] = olm.outbound_group_sessions[room_id].users_shared_with
        missed = [
            device.id
            for user_id in self._client.rooms[room_id].users
            for device in olm.device_store.active_user_devices(user_id)
            if device.id != self._account.device_id
            and olm.session_store.get(device.curve25519)
            and (user_id, device.id) not in shared
        ]
        if missed:  # the library does not look whether its requests succeeded
            self._client.invalidate_outbound_session(room_id)
            raise MatrixError(0, "keys not shared", f"{len(missed)} devices have no key yet", was_written=False)

    def seal_file(self, content: bytes) -> tuple[bytes, Json]:
        """An encrypted file, and what opens it."""
        sealed, secret = encrypt_attachment(content)
        return sealed, secret

    # --- between syncs ---

    async def tend(self) -> None:
        """Look after the keys: upload ours, ask for those of others, answer requests. Best effort."""
        client = self._client
        client.access_token = self._server.token
        await self._try("to_device", client.send_to_device_messages())
        try:
            await self._upload_keys()
        except MatrixError as error:
            log.warning("matrix.keys_not_uploaded", error=error.errcode)
        if client.should_query_keys:
            await self._try("keys_query", client.keys_query())
        if client.should_claim_keys:
            await self._try("keys_claim", client.keys_claim(client.get_users_for_key_claiming()))

    async def _upload_keys(self) -> None:
        """New one-time keys are on disk before the homeserver hands them out: a kill must not lose their halves."""
        olm = self._client.olm
        if not olm.should_upload_keys:
            return
        keys: Json = olm.share_keys()
        olm.save_account()
        answer = await self._server.call("POST", "/keys/upload", keys)
        counts: dict[str, int] = answer.get("one_time_key_counts", {})
        response = nio.KeysUploadResponse(counts.get("curve25519", 0), counts.get("signed_curve25519", 0))
        olm.handle_response(response)

    async def _checked(self, call: Awaitable[Any]) -> None:
        try:
            answer = await call
        except (aiohttp.ClientError, TimeoutError) as error:
            raise MatrixError(0, type(error).__name__, "the keys cannot be had", was_written=False) from None
        except (EncryptionError, LocalProtocolError) as error:
            raise MatrixError(0, type(error).__name__, str(error), was_written=False) from error
        if isinstance(answer, nio.ErrorResponse):
            raise MatrixError(0, str(answer.status_code), answer.message, was_written=False)

    async def _try(self, what: str, call: Awaitable[Any]) -> None:
        try:
            await self._checked(call)
        except MatrixError as error:
            log.warning("matrix.keys_not_tended", what=what, error=error.errcode)
