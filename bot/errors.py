"""What a command answers when it cannot do what it was asked: a sentence with the remedy, and an exit code."""


class CommandError(Exception):
    """It cannot be done; the text says why and what to do."""

    code = 1
