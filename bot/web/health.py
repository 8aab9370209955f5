"""Whether Merk is well: the age of the last poll and sync, not a living process (pitfall P40).

Rule: what is needed to be answered at all makes it unwell (503). What costs only quality is named, and 200 it stays.
"""

import asyncio
import shutil
import time
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from bot.checks.data import LEAST_FREE_BYTES
from bot.web.inside import Inside
from memory import telemetry
from memory.instants import to_ms
from memory.storage import telemetry as events

STALE_SECONDS = 120.0
"""So long after its last contact a network counts as lost."""
KEPT_SECONDS = 3.0
"""A report is shown again for so long: asking often costs nothing."""
_NEEDED = frozenset(("store", "disk"))


class Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    name: str
    ok: bool
    detail: str
    age_seconds: float | None = None
    """Since its last sign of life, where it gives such signs."""
    is_needed: bool = False
    done: int | None = None
    total: int | None = None
    """Of work that is under way."""
    code: str = ""
    """Names a `detail` that is often told."""
    count: float | None = None
    """The figure in it."""


class Report(BaseModel):
    status: Literal["ok", "degraded", "stale"]
    parts: list[Part]


@dataclass(slots=True)
class _Kept:
    at: float
    report: Report


class Health:
    """Asks every part, at most every few seconds."""

    def __init__(self, site: Inside) -> None:
        self._site = site
        self._began = time.monotonic()
        self._kept: _Kept | None = None
        self._asking = asyncio.Lock()

    async def report(self) -> Report:
        async with self._asking:
            if self._kept is None or time.monotonic() - self._kept.at > KEPT_SECONDS:
                parts = await self._parts()
                self._kept = _Kept(time.monotonic(), Report(status=_status(parts), parts=parts))
            return self._kept.report

    async def is_ready(self) -> bool:
        """Whether people are answered: the store answers and every network has been in contact."""
        in_contact = all(each.last_contact() is not None for each in self._site.transports.values())
        report = await self.report()
        return in_contact and all(part.ok for part in report.parts if part.is_needed)

    async def _parts(self) -> list[Part]:
        parts = [self._network(name) for name in self._site.transports]
        parts += [
            Part(
                name=each.name,
                ok=each.ok,
                detail=each.detail,
                is_needed=each.name in _NEEDED,
                done=each.done,
                total=each.total,
                code=each.code,
                count=each.count,
            )
            for each in await self._site.memory.health()
        ]
        return [*parts, await self._summaries(), self._disk()]

    def _network(self, name: str) -> Part:
        transport = self._site.transports[name]
        age = transport.last_contact()
        waited = time.monotonic() - self._began if age is None else age
        detail, code = ("no contact yet", "no-contact") if age is None else ("in contact", "contact")
        if transport.problem:
            detail, code = transport.problem, ""
        return Part(name=name, ok=waited <= STALE_SECONDS, detail=detail, code=code, age_seconds=age, is_needed=True)

    async def _summaries(self) -> Part:
        async with self._site.database.search() as connection:
            last = await events.last_at(connection, telemetry.Summarised.name)
        if last is None:
            return Part(name="summaries", ok=True, detail="none made yet", code="none-yet")
        age = (to_ms(self._site.clock.now()) - last) / 1000
        return Part(name="summaries", ok=True, detail="the age is that of the last one", code="last", age_seconds=age)

    def _disk(self) -> Part:
        free = shutil.disk_usage(self._site.settings.tenant.data_dir).free
        is_enough, gb = free >= LEAST_FREE_BYTES, round(free / 1e9, 1)
        return Part(name="disk", ok=is_enough, detail=f"{gb} GB free", code="free", count=gb, is_needed=True)


def health(request: Request) -> Health:
    """A dependency: the one of this site."""
    return cast("Health", request.app.state.health)


router = APIRouter(tags=["health"])


@router.get("/healthz", responses={503: {"model": Report, "description": "A part that is needed has gone silent."}})
async def healthz(response: Response, asked: Annotated[Health, Depends(health)]) -> Report:
    """Every part, and whether Merk is well."""
    report = await asked.report()
    response.status_code = 503 if report.status == "stale" else 200
    return report


@router.get("/readyz", responses={503: {"description": "Not yet, or not any more."}})
async def readyz(response: Response, asked: Annotated[Health, Depends(health)]) -> dict[str, bool]:
    """Whether people are answered."""
    is_ready = await asked.is_ready()
    response.status_code = 200 if is_ready else 503
    return {"ready": is_ready}


def _status(parts: list[Part]) -> Literal["ok", "degraded", "stale"]:
    wrong = [part for part in parts if not part.ok]
    if any(part.is_needed for part in wrong):
        return "stale"
    return "degraded" if wrong else "ok"
