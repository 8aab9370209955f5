"""What every embedder does with texts before, and with rows after, its model has seen them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.ports import Vector


def refuse_blank(texts: Sequence[str]) -> None:
    """Raise ValueError for a text without anything to embed."""
    if not all(text.strip() for text in texts):
        raise ValueError("blank text has no meaning to embed: leave it out")


def unit_rows(matrix: NDArray[np.float32]) -> list[Vector] | None:
    """The rows at length one; None where one has no direction and would poison an index."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and norms.all()):
        return None
    return list(matrix / norms)
