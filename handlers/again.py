"""The button under what was not answered, or not as it should be: the message is answered once more."""

from handlers.types import Button


def again(label: str, message_id: int, **more: str) -> Button:
    """For a message of the log; `more` is what the handler is told beside its id. It waits in line like a message."""
    return Button(label, "answer_again", {"message_id": message_id, **more}, waits=True)
