"""The cards of a forget: what a few words mean, asked before anything is erased, and what to do where nothing is kept.

Rule: nothing is erased by finding it; more than one thing takes a second Yes.
"""

from collections.abc import Sequence
from typing import Any

from handlers.pages import session_label
from handlers.remembering.facts import LISTED, shorten
from handlers.types import Button, Card, Reply, Request
from memory.forgettable import Match, Matches
from memory.memory import Memory
from memory.storage import sessions
from memory.storage.database import Database

_SHOWN = 200  # characters of one line


def card(request: Request, found: Matches, *, sensitive: bool = False) -> Card:
    """One match: Yes or No. Several: a list to choose from, and "all of them" where the words were theirs."""
    say = request.say
    if len(found.things) == 1:
        return _ask(request, found.things[0], sensitive=sensitive)
    lines = [say("forget-which", n=len(found.things)), ""]
    rows: list[tuple[Button, ...]] = []
    for number, thing in enumerate(found.things[:LISTED], 1):
        lines.append(f"{number}. {shorten(thing.text, _SHOWN)} · {_kind(request, thing)}")
        rows.append((Button(f"{number}. {shorten(thing.text)}", "ask_forget", data([thing], sensitive=sensitive)),))
    every = Button(say("forget-all"), "ask_forget", data(found.things, sensitive=sensitive))
    rows.append((*((every,) if found.by_words else ()), Button(say("forget-none"), "leave")))
    return Card("\n".join(lines), tuple(rows), request.card)


def chosen_card(request: Request, things: Sequence[Match], *, sensitive: bool = False) -> Card:
    """What was tapped in the list; for more than one thing it is the second question."""
    if len(things) == 1:
        return _ask(request, things[0], sensitive=sensitive)
    say, n = request.say, len(things)
    yes = Button(say("forget-yes-all", n=n), "forget_fact", data(things, sensitive=sensitive))
    return Card(say("forget-ask-all", n=n), ((yes, Button(say("no"), "leave")),), request.card)


async def nothing(memory: Memory, database: Database, request: Request, found: Matches) -> Reply:
    """Nothing of theirs is kept: whose it is, or where it was said, and what they can do about it."""
    say, query = request.say, shorten(request.args)
    if found.is_others:
        yield Card(say("forget-others", query=query))
        return
    said_in = await memory.forgettable.said_in(request.audience, request.args)
    if not said_in:
        yield Card(say("forget-no-match", query=query))
        return
    async with database.read() as connection:
        listed = [await sessions.by_id(connection, each) for each in said_in[:LISTED]]
    rows = [(Button(session_label(request, each), "ask_delete_chat", {"id": each.id}),) for each in listed if each]
    how = "forget-said-matrix" if request.incoming.place.transport == "matrix" else "forget-said"
    yield Card(say(how, query=query, n=len(said_in)), (*rows, (Button(say("forget-said-leave"), "leave"),)))


def data(things: Sequence[Match], *, sensitive: bool = False) -> dict[str, Any]:
    """What a button carries: ids only, looked up again at the tap."""
    return {
        "ids": [thing.fact.id for thing in things if thing.fact],
        "observations": [each.id for thing in things for each in thing.observations],
        "sensitive": sensitive,
    }


def _ask(request: Request, thing: Match, *, sensitive: bool) -> Card:
    say = request.say
    yes = Button(say("forget-yes"), "forget_fact", data([thing], sensitive=sensitive))
    told = thing.text if thing.fact else f"{thing.text}\n{_kind(request, thing)}"
    return Card(say("forget-ask", fact=told), ((yes, Button(say("no"), "leave")),), request.card)


def _kind(request: Request, thing: Match) -> str:
    """That it was kept; or that it was noticed, with its type and who sees it."""
    say = request.say
    if thing.fact:
        return say("forget-kind-kept")
    one = thing.observations[0]
    return say("forget-kind-noticed", type=say(f"web-type-{one.type}"), scope=say(f"web-scope-{one.scope}"))
