"""Logs: one line an event, in one place, without tokens and keys."""

import logging
from collections.abc import Generator
from pathlib import Path

import pytest
import structlog

from bot import logs
from bot.errors import CommandError

TOKEN = "1234567890:" + "Ab9_-" * 7
KEY = "sk-" + "a1B2" * 8


@pytest.fixture(autouse=True)
def as_before() -> Generator[None, None, None]:
    """Leave logging as the other tests expect it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def test_a_token_or_a_key_is_taken_out_wherever_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "chat.log"
    logs.configure(level="INFO", file=file)
    structlog.get_logger("test").info("asked", url=f"https://api.telegram.org/bot{TOKEN}/getMe", key=KEY)
    logging.getLogger("some.library").warning("POST /bot%s/getMe", TOKEN)
    try:
        int(f"bad key {KEY}")
    except ValueError:
        structlog.get_logger("test").exception("failed")
    text = file.read_text()
    assert TOKEN not in text
    assert KEY not in text
    assert text.count("[redacted]") == 4
    assert "ValueError" in text


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="LOUD is no level") as refused:
        logs.configure(level="loud")
    assert refused.value.code == 2
    logs.configure(level="debug")
