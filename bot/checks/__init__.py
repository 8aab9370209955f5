"""The checks of `merk doctor`, each of one part: it returns what there is to say, or raises `Wrong`."""


class Wrong(Exception):  # noqa: N818 - a finding, not a fault of the program
    """A part does not work: what is wrong, and the command that mends it."""

    def __init__(self, said: str, remedy: str) -> None:
        super().__init__(said)
        self.said = said
        self.remedy = remedy
