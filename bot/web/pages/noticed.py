"""What was noticed by itself: observations with their evidence, their history, and what people did with them.

Rule: everything goes through `memory.observations`, which knows who may see, change and share what.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, get_args

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, BeforeValidator, Field

from bot.web.pages.facts import Form, ask_page, key_of, receipt_page
from bot.web.pages.overview import Chart, rows
from bot.web.pages.visit import MOST, PER_PAGE, Visit, Visiting, blank, pages
from bot.web.reports import Granularity, Period, Reports
from memory.instants import to_ms
from memory.kinds.observations.observation import Observation, Type
from memory.kinds.observations.reading import State
from memory.scope import PUBLIC, VIEW_SENSITIVE, Scope, group_key, number_of, own_key, scope_of, sensitive_key, team_key
from memory.storage import feedback, members, turns
from memory.types import ObservationRefused

_QUALITY = timedelta(days=30)
_STATUS = {"gone": 404, "others": 403, "members": 403, "grant": 403, "empty": 422}
_SAID = ("edited", "confirmed", "rejected", "hidden", "restored", "moved")

router = APIRouter(include_in_schema=False)

Id = Annotated[int, Path(ge=1, le=MOST)]


class Asked(BaseModel):
    q: str = Field(default="", max_length=200)
    type: Annotated[Type | None, BeforeValidator(blank)] = None
    state: State = "in_force"
    scope: Annotated[Scope | None, BeforeValidator(blank)] = None
    sensitive: bool = False
    page: int = Field(default=1, ge=1, le=1_000_000)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an observation may be moved."""

    key: str
    name: str


@router.get("/memory/noticed")
async def listed(visit: Visiting, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    seen = visit.site.memory.observations
    kinds = () if asked.type is None else (asked.type,)
    # whoever asks for what is sensitive by its scope asks for it explicitly
    sensitive = asked.sensitive or asked.scope is Scope.SENSITIVE
    more: dict[str, Any] = {"kinds": kinds, "scope": asked.scope, "sensitive": sensitive}
    more |= {"offset": (asked.page - 1) * PER_PAGE, "limit": PER_PAGE}
    if asked.q.strip():
        found = await seen.search(visit.audience, asked.q, **more)
    else:
        found = await seen.list(visit.audience, state=asked.state, **more)
    kept = asked.model_dump(exclude={"page"}, exclude_defaults=True)
    return visit.page(
        "noticed.html",
        asked=asked,
        types=list(Type),
        states=get_args(State),
        scopes=[each for each in Scope if each is not Scope.SENSITIVE or _may_see_sensitive(visit)],
        observations=found.observations,
        total=found.total,
        page=asked.page,
        last=pages(found.total),
        query=kept,
        more={"sensitive": 1} if sensitive else {},
        use=await _quality(visit),
        recalled=await _recalled(visit),
        days=_QUALITY.days,
    )


@router.get("/memory/noticed/{observation_id}")
async def one(visit: Visiting, observation_id: Id, *, sensitive: bool = False, said: str = "") -> HTMLResponse:
    return await _page(visit, observation_id, sensitive=sensitive, said=said if said in _SAID else "")


@router.post("/memory/noticed/{observation_id}")
async def act(visit: Visiting, observation_id: Id, given: Form) -> Response:
    """Judge, reword, bring back or move one. The button that was pressed says which."""
    sensitive = _is_sensitive(given)
    try:
        said, shown = await _done(visit, observation_id, given, sensitive=sensitive)
    except ObservationRefused as refused:
        problem = visit.words.say(f"web-noticed-refused-{refused.reason}")
        status = _STATUS[refused.reason]
        if refused.reason == "gone":
            raise HTTPException(status) from refused
        return await _page(visit, observation_id, sensitive=sensitive, problem=problem, status=status)
    if said == "ask":
        found = await _there(visit, observation_id, sensitive=sensitive)
        return visit.page("wider.html", one=found, to=given["to"], name=_name(visit, await _places(visit), given["to"]))
    is_now_sensitive = sensitive or given.get("to") == sensitive_key(visit.user.id)
    return visit.go(f"/memory/noticed/{shown}", said=said, **({"sensitive": 1} if is_now_sensitive else {}))


@router.get("/memory/noticed/{observation_id}/forget")
async def ask(visit: Visiting, observation_id: Id, *, sensitive: bool = False) -> HTMLResponse:
    found = await _there(visit, observation_id, sensitive=sensitive)
    question = visit.words.say("forget-ask", fact=found.title)
    keep = {"sensitive": "1"} if sensitive else {}
    return ask_page(visit, question, back=f"/memory/noticed/{found.id}", keep=keep)


@router.post("/memory/noticed/{observation_id}/forget")
async def forget(visit: Visiting, observation_id: Id, given: Form) -> HTMLResponse:
    receipt = await visit.site.memory.forget_observations(
        visit.audience, [observation_id], key=key_of(visit, given), sensitive=_is_sensitive(given)
    )
    return receipt_page(visit, receipt, back="/memory/noticed")


async def _done(visit: Visit, observation_id: int, given: dict[str, str], *, sensitive: bool) -> tuple[str, int]:
    """What happened, and which observation to show for it. Raises `ObservationRefused`."""
    seen, audience = visit.site.memory.observations, visit.audience
    match given.get("do"):
        case "confirm":
            return "confirmed", (await seen.confirm(audience, observation_id, sensitive=sensitive)).id
        case "reject":
            is_hidden = await seen.reject(audience, observation_id, sensitive=sensitive)
            return "hidden" if is_hidden else "rejected", observation_id
        case "restore":
            return "restored", (await seen.restore(audience, observation_id, sensitive=sensitive)).id
        case "edit":
            return "edited", (await seen.edit(audience, observation_id, given.get("text", ""))).id
        case "move":
            to = given.get("to", "")
            if to not in {each.key for each in await _places(visit)}:
                raise ObservationRefused("members")
            change = await seen.change_scope(
                audience, observation_id, to, is_confirmed=given.get("sure") == "yes", sensitive=sensitive
            )
            return "moved" if change.outcome == "done" else "ask", change.observation.id
        case _:
            raise HTTPException(422)


async def _page(
    visit: Visit, observation_id: int, *, sensitive: bool, said: str = "", problem: str = "", status: int = 200
) -> HTMLResponse:
    found = await _there(visit, observation_id, sensitive=sensitive)
    seen = visit.site.memory.observations
    places = await _places(visit)
    async with visit.site.database.search() as connection:
        keys = await members.shown(connection, visit.audience, sensitive=sensitive)
        use = await feedback.use(connection, keys, observation_id=found.id)
    history = await seen.history_of_slot(visit.audience, found.id, sensitive=sensitive)
    mine = await seen.disposable(visit.audience, [found.id], sensitive=sensitive)
    return visit.page(
        "observation.html",
        status,
        one=found,
        state=_state(visit, found),
        where=_name(visit, places, found.owner),
        moves=[each for each in places if each.key != found.owner],
        history=[(each, _state(visit, each)) for each in history] if len(history) > 1 else [],
        use=use,
        is_mine=bool(mine),
        is_sensitive=found.scope is Scope.SENSITIVE,
        more={"sensitive": 1} if sensitive else {},
        said=visit.words.say(f"web-said-{said}") if said else "",
        problem=problem,
    )


async def _there(visit: Visit, observation_id: int, *, sensitive: bool) -> Observation:
    found = await visit.site.memory.observations.by_id(visit.audience, observation_id, sensitive=sensitive)
    if found is None:
        raise HTTPException(404)
    return found


async def _places(visit: Visit) -> list[Place]:
    """Whose it may become: one's own, sensitive with the grant, one's teams and groups, everybody's."""
    say, me = visit.words.say, visit.user.id
    async with visit.site.database.search() as connection:
        keys = await members.shown(connection, visit.audience)
        teams = await members.list_teams(connection, me)
        chats = await turns.names_of_chats(connection)
    places = [Place(own_key(me), say("web-scope-private"))]
    if _may_see_sensitive(visit):
        places.append(Place(sensitive_key(me), say("web-scope-sensitive")))
    places += [Place(team_key(each.id), each.name) for each in teams]
    groups = [number_of(key) for key in keys if key.startswith("c")]
    places += [Place(group_key(each), chats.get(each, str(each))) for each in groups]
    return [*places, Place(PUBLIC, say("web-scope-public"))]


def _name(visit: Visit, places: list[Place], key: str) -> str:
    named = {each.key: each.name for each in places}
    return named.get(key) or visit.words.say(f"web-scope-{scope_of(key)}")


def _state(visit: Visit, found: Observation) -> str:
    if found.is_hidden:
        return "hidden"
    if found.superseded_by is not None:
        return "superseded"
    return "in_force" if found.holds_at(visit.site.clock.now()) else "expired"


def _may_see_sensitive(visit: Visit) -> bool:
    return visit.visitor.may(VIEW_SENSITIVE)


def _is_sensitive(given: dict[str, str]) -> bool:
    return given.get("sensitive") == "1"


async def _quality(visit: Visit) -> feedback.Use:
    """How well recall has done of late, over all that this person may see."""
    async with visit.site.database.search() as connection:
        keys = await members.shown(connection, visit.audience)
        return await feedback.use(connection, keys, to_ms(visit.site.clock.now() - _QUALITY))


async def _recalled(visit: Visit) -> Chart | None:
    """How much of what this person's answers cited was found first, night by night; None before the first night."""
    series = await Reports(visit.site).recall_quality(Period.MONTH, Granularity.DAY, visit.user.id)
    write = visit.site_words.share
    last = next((point.value for point in reversed(series.points) if point.value is not None), None)
    if last is None:
        return None
    title = visit.words.say("web-recalled")
    shown = rows(visit.site_words, Granularity.DAY, [series], write)
    return Chart(title, "line", "share", (title,), write(last), shown)
