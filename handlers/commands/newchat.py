"""/newchat: a thread of its own where the place has threads, else a new session in place."""

from handlers.types import Command, Notice, Place, Recipient, Reply, Request, Threads
from handlers.work.works import Works
from memory.instants import to_ms
from memory.ports import Clock
from memory.storage import sessions
from memory.storage.database import Database

TITLE_LENGTH = 128  # Telegram's limit for a topic's name


def command(database: Database, clock: Clock, threads: Threads, works: Works) -> Command:
    async def handle(request: Request) -> Reply:
        say = request.say
        title = " ".join(request.args.split())[:TITLE_LENGTH]
        place = request.incoming.place
        thread = await threads.open_thread(place, title or say("newchat-untitled"), request.incoming.ref)
        async with database.write() as connection:
            await sessions.start(
                connection, request.audience, thread or place.thread, now=to_ms(clock.now()), title=title
            )
        work = await works.load(request)
        work.close("asked")
        for event in work.events():
            yield event
        if thread is None:
            yield Notice(say("newchat-here-titled", title=title) if title else say("newchat-here"))
            return
        opened = Place(place.transport, place.chat, thread)
        yield Notice(say("newchat-thread"), to=Recipient(opened, request.user.id))

    return Command("newchat", handle)
