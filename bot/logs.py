"""Logs: to standard error for a service, to a small file beside an interactive chat. Tokens and keys never."""

import logging
import re
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict

from bot.errors import CommandError

_SECRETS = re.compile(r"\d{6,}:[A-Za-z0-9_-]{30,}|\bsk-[A-Za-z0-9_-]{16,}")


def configure(*, level: str = "INFO", file: Path | None = None) -> None:
    """Send all logs, the libraries' included, to one place. Raises `CommandError` for a level that is none."""
    level = level.upper()
    if level not in logging.getLevelNamesMapping():
        raise CommandError(f"environment, MERK_LOG: {level} is no level. Use DEBUG, INFO, WARNING or ERROR.", code=2)
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(file, maxBytes=1_000_000, backupCount=1, encoding="utf-8")
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.format_exc_info,
        _redact,
    ]
    renderer = structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"])
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_strip_meta, renderer])
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in (
        "httpx",
        "httpx2",
        "httpcore",
        "anthropic",
        "telegram",
        "apscheduler",
        "chromadb",
        "alembic",
        "asyncio",
        "tornado",
    ):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _redact(_logger: object, _name: str, event: EventDict) -> EventDict:
    return {key: _SECRETS.sub("[redacted]", value) if isinstance(value, str) else value for key, value in event.items()}


def _strip_meta(_logger: object, _name: str, event: EventDict) -> EventDict:
    return {key: value for key, value in event.items() if key not in ("_record", "_from_structlog")}
