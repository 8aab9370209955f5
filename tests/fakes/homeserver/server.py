"""The HTTP side. One bot logs in; people are played by the test through `HomeserverFake`'s own methods."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Self, cast

from aiohttp import web

from .rules import check, check_annotation
from .views import shown
from .world import SERVER, Json, RefusalError, Room, World

BOT = f"@merk:{SERVER}"
PASSWORD = "open sesame"
BODY = web.RequestKey("body", dict[str, Any])

Handler = Callable[[web.Request], Awaitable[Json]]


class LostAnswer(Exception):  # noqa: N818 - it is no error of the homeserver's
    """The request was carried out, and a proxy answers that it does not know."""


class HomeserverFake:
    """Start it with `async with`. `faults` are answered instead of the next sends."""

    def __init__(self) -> None:
        self.world = World()
        self.tokens: dict[str, str] = {}
        """Access token -> device id."""
        self.transactions: dict[tuple[str, str], Json] = {}
        self.faults: list[RefusalError] = []
        self.lost_answers = 0
        """So many sends are carried out, and their answers never arrive."""
        self.requests: list[tuple[str, str, Json]] = []
        self.typing: list[tuple[str, bool]] = []
        self.receipts: list[tuple[str, str, str]] = []
        self._news = asyncio.Condition()
        self._logins = 0
        self.url = ""

    def _routes(self) -> list[web.RouteDef]:
        base = "/_matrix/client/v3"
        room = base + "/rooms/{room}"
        handlers: list[tuple[str, str, Handler]] = [
            ("GET", "/_matrix/client/versions", self._versions),
            ("POST", f"{base}/login", self._login),
            ("GET", f"{base}/account/whoami", self._whoami),
            ("GET", f"{base}/sync", self._sync),
            ("GET", base + "/profile/{user}/{key}", self._profile),
            ("PUT", base + "/profile/{user}/{key}", self._put_profile),
            ("POST", base + "/join/{room}", self._join),
            ("POST", f"{room}/leave", self._leave),
            ("POST", f"{room}/forget", self._forget),
            ("PUT", room + "/send/{kind}/{txn}", self._send),
            ("PUT", room + "/redact/{event}/{txn}", self._redact),
            ("PUT", room + "/typing/{user}", self._typing),
            ("POST", room + "/receipt/m.read/{event}", self._receipt),
            ("GET", room + "/event/{event}", self._event),
            ("GET", room + "/messages", self._messages),
            ("GET", room + "/state/{kind}/", self._state),
            ("GET", "/_matrix/client/v1/rooms/{room}/relations/{event}/{relation}", self._relations),
            ("POST", "/_matrix/media/v3/upload", self._upload),
        ]
        return [web.route(method, path, self._answering(handler)) for method, path, handler in handlers]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes(self._routes())
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._runner.cleanup()

    # --- people ---

    def person(self, name: str, display: str = "") -> str:
        user = f"@{name}:{SERVER}"
        self.world.names[user] = display or name.capitalize()
        return user

    async def happen(self) -> None:
        """Tell whoever waits in a sync that there is something new."""
        async with self._news:
            self._news.notify_all()

    async def say(self, room: Room, sender: str, text: str, **content: Any) -> str:
        event = self.world.add(room, sender, "m.room.message", {"msgtype": "m.text", "body": text, **content})
        await self.happen()
        return str(event["event_id"])

    async def react(self, room: Room, sender: str, event_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event_id, "key": key}
        event = self.world.add(room, sender, "m.reaction", {"m.relates_to": relation})
        await self.happen()
        return str(event["event_id"])

    async def invite(self, room: Room, sender: str, user: str = BOT) -> None:
        self.world.add(room, sender, "m.room.member", {"membership": "invite"}, state_key=user)
        await self.happen()

    def shown(self, room: Room, thread: str = "") -> list[str]:
        return shown(room, BOT, thread)

    # --- the API ---

    def _answering(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            try:
                request[BODY] = await _body(request)
                self.requests.append((request.method, request.path, request[BODY]))
                if not request.path.endswith(("/login", "/versions")):
                    self._check_token(request)
                return web.json_response(await handler(request))
            except LostAnswer:
                return web.Response(status=502, text="Bad Gateway")
            except RefusalError as refusal:
                return web.json_response(refusal.body, status=refusal.status)

        return answer

    def _check_token(self, request: web.Request) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            raise RefusalError(401, "M_UNKNOWN_TOKEN", "Unrecognised access token")

    def _room(self, request: web.Request) -> Room:
        room = self.world.rooms.get(request.match_info["room"])
        if room is None or room.membership(BOT) != "join":
            raise RefusalError(403, "M_FORBIDDEN", f"User {BOT} not in room")
        return room

    async def _versions(self, _request: web.Request) -> Json:
        return {"versions": ["v1.11"]}

    async def _login(self, request: web.Request) -> Json:
        body = request[BODY]
        if (body["type"], body["identifier"]["user"], body["password"]) != ("m.login.password", BOT, PASSWORD):
            raise RefusalError(403, "M_FORBIDDEN", "Invalid username or password")
        self._logins += 1
        device, token = body.get("device_id") or f"DEVICE{self._logins}", f"token-{self._logins}"
        self.tokens[token] = device
        return {"user_id": BOT, "device_id": device, "access_token": token}

    async def _whoami(self, request: web.Request) -> Json:
        token = request.headers["Authorization"].removeprefix("Bearer ")
        return {"user_id": BOT, "device_id": self.tokens[token], "is_guest": False}

    async def _profile(self, request: web.Request) -> Json:
        name = self.world.names.get(request.match_info["user"])
        if request.match_info["key"] != "displayname" or name is None:
            raise RefusalError(404, "M_NOT_FOUND", "Profile was not found")
        return {"displayname": name}

    async def _put_profile(self, request: web.Request) -> Json:
        if request.match_info["key"] == "displayname":
            self.world.names[BOT] = request[BODY]["displayname"]
        return {}

    async def _join(self, request: web.Request) -> Json:
        room = self.world.rooms.get(request.match_info["room"])
        if room is None:
            raise RefusalError(404, "M_NOT_FOUND", "No known servers")
        if room.membership(BOT) not in ("invite", "join"):
            raise RefusalError(403, "M_FORBIDDEN", "You are not invited to this room.")
        self.world.join(room, BOT)
        await self.happen()
        return {"room_id": room.id}

    async def _leave(self, request: web.Request) -> Json:
        self.world.add(self._room(request), BOT, "m.room.member", {"membership": "leave"}, state_key=BOT)
        return {}

    async def _forget(self, request: web.Request) -> Json:
        self.world.rooms.pop(request.match_info["room"])
        return {}

    async def _send(self, request: web.Request) -> Json:
        room, key = self._room(request), (request.path, request.match_info["txn"])
        if key in self.transactions:
            return self.transactions[key]
        if self.faults:
            raise self.faults.pop(0)
        kind, content = request.match_info["kind"], request[BODY]
        check(room, kind, content)
        if kind == "m.reaction":
            check_annotation(room, BOT, content["m.relates_to"])
        event = self.world.add(room, BOT, kind, content)
        self.transactions[key] = {"event_id": event["event_id"]}
        await self.happen()
        if self.lost_answers:
            self.lost_answers -= 1
            raise LostAnswer
        return self.transactions[key]

    async def _redact(self, request: web.Request) -> Json:
        room, key = self._room(request), (request.path, request.match_info["txn"])
        if key not in self.transactions:
            event = self.world.redact(room, BOT, request.match_info["event"])
            self.transactions[key] = {"event_id": event["event_id"]}
        return self.transactions[key]

    async def _typing(self, request: web.Request) -> Json:
        self.typing.append((self._room(request).id, bool(request[BODY]["typing"])))
        return {}

    async def _receipt(self, request: web.Request) -> Json:
        self.receipts.append((self._room(request).id, request[BODY]["thread_id"], request.match_info["event"]))
        return {}

    async def _event(self, request: web.Request) -> Json:
        event = self._room(request).find(request.match_info["event"])
        if event is None:
            raise RefusalError(404, "M_NOT_FOUND", "Event not found.")
        return event

    async def _relations(self, request: web.Request) -> Json:
        event_id, relation = request.match_info["event"], request.match_info["relation"]
        chunk = [
            event
            for _, event in self._room(request).events
            if event["content"].get("m.relates_to", {}).get("event_id") == event_id
            and event["content"]["m.relates_to"].get("rel_type") == relation
        ]
        return {"chunk": chunk}

    async def _state(self, request: web.Request) -> Json:
        for event in self._room(request).state():
            if event["type"] == request.match_info["kind"]:
                return event["content"]
        raise RefusalError(404, "M_NOT_FOUND", "Event not found.")

    async def _upload(self, request: web.Request) -> Json:
        address = f"mxc://{SERVER}/{len(self.world.files) + 1}"
        self.world.files[address] = await request.read()
        return {"content_uri": address}

    async def _messages(self, request: web.Request) -> Json:
        before, after = int(request.query["from"]), int(request.query.get("to", "0"))
        limit = int(request.query.get("limit", "10"))
        events = [(at, event) for at, event in self._room(request).events if after < at <= before][::-1]
        page = events[:limit]
        more = {"end": str(page[-1][0] - 1)} if len(events) > limit else {}
        return {"start": str(before), "chunk": [event for _, event in page], **more}

    # --- sync ---

    async def _sync(self, request: web.Request) -> Json:
        since = int(request.query.get("since", "0"))
        full = request.query.get("full_state") == "true"
        limit = int(json.loads(request.query["filter"])["room"]["timeline"]["limit"])
        seconds = int(request.query.get("timeout", "0")) / 1000

        def has_news() -> bool:
            return any(at > since for room in self.world.rooms.values() for at, _ in room.events)

        async with self._news:
            if seconds and not has_news():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait_for(has_news), seconds)
        joined = {room.id: part for room in self.world.rooms.values() if (part := _part(room, since, limit, full=full))}
        invited = {
            room.id: {"invite_state": {"events": [_stripped(event) for event in room.state()]}}
            for room in self.world.rooms.values()
            if room.membership(BOT) == "invite" and room.has_changed(BOT, since)
        }
        left: Json = {
            room.id: {}
            for room in self.world.rooms.values()
            if since and room.membership(BOT, since + 1) == "join" and room.membership(BOT) == "leave"
        }
        return {"next_batch": str(self.world.newest), "rooms": {"join": joined, "invite": invited, "leave": left}}


def _part(room: Room, since: int, limit: int, *, full: bool) -> Json | None:
    if room.membership(BOT) != "join":
        return None
    is_new = room.membership(BOT, since + 1) != "join"
    fresh = [(at, event) for at, event in room.events if is_new or at > since]
    timeline = fresh[-limit:]
    if not timeline and not full:
        return None
    begins = timeline[0][0] if timeline else since + 1
    state = [] if not (full or is_new or not since) else room.state(begins)
    is_limited = len(fresh) > limit
    return {
        "state": {"events": state},
        "timeline": {
            "events": [event for _, event in timeline],
            "limited": is_limited,
            "prev_batch": str(begins - 1),
        },
    }


def _stripped(event: Json) -> Json:
    return {key: event[key] for key in ("type", "sender", "state_key", "content")}


async def _body(request: web.Request) -> Json:
    if not request.can_read_body or request.path.endswith("/upload"):
        return {}
    try:
        body: Any = await request.json()
    except json.JSONDecodeError:
        raise RefusalError(400, "M_NOT_JSON", "Content not JSON.") from None
    if not isinstance(body, dict):
        raise RefusalError(400, "M_NOT_JSON", "Content must be a JSON object.")
    return cast("Json", body)
