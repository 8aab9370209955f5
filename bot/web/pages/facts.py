"""What somebody asked to be kept: to read, find, reword and forget, under the same rules as in the chat.

Rule: a page is its reader's own memory, whatever their grants; erasing takes a question and a Yes.
"""

import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Query
from fastapi.responses import HTMLResponse, Response

from bot.web.doors import form
from bot.web.pages.visit import MOST, PER_PAGE, Visit, Visiting, pages
from handlers.remembering.facts import receipt_lines
from memory.types import Fact, FactRefused, Receipt

KEY = "key"
"""Names a forget: sent twice, it is done once and tells the same."""
_WORDS = 200  # characters of a search

router = APIRouter(include_in_schema=False)

Form = Annotated[dict[str, str], Depends(form)]
Words = Annotated[str, Query(max_length=_WORDS)]
Page = Annotated[int, Query(ge=1, le=1_000_000)]
FactId = Annotated[int, Path(ge=1, le=MOST)]


@router.get("/memory")
async def listed(visit: Visiting, q: Words = "", page: Page = 1, said: str = "") -> HTMLResponse:
    facts = visit.site.memory.facts
    first = (page - 1) * PER_PAGE
    is_guess = False
    if q.strip():
        found = await facts.search(visit.audience, q)
        total, shown = len(found.facts), list(found.facts[first : first + PER_PAGE])
        is_guess = bool(found.facts) and not found.by_words
    else:
        every = list(reversed(await facts.list(visit.audience)))
        total, shown = len(every), every[first : first + PER_PAGE]
    return visit.page(
        "facts.html",
        facts=shown,
        total=total,
        is_guess=is_guess,
        budget=await facts.budget_used(visit.audience),
        said=_told(visit, said),
        q=q,
        page=page,
        last=pages(total),
        query={"q": q} if q else {},
    )


@router.get("/memory/facts/{fact_id}")
async def one(visit: Visiting, fact_id: FactId) -> HTMLResponse:
    return visit.page("fact.html", fact=await _there(visit, fact_id), problem="", wording=None)


@router.post("/memory/facts/{fact_id}")
async def edit(visit: Visiting, fact_id: FactId, given: Form) -> Response:
    """Put another wording in its place; where that contradicts another fact, the person says which one holds."""
    text = given.get("text", "")
    try:
        kept = await visit.site.memory.facts.edit(visit.audience, fact_id, text)
    except FactRefused as refused:
        fact = await _there(visit, fact_id)
        said = visit.words.say(f"fact-refused-{refused.reason}")
        return visit.page("fact.html", 422, fact=fact, problem=said, wording=text)
    if kept.rivals:
        return visit.page("rival.html", fact=kept.fact, rival=kept.rivals[0])
    return visit.go("/memory", said="redacted" if kept.redacted else "edited")


@router.post("/memory/facts/{fact_id}/settle")
async def settle(visit: Visiting, fact_id: FactId, given: Form) -> Response:
    choice = given.get("choice")
    if choice not in ("new", "both", "old"):
        raise HTTPException(422)
    try:
        await visit.site.memory.facts.settle(visit.audience, fact_id, choice)
    except FactRefused as refused:
        raise HTTPException(404) from refused
    return visit.go("/memory", said="settled")


@router.get("/memory/facts/{fact_id}/forget")
async def ask(visit: Visiting, fact_id: FactId) -> HTMLResponse:
    fact = await _there(visit, fact_id)
    return ask_page(visit, visit.words.say("forget-ask", fact=fact.text), back="/memory")


@router.post("/memory/facts/{fact_id}/forget")
async def forget(visit: Visiting, fact_id: FactId, given: Form) -> HTMLResponse:
    """Erase it everywhere, and tell what was erased, counted from the stores."""
    receipt = await visit.site.memory.forget_facts(visit.audience, [fact_id], key=key_of(visit, given))
    return receipt_page(visit, receipt, back="/memory")


def ask_page(visit: Visit, question: str, *, back: str, keep: dict[str, str] | None = None) -> HTMLResponse:
    """The question before erasing."""
    fields = {KEY: secrets.token_urlsafe(16), **(keep or {})}
    return visit.page("forget.html", question=question, back=back, fields=fields)


def receipt_page(visit: Visit, receipt: Receipt, *, back: str) -> HTMLResponse:
    first, *lines = receipt_lines(visit.words.say, receipt).splitlines()
    return visit.page("receipt.html", first=first, lines=[each.removeprefix("• ") for each in lines], back=back)


def key_of(visit: Visit, given: dict[str, str]) -> str:
    """Nobody's key is another one's."""
    key = given.get(KEY, "")
    if not key or len(key) > 64:  # noqa: PLR2004 - ours have 22 characters
        raise HTTPException(422)
    return f"web:{visit.user.id}:{key}"


async def _there(visit: Visit, fact_id: int) -> Fact:
    fact = await visit.site.memory.facts.by_id(visit.audience, fact_id)
    if fact is None:
        raise HTTPException(404)
    return fact


def _told(visit: Visit, said: str) -> str:
    """What just happened, in words."""
    return visit.words.say(f"web-said-{said}") if said in ("edited", "redacted", "settled") else ""
