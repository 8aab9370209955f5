"""A stand-in for Text Embeddings Inference: `/embed` and `/info` as its own OpenAPI (1.9) states them, strictly.

It refuses what the server refuses, with the server's codes and {"error", "error_type"}; vectors come from words.
"""

import json
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from tests.fakes.embedder import WordEmbedder

_KNOWN = {"inputs", "normalize", "truncate", "truncation_direction", "prompt_name", "dimensions"}


@dataclass
class TeiApi:
    """`transport` serves an httpx client. `faults` answer first, one a request: (status, error_type)."""

    model: str = "BAAI/bge-m3"
    most_texts: int = 32
    longest: int = 2000
    """Characters that stand for the model's 8,192 tokens."""
    faults: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    batches: list[list[str]] = field(default_factory=list[list[str]])
    raw: object = None
    """What `/embed` answers instead of vectors."""

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._answer)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/info" and request.method == "GET":
            return httpx.Response(200, json=self._info())
        if self.faults:
            status, error_type = self.faults.pop(0)
            return _error(status, error_type, f"pretended {error_type}")
        if request.url.path != "/embed" or request.method != "POST":
            return httpx.Response(404)
        body: Any = json.loads(request.content)
        if not isinstance(body, dict) or "inputs" not in body or cast("dict[str, Any]", body).keys() - _KNOWN:
            return httpx.Response(422, text="Failed to deserialize the JSON body into the target type")
        return await self._embed(cast("dict[str, Any]", body))

    async def _embed(self, body: dict[str, Any]) -> httpx.Response:
        texts: list[str] = [body["inputs"]] if isinstance(body["inputs"], str) else body["inputs"]
        if not texts or not all(texts):
            return _error(400, "Empty", "`inputs` cannot be empty")
        if len(texts) > self.most_texts:
            return _error(413, "Validation", f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}")
        if not body.get("truncate") and any(len(text) > self.longest for text in texts):
            return _error(413, "Validation", "`inputs` must have less tokens")
        self.batches.append(texts)
        if self.raw is not None:
            return httpx.Response(200, json=self.raw)
        vectors = await WordEmbedder().embed_documents([text[: self.longest] for text in texts])
        return httpx.Response(200, json=[vector.tolist() for vector in vectors])

    def _info(self) -> dict[str, Any]:
        return {
            "model_id": self.model,
            "model_dtype": "float16",
            "model_type": {"embedding": {"pooling": "cls"}},
            "max_concurrent_requests": 512,
            "max_input_length": 8192,
            "max_batch_tokens": 16384,
            "max_client_batch_size": self.most_texts,
            "auto_truncate": False,
            "tokenization_workers": 2,
            "version": "1.9.3",
        }


def _error(status: int, error_type: str, text: str) -> httpx.Response:
    return httpx.Response(status, json={"error": text, "error_type": error_type})
