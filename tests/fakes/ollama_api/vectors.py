"""Deterministic embeddings: every word has its own direction, so texts that share words are near."""

import hashlib
import re
from typing import Final

import numpy as np

from tests.fakes.messages_api.wire import listing, size
from tests.fakes.ollama_api.records import OllamaError, OllamaModel, OllamaRequest

PREFIX: Final = re.compile(
    r"search_query: |search_document: |query: |task: [^|]*\| query: |title: [^|]*\| text: |Instruct: [^\n]*\nQuery: "
)
"""What models are told a text is for. It would make all texts of one kind alike; requests keep it in `inputs`."""


def embed_words(text: str, dimensions: int) -> list[float]:
    """The L2-normalised sum of the directions of the words of a text, each word once."""
    known = PREFIX.match(text)
    words = sorted(set(re.findall(r"\w+", text[known.end() if known else 0 :].casefold()))) or [""]
    total = np.sum([_direction(word, dimensions) for word in words], axis=0)
    return (total / np.linalg.norm(total)).tolist()


def _direction(word: str, dimensions: int) -> np.ndarray:
    """A fixed pseudo-random vector of +1 and -1."""
    digest = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest((dimensions + 7) // 8)
    return np.unpackbits(np.frombuffer(digest, np.uint8))[:dimensions] * 2.0 - 1.0


def embed(request: OllamaRequest, model: OllamaModel, context: int) -> list[list[float]]:
    """One vector per input. Raises OllamaError 400 for what the model cannot embed."""
    if not model.can("embedding"):
        raise OllamaError(400, "this model does not support embeddings")
    given = request.body.get("input")
    texts = [given] if isinstance(given, str) else listing(given)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise OllamaError(400, "invalid input type")
    wanted = request.body.get("dimensions") or model.dimensions
    found: list[list[float]] = []
    for text in request.inputs:
        if size(text) > context and request.body.get("truncate") is False:
            raise OllamaError(400, "the input length exceeds the context length")
        shown = text.encode("utf-8", "surrogatepass")[: context * 4].decode("utf-8", "ignore")
        vector = np.array(embed_words(shown, model.dimensions))[:wanted]
        found.append((vector / np.linalg.norm(vector)).tolist())
    return found
