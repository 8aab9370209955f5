"""An owner lifts a budget until midnight; whose it was hears of it."""

from handlers.again import again
from handlers.answering.spending import Spending
from handlers.locales import phrases
from handlers.types import Button, Card, Handler, Notice, Place, Recipient, Reply, Request, UserError
from memory.storage import people
from memory.types import Role


def lift(spending: Spending) -> Handler:
    async def handle(request: Request) -> Reply:
        if request.user.role is not Role.OWNER:
            raise UserError(request.say("press-not-yours"))
        whose: str = request.data["whose"]
        await spending.budget.lift(whose)
        yield Card(request.say("budget-lifted"), _again(request), replaces=request.card)
        kind, _, number = whose.partition(":")
        if kind != "user" or int(number) == request.user.id:
            return
        async with spending.database.read() as connection:
            user = await people.by_id(connection, int(number))
            place = await people.private_place(connection, int(number))
        if user is not None and place is not None:
            yield Notice(phrases(user.reads)("budget-lifted-for-you"), to=Recipient(Place(*place), user.id))

    return handle


def _again(request: Request) -> tuple[tuple[Button, ...], ...]:
    """What was not answered for want of money can be answered now."""
    message_id: int | None = request.data.get("message_id")
    if message_id is None:
        return ()
    return ((again(request.say("try-again"), message_id),),)
