"""Buttons of what was noticed: look, judge, reword, share, forget, bring back; and the questions about it.

Rule: an observation of the card's own data is looked up anew at each tap, for whoever taps and where they tap.
"""

from collections.abc import Mapping

from handlers import waiting
from handlers.remembering import remembered
from handlers.remembering.facts import receipt_lines
from handlers.remembering.remembered import Remembered, Wanted, seen
from handlers.remembering.why import why_card
from handlers.types import Card, Handler, Reply, Request
from memory.scope import sensitive_key
from memory.storage import digests


def handlers(kept: Remembered) -> Mapping[str, Handler]:
    """By action."""
    return {
        "observations_page": _page(kept),
        "narrow_observations": _narrow(kept),
        "open_observation": _open(kept),
        "why_answer": _why(kept),
        "keep_message": _keep(kept),
        "confirm_observation": _confirm(kept),
        "reject_observation": _reject(kept),
        "edit_observation": _edit(kept),
        "undo_observation": _undo(kept),
        "restore_observation": _restore(kept),
        "observation_history": _history(kept),
        "observation_places": _places(kept),
        "move_observation": _move(kept),
        "ask_forget_observation": _ask_forget(kept),
        "forget_observation": _forget(kept),
        "settle_observation": _settle(kept),
        "stop_digest": _stop_digest(kept),
    }


# --- look -----------------------------------------------------------------------------------------


def _page(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await remembered.page_card(kept, request, Wanted(**request.data))

    return handle


def _narrow(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await remembered.narrow_card(kept, request, Wanted(**request.data))

    return handle


def _open(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await remembered.card(kept, request, seen(request.data))

    return handle


def _why(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await why_card(kept, request, request.data["answer"])

    return handle


def _history(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await remembered.history_card(kept, request, seen(request.data))

    return handle


# --- judge ----------------------------------------------------------------------------------------


def _keep(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        one, is_new = await kept.memory.observations.keep(request.audience, request.data["message_id"])
        yield await remembered.kept_card(kept, request, one, is_new=is_new)

    return handle


def _confirm(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        await kept.memory.observations.confirm(request.audience, which.id, which.answer, sensitive=which.sensitive)
        yield await remembered.card(kept, request, which, said=request.say("observation-confirmed"))

    return handle


def _reject(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        is_hidden = await kept.memory.observations.reject(
            request.audience, which.id, which.answer, sensitive=which.sensitive
        )
        said = request.say("observation-hidden" if is_hidden else "observation-rejected")
        yield await remembered.card(kept, request, which, said=said)

    return handle


# --- change ---------------------------------------------------------------------------------------


def _edit(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await waiting.ask(kept.database, kept.clock, request, "edit_observation", {"id": request.data["id"]})

    return handle


def _undo(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        await kept.memory.observations.undo(request.audience, which.id, sensitive=which.sensitive)
        yield Card(request.say("undone"), replaces=request.card)

    return handle


def _restore(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        one = await kept.memory.observations.restore(request.audience, which.id, sensitive=which.sensitive)
        again = remembered.Seen(one.id, which.answer, which.sensitive, which.back)
        yield await remembered.card(kept, request, again, said=request.say("observation-restored"))

    return handle


def _settle(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        choice = request.data["choice"]
        holding = await kept.memory.observations.settle(request.audience, request.data["id"], choice)
        told = " / ".join(each.narrative for each in holding)
        yield Card(request.say(f"settled-{choice}", fact=told), replaces=request.card)

    return handle


# --- whose ----------------------------------------------------------------------------------------


def _places(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        yield await remembered.places_card(kept, request, seen(request.data))

    return handle


def _move(kept: Remembered) -> Handler:
    """Narrower at once; wider is asked first."""

    async def handle(request: Request) -> Reply:
        which, to = seen(request.data), request.data["to"]
        change = await kept.memory.observations.change_scope(
            request.audience, which.id, to, is_confirmed=bool(request.data.get("sure")), sensitive=which.sensitive
        )
        if change.outcome == "ask":
            yield await remembered.wider_card(kept, request, change.observation, which, to)
            return
        is_sensitive = to == sensitive_key(request.user.id)
        again = remembered.Seen(change.observation.id, which.answer, is_sensitive, which.back)
        said = request.say("scope-changed")
        still = await kept.memory.observations.by_id(request.audience, again.id, sensitive=is_sensitive)
        if still is None:  # of a group's card it may have become one's own: then it is not shown there any more
            yield Card(said, replaces=request.card)
        else:
            yield await remembered.card(kept, request, again, said=said)

    return handle


# --- forget ---------------------------------------------------------------------------------------


def _ask_forget(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        yield remembered.forget_card(request, await kept.one(request, which), which)

    return handle


def _forget(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        which = seen(request.data)
        receipt = await kept.memory.forget_observations(
            request.audience, [which.id], key=request.key, sensitive=which.sensitive
        )
        yield Card(receipt_lines(request.say, receipt), replaces=request.card)

    return handle


# --- digest ---------------------------------------------------------------------------------------


def _stop_digest(kept: Remembered) -> Handler:
    async def handle(request: Request) -> Reply:
        async with kept.database.write() as connection:
            await digests.drop(connection, request.user.id)
        yield Card(request.say("digest-off"), replaces=request.card)

    return handle
