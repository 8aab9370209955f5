"""The cards around observations: one of them, a page of them, whose they may be, and what an answer was made with.

Rule: what they say comes from stored rows that this audience may see, looked up when the card is made.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from handlers.pages import PER_PAGE, day, memory_page
from handlers.remembering.facts import shorten
from handlers.types import Button, Card, Request, UserError
from memory.kinds.observations.observation import Observation, Type
from memory.kinds.observations.reading import Page, State
from memory.memory import Memory
from memory.ports import Clock
from memory.scope import (
    PUBLIC,
    VIEW_SENSITIVE,
    Scope,
    group_key,
    number_of,
    own_key,
    scope_of,
    sensitive_key,
    team_key,
)
from memory.storage import members, turns
from memory.storage.database import Database

RIGHT, WRONG = "👍", "👎"
_QUOTES = 2
_QUOTE = 160
_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which observations a page shows; the data of its buttons."""

    query: str = ""
    kind: str = ""
    scope: str = ""
    state: str = "in_force"
    page: int = 0

    @property
    def is_sensitive(self) -> bool:
        """Whoever asks for what is sensitive by its scope asks for it explicitly."""
        return self.scope == Scope.SENSITIVE

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Seen:
    """How somebody came to one observation: the data of every button on its card."""

    id: int
    answer: int | None = None
    """The answer that used it."""
    sensitive: bool = False
    back: dict[str, Any] | None = None
    """The page to go back to, or {"answer": id} for what that answer was made with."""

    @property
    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where the cards get what they show."""

    memory: Memory
    database: Database
    clock: Clock

    async def one(self, request: Request, which: Seen) -> Observation:
        """Raises `UserError` where this audience may not see it, or it is gone."""
        found = await self.memory.observations.by_id(request.audience, which.id, sensitive=which.sensitive)
        if found is None:
            raise UserError(request.say("observation-refused-gone"))
        return found


def seen(data: dict[str, Any]) -> Seen:
    return Seen(data["id"], data.get("answer"), bool(data.get("sensitive")), data.get("back"))


# --- one ------------------------------------------------------------------------------------------


async def card(kept: Remembered, request: Request, which: Seen, *, said: str = "") -> Card:
    """One observation: what, whose, since when, in whose words; and what can be done about it."""
    say, rows_of = request.say, kept.memory.observations
    one = await kept.one(request, which)
    mine = await rows_of.disposable(request.audience, [one.id], sensitive=which.sensitive)
    history = await rows_of.history_of_slot(request.audience, one.id, sensitive=which.sensitive)
    holds = one.holds_at(kept.clock.now())
    whose = (await names(kept, request, [one]))[one.owner]
    lines = ([said, ""] if said else []) + _told(request, one, whose)
    rows: list[tuple[Button, ...]] = []
    if not one.is_hidden:
        rows.append((Button(RIGHT, "confirm_observation", which.data), Button(WRONG, "reject_observation", which.data)))
    if mine:
        rows += _for_its_owner(request, one, which, holds=holds)
    last = [Button(say("observation-history"), "observation_history", which.data)] if len(history) > 1 else []
    if which.back is not None:
        last.append(_back(request, which.back))
    return Card("\n".join(lines), (*rows, *((tuple(last),) if last else ())), request.card)


def _for_its_owner(request: Request, one: Observation, which: Seen, *, holds: bool) -> list[tuple[Button, ...]]:
    say = request.say
    forget = Button(say("forget"), "ask_forget_observation", which.data)
    if not holds:
        return [(Button(say("observation-restore"), "restore_observation", which.data), forget)]
    # what is sensitive is not reworded in passing: the new words would stand in the chat
    first = [] if which.sensitive else [Button(say("edit"), "edit_observation", which.data)]
    first += _share(request, one, which)
    return [*((tuple(first),) if first else ()), (_undo(request, which), forget)]


def _share(request: Request, one: Observation, which: Seen) -> list[Button]:
    """Whose it is can be changed by whoever alone said it, or has it for themselves."""
    me = request.user.id
    by_others = any(each.message_id is not None and each.user_id != me for each in one.evidence)
    if one.user_id != me or (by_others and one.owner not in (own_key(me), sensitive_key(me))):
        return []
    return [Button(request.say("web-scope"), "observation_places", which.data)]


def _undo(request: Request, which: Seen) -> Button:
    return Button(request.say("undo"), "undo_observation", which.data)


def _told(request: Request, one: Observation, whose: str) -> list[str]:
    say = request.say
    lines = [one.title] if one.narrative in ("", one.title) else [one.title, one.narrative]
    figures = [say(f"web-type-{one.type}"), whose]
    figures.append(say("observation-since", when=day(request, one.valid_from)))
    if one.valid_to is not None:
        figures.append(say("observation-until", when=day(request, one.valid_to)))
    if one.proof_count > 1:
        figures.append(say("observation-proofs", n=one.proof_count))
    lines.append(" · ".join(figures))
    for each in one.evidence[:_QUOTES]:
        when = f" ({day(request, each.at)})" if each.at else ""
        if each.quote != one.narrative:
            lines.append(say("quoted", text=shorten(each.quote, _QUOTE)) + when)
    if one.is_hidden:
        lines.append(say("observation-is-hidden"))
    elif one.superseded_by is not None:
        lines.append(say("observation-is-replaced"))
    return lines


async def kept_card(kept: Remembered, request: Request, one: Observation, *, is_new: bool) -> Card:
    """Told from the stored row, with what may be wanted next."""
    say = request.say
    which = Seen(one.id)
    told = say("observation-kept" if is_new else "observation-known", title=shorten(one.narrative, _QUOTE))
    lines = [told, (await names(kept, request, [one]))[one.owner]]
    row = [Button(say("edit"), "edit_observation", which.data)]
    if is_new:
        row.insert(0, _undo(request, which))
    row += _share(request, one, which)
    return Card("\n".join(lines), (tuple(row),), request.card)


async def history_card(kept: Remembered, request: Request, which: Seen) -> Card:
    """All that was said of one thing, oldest first; what holds is marked."""
    rows = await kept.memory.observations.history_of_slot(request.audience, which.id, sensitive=which.sensitive)
    now = kept.clock.now()
    lines = [request.say("observation-history-of"), ""]
    for at, each in enumerate(rows, 1):
        note = f" · {request.say('observation-holds')}" if each.holds_at(now) else ""
        lines.append(f"{at}. {shorten(each.narrative, _QUOTE)} ({day(request, each.valid_from)}){note}")
    numbered = [replace(which, id=each.id) for each in rows]
    return Card("\n".join(lines), (*numbers(numbered), (_back_to_one(request, which),)), request.card)


def forget_card(request: Request, one: Observation, which: Seen) -> Card:
    yes = Button(request.say("forget-yes"), "forget_observation", which.data)
    asked = request.say("forget-ask", fact=one.title)
    return Card(asked, ((yes, Button(request.say("no"), "open_observation", which.data)),), request.card)


def numbers(listed: Sequence[Seen], first: int = 1) -> list[tuple[Button, ...]]:
    """A small button for each line of a list."""
    keys = [Button(str(at), "open_observation", each.data) for at, each in enumerate(listed, first)]
    return [tuple(keys[at : at + _IN_A_ROW]) for at in range(0, len(keys), _IN_A_ROW)]


def _back(request: Request, back: dict[str, Any]) -> Button:
    action = "why_answer" if "answer" in back else "observations_page"
    return Button(f"‹ {request.say('back')}", action, back)


def _back_to_one(request: Request, which: Seen) -> Button:
    return Button(f"‹ {request.say('back')}", "open_observation", which.data)


# --- many -----------------------------------------------------------------------------------------


async def page_of(kept: Remembered, request: Request, wanted: Wanted) -> Page:
    kinds = (Type(wanted.kind),) if wanted.kind else ()
    more: dict[str, Any] = {"kinds": kinds, "scope": Scope(wanted.scope) if wanted.scope else None}
    more |= {"sensitive": wanted.is_sensitive, "offset": wanted.page * PER_PAGE, "limit": PER_PAGE}
    if wanted.query:
        return await kept.memory.observations.search(request.audience, wanted.query, **more)
    return await kept.memory.observations.list(request.audience, state=cast("State", wanted.state), **more)


async def page_card(kept: Remembered, request: Request, wanted: Wanted) -> Card:
    """A page: its lines can be read, a number opens one, the last row turns and narrows."""
    say = request.say
    found = await page_of(kept, request, wanted)
    if not found.observations and wanted.page:  # it was forgotten from the last page
        return await page_card(kept, request, replace(wanted, page=wanted.page - 1))
    first, whose = wanted.page * PER_PAGE + 1, await names(kept, request, found.observations)
    lines = [_heading(request, wanted, found.total), *([""] if found.observations else [])]
    for at, each in enumerate(found.observations, first):
        lines.append(f"{at}. {shorten(each.narrative, _QUOTE)} · {whose[each.owner]}")
    listed = [Seen(each.id, sensitive=wanted.is_sensitive, back=wanted.data) for each in found.observations]
    turn: list[Button] = []
    if wanted.page:
        turn.append(Button(f"‹ {say('back')}", "observations_page", replace(wanted, page=wanted.page - 1).data))
    turn.append(Button(say("observations-narrow"), "narrow_observations", wanted.data))
    if first + len(found.observations) <= found.total:
        turn.append(Button(f"{say('more')} ›", "observations_page", replace(wanted, page=wanted.page + 1).data))
    facts = (Button(say("observations-to-facts"), "memory_page", {"query": "", "page": 0}),)
    return Card("\n".join(lines), (*numbers(listed, first), tuple(turn), facts), request.card)


def _heading(request: Request, wanted: Wanted, total: int) -> str:
    say = request.say
    narrowed = [say(f"web-type-{wanted.kind}")] if wanted.kind else []
    narrowed += [say(f"web-scope-{wanted.scope}")] if wanted.scope else []
    narrowed += [say(f"observations-{wanted.state}")] if wanted.state != "in_force" else []
    narrowed += [say("quoted", text=shorten(wanted.query))] if wanted.query else []
    heading = say("observations-count", n=total) if total else say("observations-none")
    return f"{heading} · {' · '.join(narrowed)}" if narrowed else heading


async def narrow_card(kept: Remembered, request: Request, wanted: Wanted) -> Card:
    """Choose which ones to see."""
    say = request.say
    scopes = [Scope.PRIVATE, Scope.TEAM, Scope.PUBLIC] if request.audience.is_private else [Scope.TEAM, Scope.PUBLIC]
    async with kept.database.read() as connection:
        if request.audience.is_private and await members.has(connection, request.user, VIEW_SENSITIVE):
            scopes.append(Scope.SENSITIVE)

    def to(label: str, **change: Any) -> Button:
        return Button(label, "observations_page", replace(wanted, page=0, **change).data)

    kinds = [to(say(f"web-type-{each}"), kind=str(each)) for each in Type]
    rows = [tuple(kinds[at : at + _IN_A_ROW]) for at in range(0, len(kinds), _IN_A_ROW)]
    by_scope = [to(say(f"web-scope-{each}"), scope=str(each)) for each in scopes]
    rows += [tuple(by_scope[at : at + 2]) for at in range(0, len(by_scope), 2)]
    states = ("hidden", "superseded", "expired")
    rows.append(tuple(to(say(f"observations-{each}"), state=each, query="") for each in states))
    rows.append((Button(say("observations-all"), "observations_page", Wanted().data),))
    return Card(say("observations-which"), tuple(rows), request.card)


async def memory_card(kept: Remembered, request: Request, *, query: str, page: int) -> Card:
    """What people asked to be kept, with the way to what was noticed; straight there where nothing was asked."""
    wanted = Wanted(query=query)
    noticed = (await page_of(kept, request, wanted)).total
    facts = kept.memory.facts
    has_facts = bool(await (facts.find(request.audience, query) if query else facts.list(request.audience)))
    # "what was kept" is where the button leads that stands under what was noticed: there it says that there is nothing
    if noticed and not has_facts and not request.card:
        return await page_card(kept, request, wanted)
    shown = await memory_page(kept.memory, request, query=query, page=page, replaces=request.card)
    if not noticed:
        return shown
    to_noticed = Button(request.say("observations-to", n=noticed), "observations_page", wanted.data)
    return replace(shown, buttons=(*shown.buttons, (to_noticed,)))


# --- whose ----------------------------------------------------------------------------------------


async def names(kept: Remembered, request: Request, rows: Sequence[Observation]) -> dict[str, str]:
    """Who sees these, by scope key: groups and teams by their names, but in a group only its own."""
    say = request.say
    found = {each.owner: say(f"web-scope-{each.scope}") for each in rows}
    if not request.audience.is_private:
        return found | {key: say("scope-this-group") for key in found if key == request.audience.owner}
    if not any(scope_of(key) is Scope.TEAM for key in found):
        return found
    async with kept.database.read() as connection:
        named = {team_key(each.id): each.name for each in await members.list_teams(connection, request.user.id)}
        named |= {group_key(id): title for id, title in (await turns.names_of_chats(connection)).items() if title}
    return {key: named.get(key, name) for key, name in found.items()}


async def places(kept: Remembered, request: Request) -> dict[str, str]:
    """Whose it may become, by scope key: one's own, this group's, one's teams' and groups', everybody's."""
    say, me = request.say, request.user.id
    found = {own_key(me): say("web-scope-private")}
    async with kept.database.read() as connection:
        keys = await members.shown(connection, request.audience)
        teams = await members.list_teams(connection, me)
        chats = await turns.names_of_chats(connection)
        if request.audience.is_private and await members.has(connection, me, VIEW_SENSITIVE):
            found[sensitive_key(me)] = say("web-scope-sensitive")
    if not request.audience.is_private:
        found[request.audience.owner] = say("scope-this-group")
    # among others only the teams in which everybody here is: the names of the rest are not for them
    alone = request.audience.is_private
    found |= {team_key(each.id): each.name for each in teams if alone or team_key(each.id) in keys}
    groups = [number_of(key) for key in keys if key.startswith("c") and key != request.audience.owner]
    found |= {group_key(each): chats.get(each, str(each)) for each in groups}
    return found | {PUBLIC: say("web-scope-public")}


async def places_card(kept: Remembered, request: Request, which: Seen) -> Card:
    one = await kept.one(request, which)
    offered = {key: name for key, name in (await places(kept, request)).items() if key != one.owner}
    rows = [(Button(shorten(name), "move_observation", {**which.data, "to": key}),) for key, name in offered.items()]
    whose = (await names(kept, request, [one]))[one.owner]
    now = request.say("scope-now", title=one.title, scope=whose)
    return Card(now, (*rows, (_back_to_one(request, which),)), request.card)


async def wider_card(kept: Remembered, request: Request, one: Observation, which: Seen, to: str) -> Card:
    """More people would see it: that takes a second tap."""
    name = (await places(kept, request)).get(to) or request.say(f"web-scope-{scope_of(to)}")
    sure = Button(request.say("scope-widen-yes"), "move_observation", {**which.data, "to": to, "sure": True})
    no = Button(request.say("no"), "open_observation", which.data)
    return Card(request.say("scope-widen", title=one.title, scope=name), ((sure, no),), request.card)
