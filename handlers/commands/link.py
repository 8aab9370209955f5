"""/link: a code in one private chat, brought to another, makes two identities one person once both have said yes.

Rule: a stranger who brings a code is not let in by it; they become the person who gave it, or stay a stranger.
"""

from dataclasses import asdict

from handlers.identities import asking, called, refusal
from handlers.locales import Phrases
from handlers.types import Button, Card, Command, Door, Incoming, Notice, Reply, Request, UserError
from memory.linking import Linking, LinkRefused

_YES = frozenset(("yes", "ja", "да"))


def command(linking: Linking) -> Command:
    async def handle(request: Request) -> Reply:
        say, sender = request.say, request.incoming.sender
        if not request.audience.is_private:
            raise UserError(say("link-private"))
        words = request.args.split()
        try:
            if not words:
                code = await linking.offer(request.user.id, sender.identity, asdict(request.incoming.place))
                # formatted: a tap on a command sends it at once, and without its code; code is copied
                yield Card(say("link-code", code=code), formatted=True)
                return
            brought = await linking.look_at(words[0], sender.identity)
        except LinkRefused as refused:
            raise UserError(refusal(say, refused)) from refused
        yes = Button(say("link-yes"), "bring_code", {"code": brought.code.code})
        who = called(brought.giver.name, brought.code.identity)
        yield Card(say("link-ask", who=who), ((yes, Button(say("no"), "leave")),))

    return Command("link", handle)


def at_the_door(linking: Linking) -> Door:
    """A stranger has no buttons: they say yes by sending the code once more, with the word."""

    async def handle(incoming: Incoming, args: str, say: Phrases) -> Reply:
        code, *words = args.split()
        try:
            if not words or words[0].casefold().rstrip(".!") not in _YES:
                brought = await linking.look_at(code, incoming.sender.identity)
                who = called(brought.giver.name, brought.code.identity)
                yield Notice(say("link-stranger", who=who, code=brought.code.code))
                return
            brought = await linking.take(code, incoming.sender.identity)
        except LinkRefused as refused:
            raise UserError(refusal(say, refused)) from refused
        yield Notice(say("link-asked", who=called(brought.giver.name, brought.code.identity)))
        if not await linking.is_asked(brought, incoming.sender.identity):
            yield asking(brought, incoming.sender, incoming.place)

    return handle
