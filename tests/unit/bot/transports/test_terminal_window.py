"""The terminal as it is: a person at a pseudo-terminal, a script behind pipes, and a program of its own between."""

import errno
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pexpect
import pytest

from tests.fakes.window import Window

ROOT = Path(__file__).parents[4]
SESSION = Path(__file__).with_name("terminal_session.py")

# --- a person at a window ------------------------------------------------------------------------------


class Person:
    """Somebody before a real pseudo-terminal, with the session in it."""

    def __init__(self, folder: Path, *, rows: int = 30, **environment: str) -> None:
        self.window = Window(rows, 60)
        self._seen = 0
        inherited = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLORTERM")}
        self._child: pexpect.spawn[bytes] = pexpect.spawn(
            sys.executable,
            [str(SESSION), str(folder)],
            env={**inherited, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment},
            dimensions=(rows, 60),
        )
        self._child.delaybeforesend = None

    def type(self, keys: str) -> None:
        self._child.send(keys)

    def say(self, text: str) -> None:
        self.type(text + "\r")

    @property
    def lines(self) -> list[str]:
        """What is in the window, without blank lines and without what was looked at before."""
        return self.window.lines()[self._seen :]

    def waits_for_the_prompt(self) -> None:
        """What is in the window by then is looked at no more."""
        self.until(lambda: self.window.lines()[-1:] == [">"])
        self._seen = len(self.window.lines()) - 1

    def sees(self, *lines: str) -> bool:
        """True as soon as these lines are in the window, with nothing else between them."""
        wanted = "\n".join(lines)
        return self.until(lambda: wanted in "\n".join(self.lines))

    def presses_until(self, keys: str, look: Callable[[], bool]) -> bool:
        """Press again every now and then: what a key does depends on what has ended meanwhile."""

        def press_and_look() -> bool:
            self.type(keys)
            for _ in range(4):
                self._read()
            return look()

        return self.until(press_and_look)

    def until(self, look: Callable[[], bool], seconds: float = 20) -> bool:
        end = time.monotonic() + seconds
        while not (found := look()) and time.monotonic() < end:
            self._read()
        assert found, "\n" + self.window.text()
        return found

    def _read(self) -> None:
        try:
            self.window.feed(self._child.read_nonblocking(65536, timeout=0.05))
        except pexpect.TIMEOUT:
            return
        for reply in self.window.replies:
            self._child.send(reply)
        self.window.replies.clear()

    def leaves(self) -> int | None:
        """What the program returns at its end. It must leave the terminal as it was, and without a complaint."""
        self.until(lambda: "left, echo True" in self.window.text())
        try:
            while True:
                self._read()
        except pexpect.EOF:
            pass
        self._child.wait()
        assert "Traceback" not in self.window.text()
        return self._child.exitstatus

    def close(self) -> None:
        self._child.close(force=True)


@pytest.fixture(scope="module")
def seated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    made = Person(tmp_path_factory.mktemp("session"))
    yield made
    made.close()


@pytest.fixture
def person(seated: Person) -> Person:
    """The same for all tests here: only the start is slow. Each begins at an empty prompt."""
    seated.waits_for_the_prompt()
    return seated


@pytest.fixture
def seat(tmp_path: Path) -> Iterator[Callable[..., Person]]:
    """For those who leave, and for windows of other kinds."""
    people: list[Person] = []

    def seated(**options: Any) -> Person:
        people.append(Person(tmp_path / "data", **options))
        if options.get("TERM") != "dumb":
            people[-1].waits_for_the_prompt()
        return people[-1]

    (tmp_path / "data").mkdir()
    yield seated
    for one in people:
        one.close()


TREES = ["Trees", "First oak", "then ash.", " • beech", " • fir", " print('elm')", "The end <b>here</b>."]
COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|38|4[0-7]|48|9[0-7]|10[0-7])[;m]")


def test_an_answer_grows_and_stands_once(person: Person) -> None:
    """Markdown is rendered as it comes; the final answer repeats nothing."""
    person.say("stream")
    assert person.sees("First oak", "then ash.", " • beech")
    assert "elm" not in person.window.text()
    assert person.until(lambda: person.lines == ["> stream", *TREES, ">"])
    assert COLOUR.search(person.window.raw)


def test_an_answer_longer_than_the_window_stands_once(seat: Callable[..., Person]) -> None:
    person = seat(rows=8)
    person.say("stream")
    assert person.until(lambda: person.lines == ["> stream", *TREES, ">"])


def test_an_answer_that_became_another_is_printed_anew(person: Person) -> None:
    person.say("change")
    assert person.sees("> change", "This was wrong.", "And more.", "This is right.", ">")


def test_a_number_presses_a_button(person: Person) -> None:
    """The buttons are numbered, the prompt reminds of them, and the new text of the card is printed."""
    person.say("ask")
    assert person.sees("│ [1] Yes, forget  [2] No │", "╰─────────────────────────╯", "> [1] Yes, forget  [2] No")
    assert person.sees("│ [not **bold**] [31mred  │")
    person.say("2")
    assert person.sees("> [2] No", "In passing.", "╭─────────────╮", "│ Pressed no. │", "╰─────────────╯", ">")
    person.say("2")
    assert person.sees('You said "2".')


def test_ctrl_c_stops_the_answer_and_then_says_how_to_leave(person: Person) -> None:
    person.say("forever")
    assert person.sees("word 3")
    person.type("\x03")
    assert person.sees("Stopped here.", ">")
    assert "Ctrl-D" not in person.window.text()
    person.type("half a thought")
    assert person.sees("> half a thought")
    assert person.presses_until("\x03", lambda: person.lines[-1] == ">")
    assert person.presses_until("\x03", lambda: person.lines[-2:] == ["Ctrl-D leaves.", ">"])


def test_what_is_typed_during_an_answer_waits_visibly_and_in_order(person: Person) -> None:
    person.say("stream")
    assert person.sees("First oak")
    person.say("slow one")
    person.say("second")
    assert person.sees("waits: slow one", "waits: second", ">")
    assert person.sees("> stream", *TREES, "> slow one", "Slowly.", "> second", 'You said "second".', ">")
    assert "waits" not in person.window.text()


def test_an_answer_that_takes_its_time_shows_that_it_is_being_made(person: Person) -> None:
    person.say("slow")
    assert person.sees("> slow", "…", ">")
    assert person.sees("> slow", "Slowly.", ">")


def test_stray_output_does_not_tear_the_prompt(person: Person) -> None:
    person.say("print")
    assert person.sees("Printed.")
    assert person.until(lambda: any(re.fullmatch(r"A stray \S?\[31mline\.", line) for line in person.lines))
    person.type("on we go")
    assert person.sees("> on we go")
    assert person.presses_until("\x03", lambda: person.lines[-1] == ">")


def test_a_paste_of_many_lines_is_one_message(person: Person) -> None:
    person.type("\x1b[200~one\r\ntwo\x1b[201~")
    assert person.sees("> one", "  two")
    person.type("\x1b\rthree\r")  # Alt-Enter begins a line
    assert person.sees("> one", "  two", "  three", 'You said "one\\ntwo\\nthree".')


def test_files_wipes_and_notices_are_printed(person: Person) -> None:
    person.say("draft")
    assert person.sees("│ A draft. │")
    person.say("wipe")
    assert person.sees("What was taken back may still stand above; clear the window", "to be rid of it.")
    for word in ("file", "note"):
        person.say(word)
    assert person.sees("│ Your facts. │", "╰─────────────╯", "facts.md", "# Facts", "- one")
    assert person.sees("Only a note.", ">")


def test_tab_completes_commands_and_arrows_recall_what_was_said(seat: Callable[..., Person]) -> None:
    person = seat()
    person.type("/f\t")
    assert person.sees("> /forget")
    person.say("")
    assert person.sees('You said "/forget".', ">")
    for recalled in ("/forget", "an old question", "the oldest question"):
        person.type("\x1b[A")
        assert person.sees(f"> {recalled}")


def test_ctrl_d_leaves_and_nothing_typed_is_on_disk_but_in_the_database(
    seat: Callable[..., Person], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    person = seat(HOME=str(home), TMPDIR=str(home))
    person.say("a secret")
    person.type("\x04")
    assert person.leaves() == 0
    assert list(home.rglob("*")) == []
    assert {file.name.split("-")[0] for file in (tmp_path / "data").iterdir()} == {"merk.db"}


def test_the_end_from_outside_leaves_the_terminal_as_before(seat: Callable[..., Person]) -> None:
    person = seat()
    person.say("terminate")
    assert person.leaves() == 0


def test_no_colours_where_they_are_unwanted(seat: Callable[..., Person]) -> None:
    person = seat(NO_COLOR="1")
    person.say("stream")
    assert person.sees("> stream", *TREES, ">")
    assert not COLOUR.search(person.window.raw)


def test_a_terminal_that_cannot_be_steered_gets_lines(seat: Callable[..., Person]) -> None:
    person = seat(TERM="dumb")
    person.say("stream")
    assert person.sees("# Trees", "First **oak**")
    assert "\x1b" not in person.window.raw
    person.type("\x04")
    assert person.leaves() == 0


# --- a script behind pipes -----------------------------------------------------------------------------


def _pipe(folder: Path, *arguments: str, stdin: int | BinaryIO = subprocess.PIPE, typed: bytes | None = None):
    return subprocess.run(
        [sys.executable, str(SESSION), str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=stdin if typed is None else None,
        input=typed,
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_a_script_gets_events_and_nothing_else(tmp_path: Path) -> None:
    done = _pipe(tmp_path, "--json", typed=b'stream\n{"text": "ask"}\n{"press": 1}\n' + b"x" * 50_000 + b"\n/stop")
    events = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [event["type"] for event in events] == ["text", "card", "notice", "card", "text", "notice"]
    assert events[0]["text"].startswith("# Trees\n\nFirst **oak**\nthen ash.")
    assert events[3]["replaces"] == events[1]["id"]
    assert len(events[4]["text"]) > 50_000
    assert (done.returncode, done.stderr) == (0, b"left, echo False\n")


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes("slow\nGrüße\n".encode())
    with (tmp_path / "lines").open("rb") as lines:
        done = _pipe(tmp_path, stdin=lines)
    assert done.stdout.decode() == 'Slowly.\nYou said "Grüße".\n'


def test_a_reader_that_goes_away_causes_no_complaint(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(SESSION), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=b"one\ntwo\n",
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=30,
        check=False,
    )
    os.close(writing)
    assert os.strerror(errno.EPIPE) not in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0
