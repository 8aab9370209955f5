"""What the Messages API bills a call as: plain JSON in, lines of a bill out. Pure.

Rule: `iterations` hold what the top level leaves out (compaction, advice); where they are, they are the whole bill.
"""

from collections.abc import Mapping
from typing import Any, cast

from memory.ports import Billed, Usage


def bill(model: str, usage: Mapping[str, Any]) -> tuple[Billed, ...]:
    """The lines of one response's `usage` object."""
    rows = usage.get("iterations")
    if not isinstance(rows, list) or not rows:
        return (Billed(model, count(usage)),)
    listed = cast("list[Mapping[str, Any]]", rows)
    return tuple(Billed(str(row.get("model") or model), count(row)) for row in listed)


def count(row: Mapping[str, Any]) -> Usage:
    """The tokens of one line. Fields may be missing or null."""
    written = _number(row, "cache_creation_input_tokens")
    kept = row.get("cache_creation")
    if isinstance(kept, Mapping):
        times = cast("Mapping[str, Any]", kept)
        hour = _number(times, "ephemeral_1h_input_tokens")
        written = max(written, hour + _number(times, "ephemeral_5m_input_tokens"))
    else:
        hour = written  # this adapter asks for nothing shorter
    return Usage(
        input=_number(row, "input_tokens"),
        output=_number(row, "output_tokens"),
        cache_read=_number(row, "cache_read_input_tokens"),
        cache_write=written,
        cache_write_1h=hour,
    )


def _number(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) and value > 0 else 0
