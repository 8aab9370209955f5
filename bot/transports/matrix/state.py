"""How far we have read, kept in one file that is replaced whole: only what is committed elsewhere by then (P46)."""

from pathlib import Path

from bot.transports.matrix import files
from bot.transports.matrix.client import Json
from bot.transports.matrix.errors import AccountError

SYNC_FILE = "sync.json"
MOST_UNDECRYPTED = 200
"""Of those that people were told of: for the others a key may be on its way."""


class SyncState:
    """The sync token, the rooms that we were in at that point, and what waits for its key."""

    def __init__(self, folder: Path) -> None:
        """Raises `AccountError` for a file that cannot be read."""
        self._path = folder / SYNC_FILE
        try:
            kept = files.read(self._path)
        except (OSError, ValueError) as error:
            raise AccountError(f"{self._path} cannot be read ({error}). Restore it, or delete it") from error
        self.token: str | None = kept.get("token")
        self.rooms: set[str] = set(kept.get("rooms", ()))
        self.told: set[str] = set(kept.get("told", ()))
        """Rooms that were told once why nothing is answered there."""
        self.invitations: dict[str, str] = dict(kept.get("invitations", {}))
        """Room id -> who invited us; not accepted yet, and no sync tells of it again."""
        self.undecrypted: list[Json] = list(kept.get("undecrypted", ()))
        """{"room_id", "event"}: as they came, for a key may still come."""
        self._saved = self._value()

    def wait_for_key(self, room_id: str, event: Json) -> None:
        others = [each for each in self.undecrypted if each["event"]["event_id"] != event["event_id"]]
        told = [each["event"]["event_id"] for each in others if each.get("is_told")]
        dropped = set(told[:-MOST_UNDECRYPTED])
        kept = [each for each in others if each["event"]["event_id"] not in dropped]
        self.undecrypted = [*kept, {"room_id": room_id, "event": event}]

    def advance(self, token: str) -> None:
        """Everything before this token is committed."""
        self.token = token
        if (value := self._value()) != self._saved:
            files.write(self._path, value)
            self._saved = value

    def _value(self) -> Json:
        return {
            "token": self.token,
            "rooms": sorted(self.rooms),
            "told": sorted(self.told),
            "invitations": dict(self.invitations),
            "undecrypted": self.undecrypted,
        }
