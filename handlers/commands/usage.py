"""/usage: what was spent today and this month; owners also see by whom and for what."""

from collections.abc import Sequence

from babel.numbers import format_decimal

from handlers.answering.spending import BACKGROUND, Spending, money
from handlers.types import Button, Card, Command, Reply, Request
from memory.budget import key_of
from memory.ports import Account
from memory.storage import spend
from memory.storage.spend import Total
from memory.types import Role


def command(spending: Spending) -> Command:
    async def handle(request: Request) -> Reply:
        everybody = request.user.role is Role.OWNER and request.audience.is_private
        lines = await _own(spending, request)
        if everybody:
            more = await _of_everybody(spending, request)
            lines += ["", *more] if more else []
        buttons = await _lift(spending, request) if everybody else ()
        yield Card("\n".join(lines), buttons)

    return Command("usage", handle)


async def _own(spending: Spending, request: Request) -> list[str]:
    say, budget, me = request.say, spending.budget, request.user.id
    async with spending.database.search() as connection:
        today = await spend.total(connection, since=budget.day_began(), user_id=me)
        month = await spend.total(connection, since=budget.month_began(), user_id=me)
        models = await spend.by_model(connection, since=budget.month_began(), user_id=me)
    standing = await budget.standing(Account(user_id=me))
    lines = [say("usage"), _line(request, say("usage-today"), today), _line(request, say("usage-month"), month)]
    if standing.limit is not None:
        left = money(max(0, standing.limit - standing.spent), say)
        lines.append(say("usage-left", left=left, limit=money(standing.limit, say)))
    return [*lines, *_unpriced(request, models)]


async def _of_everybody(spending: Spending, request: Request) -> list[str]:
    say, budget = request.say, spending.budget
    lines: list[str] = []
    for key, since in (("usage-all-today", budget.day_began()), ("usage-all-month", budget.month_began())):
        async with spending.database.search() as connection:
            total = await spend.total(connection, since=since)
            people = await spend.by_person(connection, since=since)
            purposes = await spend.by_purpose(connection, since=since)
        by_person = [f"• {_line(request, each.name or say('usage-nobody'), each)}" for each in people]
        by_purpose = [f"– {_line(request, say(f'purpose-{each.name}'), each)}" for each in purposes]
        told = [line for parts in (by_person, by_purpose) if len(parts) > 1 for line in parts]
        if told:  # else it is what stands above
            lines += [_line(request, say(key), total), *told]
    standing = await budget.standing(BACKGROUND)
    if standing.limit is not None:
        lines.append(say("usage-background", spent=money(standing.spent, say), limit=money(standing.limit, say)))
    async with spending.database.search() as connection:
        models = await spend.by_model(connection, since=budget.month_began())
    return [*lines, *_unpriced(request, models)]


async def _lift(spending: Spending, request: Request) -> tuple[tuple[Button, ...], ...]:
    """Whatever an owner may let go on until midnight."""
    say = request.say
    rows: list[tuple[Button, ...]] = []
    for account, label in ((Account(user_id=request.user.id), "budget-lift"), (BACKGROUND, "budget-lift-background")):
        if (await spending.budget.standing(account)).is_spent:
            rows.append((Button(say(label), "lift_budget", {"whose": key_of(account)}),))
    return tuple(rows)


def _line(request: Request, name: str, total: Total) -> str:
    """Money where there is a price, tokens in any case."""
    number = format_decimal(total.tokens, locale=request.say.language)
    tokens = request.say("tokens", n=total.tokens, number=number)
    if total.unpriced_tokens == total.tokens and total.tokens:
        return f"{name}: {tokens}"
    return f"{name}: {money(total.nano_usd, request.say)} ({tokens})"


def _unpriced(request: Request, models: Sequence[Total]) -> list[str]:
    names = [total.name for total in models if total.unpriced_tokens]
    return [request.say("usage-unpriced", names=", ".join(names))] if names else []
