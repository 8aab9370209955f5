"""What a command answers when it cannot do what it was asked: a sentence with the remedy, and an exit code."""


class CommandError(Exception):
    """It cannot be done; the text says why and what to do."""

    def __init__(self, said: str, *, code: int = 1) -> None:
        """`code`: 2 = the configuration is wrong, 1 = anything else."""
        super().__init__(said)
        self.code = code
