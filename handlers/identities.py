"""How identities are spoken of, the card that asks whoever gave a code, and why two are not joined."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from handlers.locales import Phrases, phrases
from handlers.types import Button, Card, Place, Recipient, Sender
from memory.language.text import clean, shorten
from memory.linking import Brought, LinkRefused
from memory.storage.people import network_of

_LONGEST_NAME = 60


def network(identity: str) -> str:
    """The name of the network that an identity, or a place, is of."""
    return network_of(identity).capitalize()


def called(name: str, identity: str) -> str:
    """Name, network and the id there: a name alone anybody may give themselves."""
    one_line = " ".join(clean(name).split())  # or it could go on as if the rest were ours to say
    return f"{shorten(one_line, _LONGEST_NAME)} ({network(identity)}: {clean(identity.partition(':')[2])})"


def refusal(say: Phrases, refused: LinkRefused) -> str:
    """Why it is not done, and what to do."""
    return say(f"link-refused-{refused.reason}", network=network(refused.network))


def asking(brought: Brought, sender: Sender, place: Place) -> Card:
    """To whoever gave the code, where they asked for it: the last yes is theirs."""
    data = {
        "code": brought.code.code,
        "identity": sender.identity,
        "name": sender.name,
        "place": asdict(place),
    }
    return confirming(phrases(brought.giver.reads), data, to=Recipient(Place(**brought.code.place), brought.giver.id))


def confirming(
    say: Phrases, data: Mapping[str, Any], *, told: str = "", replaces: str | None = None, to: Recipient | None = None
) -> Card:
    """Whether somebody who brought a code is the person who gave it; `told` goes before the question."""
    ask = say("link-confirm", who=called(data["name"], data["identity"]))
    keys = (
        Button(say("link-yes"), "join_identity", dict(data)),
        Button(say("no"), "decline_link", {"code": data["code"]}),
    )
    return Card("\n\n".join(filter(None, (told, ask))), (keys,), replaces=replaces, to=to)
