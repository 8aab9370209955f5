"""What a person is told when a model fails: one short sentence, a button to try again, never a detail."""

from handlers.locales import Phrases
from handlers.types import Button, Card
from memory.ports import ModelError


def card(say: Phrases, error: ModelError, message_id: int) -> Card:
    return Card(
        say(f"failed-{error.failure}"), ((Button(say("try-again"), "answer_again", {"message_id": message_id}),),)
    )
