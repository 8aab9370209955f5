"""What a person is told when a model fails: one short sentence, a button to try again, never a detail."""

from handlers.again import again
from handlers.locales import Phrases
from handlers.types import Button, Card
from memory.ports import Failure, ModelError


def card(say: Phrases, error: ModelError, message_id: int) -> Card:
    """For an answer to a message of the log."""
    return offer(say, error.failure, again(say("try-again"), message_id))


def too_long(say: Phrases, text: str, fits: float) -> Card:
    """One message that the model cannot read in one piece, but a share of it: to ask again is of no use."""
    most = round(len(text) * fits * 0.8)  # it does not come alone
    return Card(say("message-too-long", length=len(text), most=max(most // 100 * 100, 100)))


def offer(say: Phrases, failure: Failure, retry: Button) -> Card:
    """For whatever else a model was asked: `retry` asks it once more."""
    return Card(say(f"failed-{failure}"), ((retry,),))
