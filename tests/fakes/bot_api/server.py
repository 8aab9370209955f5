"""The HTTP side: requests of the bot, downloads, and the control endpoint.

One rule: every request is logged with what it asked, what it got and which fault struck it.
"""

import asyncio
import contextlib
import copy
import inspect
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from .emulator import Emulator
from .errors import BotApiError, Json, refuse
from .faults import Fault
from .limits import UPLOAD_BYTES
from .methods import HANDLERS
from .requests import loggable, read_params, refuse_problem, typed, unbuilt_parameter
from .spec import Method
from .world import Call

_OVERRUNS = {
    "Bad Request: text is too long",
    "Bad Request: message is too long",
    "Bad Request: message caption is too long",
    "Bad Request: reply markup is too long",
}
_BROKEN = ("reset", "reset_after", "timeout_after")
_MALFORMED = BotApiError(401, "Unauthorized: invalid token specified")
_WRONG_TOKEN = BotApiError(401, "Unauthorized")
_NO_METHOD = BotApiError(404, "Not Found: method not found")
_LOGGED_OUT = BotApiError(400, "Logged out")

Control = Callable[[str, Json], Awaitable[web.Response]]


@dataclass
class _Exchange:
    """One request and its outcome, filled in on the way."""

    method: str
    params: Json = field(default_factory=dict[str, object])
    fault: Fault | None = None
    result: object = None
    error: BotApiError | None = None


class Server:
    """Serves one emulator on a loopback port; port 0 picks a free one."""

    def __init__(self, emulator: Emulator, token: str, control: Control, changed: Callable[[], None]) -> None:
        """`changed` is called after each request, before its answer leaves."""
        self._emulator = emulator
        self._token = token
        self._control = control
        self._changed = changed
        self._runner: web.AppRunner | None = None
        self._delivery: asyncio.Task[None] | None = None

    async def start(self, port: int) -> int:
        application = web.Application(client_max_size=2 * UPLOAD_BYTES)
        application.router.add_route("*", "/bot{token:[^/]+}/{method:[^/]+}", self._answer_bot)
        application.router.add_get("/file/bot{token:[^/]+}/{path:.+}", self._download)
        application.router.add_post("/emu/{operation}", self._operate)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._delivery = asyncio.create_task(self._emulator.updates.deliver())
        return self._runner.addresses[0][1]

    async def stop(self) -> None:
        self._emulator.updates.close()
        for fault in self._emulator.troubles.faults:
            fault.release()
        if self._delivery is not None:
            self._delivery.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._delivery
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer_bot(self, request: web.Request) -> web.StreamResponse:
        exchange = _Exchange(request.match_info["method"])
        try:
            self._check_token(request.match_info["token"])
            method = self._find_method(exchange)
            exchange.params = typed(method, await read_params(request))
            await self._perform(method, exchange)
        except BotApiError as error:
            exchange.error = error
        except ConnectionResetError:  # killed before all was said: nobody is there to be answered
            return web.Response()
        self._log(exchange)
        self._changed()
        return await self._respond(request, exchange)

    def _check_token(self, token: str) -> None:
        if not re.fullmatch(r"\d+:[\w-]+", token):
            raise _MALFORMED
        if token != self._token:
            raise _WRONG_TOKEN

    def _find_method(self, exchange: _Exchange) -> Method:
        world = self._emulator.world
        method = self._emulator.table.find(exchange.method)
        if method is None and _exists_elsewhere(exchange.method, self._emulator):
            world.violate("not-implemented", exchange.method, "the emulator does not build this method")
            raise refuse(f"the emulator does not build {exchange.method}", 501)
        if method is None:
            world.violate("unknown-method", exchange.method, "there is no such method")
            raise _NO_METHOD
        exchange.method = method.name
        if world.logged_out and method.name != "logOut":
            raise _LOGGED_OUT
        return method

    async def _perform(self, method: Method, exchange: _Exchange) -> None:
        emulator, params = self._emulator, exchange.params
        refusal = self._judge(method, params)
        emulator.troubles.check_flood(method.name, params)
        exchange.fault = emulator.troubles.strike(method.name, params)
        if exchange.fault is not None:
            struck = exchange.fault.refusal()
            if struck is not None:
                raise emulator.troubles.told(method.name, params, struck)
            if exchange.fault.kind == "hold":
                await exchange.fault.wait()
            elif exchange.fault.kind == "reset":
                return
        if refusal is not None:
            raise refusal
        result = HANDLERS[method.name](emulator, params)
        exchange.result = await result if inspect.isawaitable(result) else result
        emulator.check_answer(method, exchange.result)

    def _judge(self, method: Method, params: Json) -> BotApiError | None:
        """Note everything that is wrong with a request as violations; return the refusal, if it deserves one."""
        emulator = self._emulator
        problems = emulator.table.request_problems(method, params)
        if emulator.schema is not None:
            seen = {problem.path for problem in problems}
            fuller = emulator.schema.request_problems(emulator.schema.methods[method.name], params)
            problems += [problem for problem in fuller if problem.path not in seen]
        for problem in problems:
            kind = "limit" if problem.kind in ("short", "long") else "schema"
            emulator.world.violate(kind, method.name, str(problem))
        unbuilt = unbuilt_parameter(method, params)
        if unbuilt:
            emulator.world.violate("not-implemented", method.name, f"the emulator does not act on {unbuilt}")
            return refuse(f"the emulator does not act on {unbuilt} of {method.name}", 501)
        return refuse_problem(problems[0]) if problems else None

    def _log(self, exchange: _Exchange) -> None:
        error = exchange.error
        if error is not None and error.description in _OVERRUNS and exchange.fault is None:
            self._emulator.world.violate("limit", exchange.method, error.description)
        self._emulator.world.log.append(
            Call(
                at=time.time(),
                method=exchange.method,
                params={name: loggable(value) for name, value in exchange.params.items()},
                status=error.code if error else 200,
                description=error.description if error else "",
                result=copy.deepcopy(exchange.result),
                fault=exchange.fault.kind if exchange.fault else None,
            )
        )

    async def _respond(self, request: web.Request, exchange: _Exchange) -> web.StreamResponse:
        fault, error = exchange.fault, exchange.error
        if fault is not None and fault.kind in _BROKEN:
            if fault.kind == "timeout_after":
                await fault.wait()
            if request.transport is not None:
                request.transport.abort()
            return web.Response()  # goes nowhere
        if error is None:
            return web.json_response({"ok": True, "result": exchange.result})
        if error.code == 502:
            return web.Response(status=502, text="<html><h1>502 Bad Gateway</h1></html>", content_type="text/html")
        return web.json_response(error.body(), status=error.code)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        found = [file for file in self._emulator.world.files.values() if file.path == path]
        if request.match_info["token"] != self._token or not found:
            return web.json_response(BotApiError(404, "Not Found").body(), status=404)
        return web.Response(body=found[0].data, content_type="application/octet-stream")

    async def _operate(self, request: web.Request) -> web.StreamResponse:
        arguments: Json = await request.json() if request.body_exists else {}
        response = await self._control(request.match_info["operation"], arguments)
        self._changed()
        return response


def _exists_elsewhere(name: str, emulator: Emulator) -> bool:
    """Say whether the Bot API knows a method that the emulator has not: by the schema file, or by the library."""
    if emulator.schema is not None:
        return emulator.schema.find(name) is not None
    from telegram import Bot  # noqa: PLC0415 - only needed on this rare path, and slow to import

    return name.lower() in {known.lower() for known in vars(Bot) if not known.startswith("_")}
