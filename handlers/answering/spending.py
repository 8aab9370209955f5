"""What people are told about money and pace: a limit that is near or reached, and what they can do about it.

Rule: amounts are a person's own business: in a group only shares are named.
"""

from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal

from babel import Locale
from babel.numbers import format_currency

from handlers.again import again
from handlers.locales import Phrases, phrases
from handlers.types import Button, Card, Event, Notice, Place, Recipient, Request
from memory.budget import Budget, Standing, key_of
from memory.ports import Account, Clock, Purpose
from memory.storage import people
from memory.storage.database import Database
from memory.types import Role, User

BACKGROUND = Account(Purpose.SUMMARY)
"""Stands for all that is done in the background."""
MINUTE = 60.0
_CENT = 10_000_000


@dataclass(slots=True)
class _Recent:
    """When somebody wrote lately, in seconds, and whether they were told to slow down."""

    times: deque[float] = field(default_factory=deque[float])
    is_told: bool = False


class Pace:
    """How many messages one person may have answered in a minute."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self.per_minute = per_minute
        self._recent: dict[int, _Recent] = {}

    def is_too_fast(self, user_id: int) -> bool:
        """Count a message; True where it is one too many."""
        now = self._clock.now().timestamp()
        for quiet in [who for who, recent in self._recent.items() if recent.times[-1] <= now - MINUTE]:
            del self._recent[quiet]
        recent = self._recent.setdefault(user_id, _Recent())
        while recent.times and recent.times[0] <= now - MINUTE:
            recent.times.popleft()
        if len(recent.times) >= self.per_minute:
            return True
        recent.times.append(now)
        recent.is_told = False
        return False

    def tell(self, user_id: int) -> bool:
        """True for the first message that is too many: one word about it is enough."""
        recent = self._recent[user_id]
        was_told, recent.is_told = recent.is_told, True
        return not was_told


@dataclass(frozen=True, slots=True)
class Spending:
    """The budget, as people meet it."""

    database: Database
    budget: Budget
    pace: Pace

    async def refuse(self, request: Request, message_id: int, *, is_new: bool) -> list[Event] | None:
        """What is said instead of an answer; None: go ahead. Either way the message is in the log."""
        if is_new and self.pace.is_too_fast(request.user.id):
            return self._slow_down(request, message_id)
        return await self._stop(request, message_id)

    def _slow_down(self, request: Request, message_id: int) -> list[Event]:
        if not self.pace.tell(request.user.id):
            return []
        now = again(request.say("answer-now"), message_id)
        return [Card(request.say("too-fast", n=self.pace.per_minute), ((now,),))]

    async def _stop(self, request: Request, message_id: int) -> list[Event] | None:
        account = Account(user_id=request.user.id)
        if await self.budget.may_spend(account):
            return None
        say = request.say
        retry = again(say("try-again"), message_id)
        if request.user.role is Role.OWNER:
            lift = Button(say("budget-lift"), "lift_budget", {"whose": key_of(account), "message_id": message_id})
            return [Card(say("budget-stopped-owner"), ((lift,), (retry,)))]
        card = Card(say("budget-stopped"), ((retry,),))
        return [card, *(await self._ask_owners(request.user, account))]

    async def warn(self, request: Request) -> list[Event]:
        """After an answer: that most of a budget is spent, once a day; owners hear of background work too."""
        account = Account(user_id=request.user.id)
        said: list[Event] = []
        standing = await self.budget.standing(account)
        if standing.is_nearly_spent and await self.budget.say_once("warned", account):
            said.append(Notice(request.say("budget-nearly", share=_percent(standing))))
        if request.user.role is Role.OWNER and request.audience.is_private:
            said += await self._warn_of_background(request.say)
        return said

    async def _warn_of_background(self, say: Phrases) -> list[Event]:
        standing = await self.budget.standing(BACKGROUND)
        if standing.is_spent:
            if not await self.budget.say_once("stopped", BACKGROUND):
                return []
            lift = Button(say("budget-lift"), "lift_budget", {"whose": key_of(BACKGROUND)})
            return [Card(say("budget-background-stopped"), ((lift,),))]
        if standing.is_nearly_spent and await self.budget.say_once("warned", BACKGROUND):
            return [Notice(say("budget-background-nearly", share=_percent(standing)))]
        return []

    async def _ask_owners(self, user: User, account: Account) -> list[Event]:
        """A card in each owner's private chat, once a day."""
        if not await self.budget.say_once("stopped", account):
            return []
        standing = await self.budget.standing(account)
        cards: list[Event] = []
        async with self.database.read() as connection:
            found = [
                (owner, await people.private_place(connection, owner.id)) for owner in await people.owners(connection)
            ]
        for owner, place in found:
            if place is None:
                continue
            say = phrases(owner.reads)
            lift = Button(say("budget-lift"), "lift_budget", {"whose": key_of(account), "name": user.name})
            text = say("budget-ask", name=user.name, spent=money(standing.spent, say))
            cards.append(Card(text, ((lift,),), to=Recipient(Place(*place), owner.id)))
        return cards


def money(nano_usd: int, say: Phrases) -> str:
    """An amount as people write it; below a cent with more places, never as nothing."""
    amount = Decimal(nano_usd) / 1_000_000_000
    if not 0 < nano_usd < _CENT:
        return format_currency(amount, "USD", locale=say.language)
    usual = Locale.parse(say.language).currency_formats["standard"].pattern  # the sign stands where people put it
    return format_currency(amount, "USD", usual.replace("0.00", "0.0000"), locale=say.language, currency_digits=False)


def _percent(standing: Standing) -> int:
    assert standing.limit is not None
    return 100 if standing.is_spent else int(100 * standing.spent / standing.limit)
