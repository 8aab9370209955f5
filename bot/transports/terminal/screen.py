"""The terminal with a person before it: a prompt that stays below, and everything said above it.

Rule: what is printed is final; what may still change is part of the prompt's own picture. Nothing is kept on disk.
"""
# ruff: noqa: ARG002 - the protocol gives a surface more than a screen can use

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import StringIO
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.patch_stdout import patch_stdout
from rich import box
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.panel import Panel
from rich.text import Text

from bot.transports.base import Key, Outgoing
from bot.transports.terminal.growing import Growth
from bot.transports.terminal.surface import Typed, buttons_as_text, storable, typed, without_controls
from handlers.locales import Phrases

PROMPT = "> "
_NOTHING = "…"
_PADDING = re.compile(r" +$", re.MULTILINE)
_ROWS_BELOW = 8  # of the window stay free of the growing answer, for the line and the menu
_WAITING_SHOWN = 4
_LONGEST_PICTURE = 6000  # characters of one block; more cannot be rendered as often as it grows


class Screen:
    """A prompt on a terminal. `interrupt` stops the running answer, and says whether there was one."""

    takes_turns = False

    def __init__(
        self, stdin: TextIO, stdout: TextIO, say: Phrases, history: Sequence[str], interrupt: Callable[[], bool]
    ) -> None:
        self._say = say
        self._interrupt = interrupt
        self._growth: Growth | None = None
        self._is_typing = False
        self._has_wiped = False
        self._waiting: Sequence[str] = ()
        self._offered = ""
        self._console = Console(
            file=StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False, legacy_windows=False
        )
        self._above: StyleAndTextTuples = []
        self._session = PromptSession[str](
            message=self._message,
            history=InMemoryHistory([storable(line) for line in history]),
            complete_while_typing=False,
            key_bindings=self._bindings(),
            placeholder=self._placeholder,
            prompt_continuation=" " * len(PROMPT),
            erase_when_done=True,
            input=_RawInput(stdin),
            output=create_output(stdout),
        )

    # --- typing ---------------------------------------------------------------------------------------

    @contextmanager
    def opened(self, command_names: Sequence[str]) -> Generator[None]:
        self._session.completer = _Commands(command_names)
        # raw all the while, also between two prompts
        with patch_stdout(), self._session.input.raw_mode():
            yield

    async def read(self) -> Typed | None:
        try:
            text = await self._session.prompt_async(set_exception_handler=False)
        except EOFError:
            return None
        return typed(storable(text))

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("c-c", filter=~is_searching)
        @bindings.add("<sigint>")
        def _(event: KeyPressEvent) -> None:
            if self._interrupt():
                return
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.create_background_task(self._print(Text(self._say("terminal-leave"), style="dim")))

        @bindings.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return bindings

    # --- printing -------------------------------------------------------------------------------------

    async def echo(self, said: str) -> None:
        lines = without_controls(said).replace("\n", "\n" + " " * len(PROMPT))
        await self._print(Text.assemble((PROMPT, "bold cyan"), lines))

    async def show(self, ref: str, outgoing: Outgoing) -> None:
        text = without_controls(outgoing.text)
        match outgoing.kind:
            case "text":
                self._is_typing = False
                await self._finish(text)
            case "notice":
                await self._print(Text(text, style="dim"))
            case _:
                self._is_typing = False
                await self._print(*_card(outgoing, text))

    async def wipe(self, refs: Sequence[str]) -> None:
        if self._has_wiped:  # said once: it holds for the whole window
            return
        self._has_wiped = True
        await self._print(Text(self._say("terminal-wiped"), style="dim"))

    async def grow(self, draft_id: int, text: str) -> None:
        if self._growth is None or self._growth.id != draft_id:
            self._growth = Growth(draft_id)
        whole = self._growth.grow(without_controls(text))
        self._is_typing = self._is_typing and not text.strip()
        if whole:
            await self._print(_markdown(whole))
        self._redraw()

    async def _finish(self, text: str) -> None:
        rest = self._growth.finish(text) if self._growth else None
        if rest is None:
            rest = text if text.strip() else _NOTHING
        else:
            self._growth = None
        if rest.strip():
            await self._print(_markdown(rest))
        self._redraw()

    async def _print(self, *things: RenderableType) -> None:
        ansi = "".join(self._ansi(thing) + "\n\n" for thing in things)
        output = self._session.output

        def write() -> None:
            output.write_raw(ansi)
            output.flush()

        await run_in_terminal(write)

    def _ansi(self, thing: RenderableType) -> str:
        self._console.width = self._session.output.get_size().columns
        with self._console.capture() as captured:
            self._console.print(thing)
        return _PADDING.sub("", captured.get()).strip("\n")

    # --- the picture below ----------------------------------------------------------------------------

    def show_typing(self) -> None:
        self._is_typing = True
        self._redraw()

    def line_up(self, waiting: Sequence[str]) -> None:
        self._waiting = waiting
        self._redraw()

    def offer(self, rows: Sequence[Sequence[Key]]) -> None:
        self._offered = "  ".join(buttons_as_text(rows))
        self._redraw()

    def rest(self) -> None:
        self._growth = None
        self._is_typing = False
        self._redraw()

    def _redraw(self) -> None:
        pieces = [self._growing(), *self._lined_up()]
        above = "".join(f"{piece}\n\n" for piece in pieces if piece)
        self._above = to_formatted_text(ANSI(above))
        self._session.app.invalidate()

    def _growing(self) -> str:
        picture = self._growth.picture if self._growth else ""
        if not picture.strip():
            return self._ansi(Text(_NOTHING, style="dim")) if self._is_typing else ""
        is_long = len(picture) > _LONGEST_PICTURE
        lines = self._ansi(Text(picture[-_LONGEST_PICTURE:]) if is_long else _markdown(picture)).split("\n")
        return "\n".join(lines[-max(3, self._session.output.get_size().rows - _ROWS_BELOW) :])

    def _lined_up(self) -> list[str]:
        waiting = [
            f"{self._say('terminal-waits')}: {' '.join(without_controls(said).split())}" for said in self._waiting
        ]
        if len(waiting) > _WAITING_SHOWN:
            waiting = [*waiting[:_WAITING_SHOWN], f"+{len(waiting) - _WAITING_SHOWN}"]
        if not waiting:
            return []
        return [self._ansi(Text("\n".join(waiting), style="dim", no_wrap=True, overflow="ellipsis"))]

    def _message(self) -> StyleAndTextTuples:
        return [*self._above, ("bold ansicyan", PROMPT)]

    def _placeholder(self) -> StyleAndTextTuples:
        room = self._session.output.get_size().columns - len(PROMPT) - 1
        offered = Text(self._offered)
        offered.truncate(room, overflow="ellipsis")
        return [("ansibrightblack", offered.plain)]


class _RawInput(Vt100Input):
    """What is typed while something is printed stays with the prompt: the terminal must not echo it in between."""

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Commands(Completer):
    """Completes the name of a command at the start of a line."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = sorted("/" + name.removeprefix("/") for name in names)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        begun = document.text_before_cursor
        if begun.startswith("/"):
            yield from (Completion(name, -len(begun)) for name in self._names if name.startswith(begun))


def _card(outgoing: Outgoing, text: str) -> list[RenderableType]:
    inside: list[RenderableType] = [_markdown(text) if outgoing.formatted else Text(text)]
    if outgoing.keys:
        inside += [Text(), Text("\n".join(buttons_as_text(outgoing.keys)), style="bold")]
    frame = Panel(Group(*inside), box=box.ROUNDED, border_style="dim", expand=False)
    if outgoing.file is None:
        return [frame]
    name, content = outgoing.file
    return [frame, Text(without_controls(name), style="bold"), Text(without_controls(content))]


def _markdown(text: str) -> Markdown:
    """The text as Rich shows it, but every line and every tag stays as it was written, and titles to the left."""
    markdown = Markdown(text, code_theme="ansi_dark", hyperlinks=False)
    for token in markdown.parsed:
        if token.type == "html_block":
            token.type = "code_block"
        if token.tag == "h1":
            token.tag = "h2"
        for child in token.children or ():
            child.type = {"softbreak": "hardbreak", "html_inline": "text"}.get(child.type, child.type)
    return markdown
