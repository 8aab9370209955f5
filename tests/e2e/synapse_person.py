"""An ordinary person in plain rooms. What they do is in synapse_participant.py, what they see in synapse_view.py.

One rule: plain HTTP by the specification; no Matrix library, so that no library hides what Merk sends.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

import httpx

from tests.e2e.synapse_participant import Participant
from tests.e2e.synapse_view import Event, RoomView

_TOO_MANY = 429
_PAGE = 100  # events of one answer; Synapse gives no more


class Person(Participant):
    """One device of one user. `wait_for` and `view` sync first; nothing happens in the background."""

    def __init__(self, client: httpx.AsyncClient, user_id: str, device_id: str, access_token: str) -> None:
        super().__init__(user_id, device_id, access_token)
        self.invitations: dict[str, list[Event]] = {}  # room id -> stripped state
        self._client = client
        self._since: str | None = None

    @classmethod
    @asynccontextmanager
    async def logged_in(cls, url: str, user_id: str, password: str) -> AsyncGenerator[Self]:
        """A new device of this user."""
        base = f"{url}/_matrix/client/v3"
        async with httpx.AsyncClient(base_url=base, verify=False, timeout=60) as client:
            who = {"type": "m.id.user", "user": user_id}
            body: Event = {"type": "m.login.password", "identifier": who, "password": password}
            reply = (await client.post("/login", json=body)).raise_for_status().json()
            client.headers["Authorization"] = f"Bearer {reply['access_token']}"
            yield cls(client, user_id, reply["device_id"], reply["access_token"])

    async def call(self, method: str, path: str, body: Event | None = None, **parameters: Any) -> Event:
        """Waits out a 429; other refusals raise httpx.HTTPStatusError."""
        while True:
            reply = await self._client.request(method, path, json=body, params=parameters)
            if reply.status_code != _TOO_MANY:
                return reply.raise_for_status().json()
            await asyncio.sleep(reply.json().get("retry_after_ms", 1000) / 1000)

    async def send_event(self, room: str, kind: str, content: Event) -> str:
        path = f"/rooms/{quote(room)}/send/{kind}/{secrets.token_hex(8)}"
        return (await self.call("PUT", path, content))["event_id"]

    async def sync(self, seconds: float = 0) -> Event:
        """Bring `rooms` and `invitations` up to date, waiting so long for news. Returns the raw answer."""
        since = self._since
        parameters: dict[str, Any] = {"timeout": int(seconds * 1000)}
        parameters["filter"] = f'{{"room": {{"timeline": {{"limit": {_PAGE}}}}}}}'
        if since:
            parameters["since"] = since
        answer = await self.call("GET", "/sync", **parameters)
        rooms: Event = answer.get("rooms", {})
        for room_id, part in rooms.get("join", {}).items():
            await self._take(room_id, part)
            self.invitations.pop(room_id, None)
        for room_id, part in rooms.get("leave", {}).items():
            await self._take(room_id, part)
            self.invitations.pop(room_id, None)
        for room_id, part in rooms.get("invite", {}).items():
            self.invitations[room_id] = part["invite_state"]["events"]
        self._since = answer["next_batch"]
        return answer

    async def _take(self, room_id: str, part: Event) -> None:
        view = self.rooms.setdefault(room_id, RoomView())
        timeline: Event = part.get("timeline", {"events": []})
        fresh: list[Event] = timeline["events"]
        if timeline.get("limited"):
            known = {event["event_id"] for event in view.events}
            fresh = await self._missed(room_id, timeline["prev_batch"], known) + fresh
        view.take_state(part.get("state", {}).get("events", []))
        view.take(fresh)
        for event in part.get("ephemeral", {}).get("events", []):
            view.take_ephemeral(event)

    async def _missed(self, room_id: str, before: str, known: set[str]) -> list[Event]:
        """What a limited timeline left out, oldest first, back to what is known or to the beginning."""
        missed: list[Event] = []
        start: str | None = before
        while start:
            parameters: dict[str, Any] = {"from": start, "dir": "b", "limit": _PAGE}
            page = await self.call("GET", f"/rooms/{quote(room_id)}/messages", **parameters)
            for event in page["chunk"]:
                if event["event_id"] in known:
                    return missed[::-1]
                missed.append(event)
            start = page.get("end")
        return missed[::-1]
