"""Buttons about people: let somebody in, choose a language."""

from handlers.locales import phrases
from handlers.types import Card, Handler, Notice, Place, Recipient, Reply, Request, UserError
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import people
from memory.storage.database import Database
from memory.types import Role


def speak(database: Database) -> Handler:
    async def handle(request: Request) -> Reply:
        language: str | None = request.data["language"]
        async with database.write() as connection:
            await people.speak(connection, request.user.id, language)
        say = phrases(language or request.user.client_language)
        yield Card(say("language-chosen"), replaces=request.card)

    return handle


def approve(database: Database, clock: Clock) -> Handler:
    """An owner lets a stranger in; the stranger hears of it where they asked."""

    async def handle(request: Request) -> Reply:
        if request.user.role is not Role.OWNER:
            raise UserError(request.say("press-not-yours"))
        now = to_ms(clock.now())
        async with database.write() as connection:
            pairing = await people.take_pairing(connection, request.data["code"], now)
            if pairing is None:
                raise UserError(request.say("pairing-gone"))
            user = await people.admit(connection, pairing.identity, pairing.name, Role.MEMBER, pairing.language, now)
        yield Card(request.say("pairing-done", name=pairing.name), replaces=request.card)
        place = Place(**pairing.place)
        yield Notice(phrases(pairing.language)("welcome", name=pairing.name), to=Recipient(place, user.id))

    return handle


def decline(database: Database, clock: Clock) -> Handler:
    async def handle(request: Request) -> Reply:
        if request.user.role is not Role.OWNER:
            raise UserError(request.say("press-not-yours"))
        async with database.write() as connection:
            await people.take_pairing(connection, request.data["code"], to_ms(clock.now()))
        yield Card(request.say("pairing-declined"), replaces=request.card)

    return handle
