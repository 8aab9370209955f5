"""Buttons of standing instructions: apply, discard, change, clear, look back, restore. They wait their turn."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from handlers import waiting
from handlers.types import Card, Handler, Notice, Reply, Request
from handlers.work import instructions
from handlers.work.instructions import Whose
from handlers.work.works import Work, Works

Act = Callable[[Works, Request, Work, Whose], Awaitable[None]]


def handlers(works: Works) -> Mapping[str, Handler]:
    """By action."""
    acts: dict[str, Act] = {
        "show_instructions": _show,
        "instructions_history": _show_history,
        "open_instructions": _open,
        "restore_instructions": _restore,
        "change_instructions": _change,
        "clear_instructions": _clear,
        "apply_instructions": _apply,
    }
    return {name: _handler(works, act) for name, act in acts.items()} | {"discard_instructions": discard(works)}


def discard(works: Works) -> Handler:
    """End the work without this draft; what was applied before it stays, with its line."""

    async def handle(request: Request) -> Reply:
        of = instructions.whose(request, request.data["whose"])
        work = await works.load(request)
        instructions.check_open(request, work, of)
        if work.state is not None and work.state.data.get("achieved"):
            work.finish("")
        else:
            work.close("")
        for event in work.events():
            yield event
        yield Notice(request.say(f"{of.tool}-discarded"))

    return handle


def _handler(works: Works, act: Act) -> Handler:
    async def handle(request: Request) -> Reply:
        of = instructions.whose(request, request.data["whose"])
        work = await works.load(request)
        await act(works, request, work, of)
        for event in work.events():
            yield event

    return handle


async def _show(works: Works, request: Request, work: Work, of: Whose) -> None:
    await instructions.show(works, request, work, of, replaces=request.card)


async def _show_history(works: Works, request: Request, work: Work, of: Whose) -> None:
    before = request.data.get("before")
    await instructions.show_history(works, request, work, of, before=before, replaces=request.card)


async def _open(works: Works, request: Request, work: Work, of: Whose) -> None:
    await instructions.open_version(works, request, work, of, id=request.data["id"], replaces=request.card)


async def _restore(works: Works, request: Request, work: Work, of: Whose) -> None:
    """Propose an old text: it holds again when the person applies it."""
    snapshot = await instructions.chosen(works, request, of, request.data["id"])
    await instructions.propose(works, request, work, of, snapshot.text, restored_from=snapshot.id)


async def _change(works: Works, request: Request, work: Work, of: Whose) -> None:
    """Ask for the new text; the next message is it. The preview stays: who changes a text wants to see it."""
    card = await waiting.ask(works.database, works.clock, request, "change_instructions", {"whose": of.name})
    work.show_list(of.tool, replace(card, replaces=None), card.text)
    work.touch()


async def _clear(works: Works, request: Request, work: Work, of: Whose) -> None:
    await instructions.propose(works, request, work, of, "")


async def _apply(works: Works, request: Request, work: Work, of: Whose) -> None:
    """The draft on this card; the card then shows what holds."""
    snapshot = await instructions.apply(works, request, work, of, request.data["draft"])
    text = request.say(
        f"{of.tool}-in-force", number=snapshot.version, text=snapshot.text or request.say("instructions-empty")
    )
    work.show(Card(text, replaces=request.card), text, "applied", version=snapshot.version)
