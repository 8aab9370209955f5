"""The terminal without a person: lines of bytes in, plain text or one JSON object a reply event out.

Rule: standard output carries reply events and nothing else.
"""
# ruff: noqa: ARG002 - a script sees less than a person, so a pipe leaves unused what a screen shows

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO, cast

from bot.transports.base import Key, Outgoing
from bot.transports.terminal.surface import (
    NotUnderstoodError,
    Typed,
    buttons_as_text,
    numbered,
    storable,
    typed,
    without_controls,
)
from handlers.locales import Phrases

_CHUNK = 65536


class Pipe:
    """Reads lines of any length; writes plain text, or JSON with `as_json`. `stdin` must have a file number."""

    takes_turns = True

    def __init__(self, stdin: TextIO | None, stdout: TextIO | None, say: Phrases, *, as_json: bool) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._say = say
        self._as_json = as_json
        self._encoding = cast("str | None", getattr(stdout, "encoding", None)) or "utf-8"
        self._held = bytearray()
        self._has_wiped = False

    def opened(self, command_names: Sequence[str]) -> AbstractContextManager[None]:
        return nullcontext()

    async def read(self) -> Typed | None:
        line = await self._line()
        if line is None:
            return None
        text = storable(line.decode("utf-8", "replace")).removeprefix("\ufeff").removesuffix("\r")
        return (self._object(text) if self._as_json else None) or typed(text)

    def _object(self, text: str) -> Typed | None:
        """What a JSON object says; None for a line that is none."""
        try:
            said: Any = json.loads(text)
        except ValueError:
            return None
        match said:
            case {"text": str(words)}:
                return Typed(storable(words))
            case {"press": int(number)} if not isinstance(number, bool):
                return Typed("", number)
            case dict():
                raise NotUnderstoodError(self._say("terminal-bad-object"))
            case _:
                return None

    async def _line(self) -> bytes | None:
        scanned = 0
        while (end := self._held.find(b"\n", scanned)) < 0:
            scanned = len(self._held)
            piece = await self._piece()
            if not piece:
                rest = bytes(self._held)
                self._held.clear()
                return rest or None
            self._held += piece
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line

    async def _piece(self) -> bytes:
        # not through a buffered reader in a thread: its lock would keep the program from ending while nobody types
        if self._stdin is None:
            return b""
        number = self._stdin.fileno()
        loop = asyncio.get_running_loop()
        readable = loop.create_future()
        try:
            loop.add_reader(number, lambda: readable.done() or readable.set_result(None))
        except PermissionError:  # a regular file cannot be waited for, it is always readable
            return os.read(number, _CHUNK)
        try:
            await readable
        finally:
            loop.remove_reader(number)
        return os.read(number, _CHUNK)

    async def show(self, ref: str, outgoing: Outgoing) -> None:
        if self._as_json:
            self._put_json(dict(_event(ref, outgoing)))
        else:
            self._put("\n".join(_lines(outgoing)))

    async def wipe(self, refs: Sequence[str]) -> None:
        if self._as_json:
            self._put_json({"type": "wipe", "refs": list(refs)})
        elif not self._has_wiped:  # said once: it holds for the whole window
            self._has_wiped = True
            self._put(self._say("terminal-wiped"))

    def _put_json(self, event: dict[str, Any]) -> None:
        is_unicode = self._encoding.replace("-", "").lower() == "utf8"
        self._put(json.dumps(event, ensure_ascii=not is_unicode))

    def _put(self, line: str) -> None:
        if self._stdout is None:
            raise BrokenPipeError("standard output is closed")
        try:
            self._stdout.write(line.encode(self._encoding, "replace").decode(self._encoding) + "\n")
            self._stdout.flush()
        except BrokenPipeError:
            _discard(self._stdout)
            raise

    # a script sees what is finished, in order: nothing is shown meanwhile

    async def echo(self, said: str) -> None: ...

    async def grow(self, draft_id: int, text: str) -> None: ...

    def show_typing(self) -> None: ...

    def line_up(self, waiting: Sequence[str]) -> None: ...

    def offer(self, rows: Sequence[Sequence[Key]]) -> None: ...

    def rest(self) -> None: ...


def _event(ref: str, outgoing: Outgoing) -> Iterator[tuple[str, Any]]:
    yield "type", outgoing.kind
    yield "id", ref
    yield "text", outgoing.text
    if outgoing.kind == "card":
        yield "buttons", [[{"n": n, "label": key.label} for n, key in row] for row in numbered(outgoing.keys)]
    if outgoing.replaces is not None:
        yield "replaces", outgoing.replaces
    if outgoing.file is not None:
        yield "file", {"name": outgoing.file[0], "content": outgoing.file[1]}


def _lines(outgoing: Outgoing) -> Iterator[str]:
    yield without_controls(outgoing.text)
    if outgoing.file is not None:
        yield from (f"{without_controls(outgoing.file[0])}:", without_controls(outgoing.file[1]))
    yield from buttons_as_text(outgoing.keys)


def _discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the program's end does not complain about the pipe once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
