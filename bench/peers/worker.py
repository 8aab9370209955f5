"""Runs the peers in their own environment: a job comes in as JSON, rankings and times go out.

Other people's messages come with their vectors, which are not made again: they go in many at a time, as rows in the
form of those that were added one by one (without mem0's history of changes, which no search reads).

Rule: this file imports nothing of Merk, and no socket is opened while it measures.
"""

import hashlib
import importlib
import json
import socket
import sys
import time
import uuid
from pathlib import Path
from typing import Any

_refused: list[str] = []
_ROWS = 1000


def _refuse(_socket: object, address: object) -> None:
    _refused.append(str(address))
    raise OSError(f"no network while peers are measured: {address}")


class _Peer:
    """What is measured of each, adding a text and finding the nearest ones of an owner; and how it is filled."""

    name = ""

    def add(self, owner: str, turn: str, text: str) -> None:
        raise NotImplementedError

    def fill(self, rows: list[dict[str, str]], vectors: Any) -> None:
        raise NotImplementedError

    def find(self, owner: str, question: str, most: int) -> list[str]:
        raise NotImplementedError


class _PlainChroma(_Peer):
    """The nearest texts of a collection, filtered by owner."""

    name = "chroma"

    def __init__(self, folder: Path, encoder: Any) -> None:
        chromadb = importlib.import_module("chromadb")
        settings = importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
        self._collection: Any = client.create_collection("turns", configuration={"hnsw": {"space": "cosine"}})
        self._encode = encoder.encode

    def add(self, owner: str, turn: str, text: str) -> None:
        row: dict[str, Any] = {"ids": [f"{owner}/{turn}"], "embeddings": [self._encode(text)]}
        self._collection.add(**row, documents=[text], metadatas=[{"owner": owner, "turn": turn}])

    def fill(self, rows: list[dict[str, str]], vectors: Any) -> None:
        self._collection.add(
            ids=[f"{row['owner']}/{row['turn']}" for row in rows],
            embeddings=vectors,
            documents=[row["text"] for row in rows],
            metadatas=[{"owner": row["owner"], "turn": row["turn"]} for row in rows],
        )

    def find(self, owner: str, question: str, most: int) -> list[str]:
        found = self._collection.query(
            query_embeddings=[self._encode(question)], n_results=most, where={"owner": owner}, include=["metadatas"]
        )
        return [str(each["turn"]) for each in found["metadatas"][0]]


class _Mem0(_Peer):
    """mem0 as installed, on local Chroma; `infer=False`: texts are kept as they are, no language model is asked."""

    name = "mem0"

    def __init__(self, folder: Path, encoder: Any) -> None:
        factory: Any = importlib.import_module("mem0.utils.factory").EmbedderFactory
        self._lemmatized: Any = importlib.import_module("mem0.utils.lemmatization").lemmatize_for_bm25
        factory.provider_to_class = {**factory.provider_to_class, "langchain": "encoder.Encoder"}
        self._memory: Any = importlib.import_module("mem0").Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": "merk", "embedding_dims": encoder.DIMENSION}},
                "vector_store": {
                    "provider": "chroma",
                    "config": {"collection_name": "turns", "path": str(folder / "mem0-chroma")},
                },
                "llm": {"provider": "openai", "config": {"api_key": "none is asked"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, owner: str, turn: str, text: str) -> None:
        message = {"role": "user", "content": text}
        self._memory.add([message], user_id=owner, metadata={"turn": turn}, infer=False)

    def fill(self, rows: list[dict[str, str]], vectors: Any) -> None:
        """Into its own store, each row in the form of one that `add` has written."""
        store = self._memory.vector_store
        [[written]] = store.list(top_k=1)
        payloads = [self._payload(written.payload, row) for row in rows]
        store.insert(vectors.tolist(), payloads=payloads, ids=[str(uuid.uuid4()) for _ in rows])

    def _payload(self, written: dict[str, Any], row: dict[str, str]) -> dict[str, Any]:
        text = row["text"]
        return written | {
            "user_id": row["owner"],
            "turn": row["turn"],
            "data": text,
            "text_lemmatized": self._lemmatized(text),
            "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        }

    def find(self, owner: str, question: str, most: int) -> list[str]:
        found = self._memory.search(question, filters={"user_id": owner}, top_k=most, threshold=0.0)
        return [str(each["metadata"]["turn"]) for each in found["results"]]


def _measure(peer: _Peer, job: dict[str, Any], vectors: Any) -> dict[str, Any]:
    """With the files alone; then again, where there are others, with all of theirs in the same store."""
    began = time.perf_counter()
    for each in job["texts"]:
        peer.add(each["owner"], each["turn"], each["text"])
    per_second = len(job["texts"]) / (time.perf_counter() - began)
    alone = _asked(peer, job) | {"indexed_per_second": per_second}
    if not job["others"]:
        return alone
    for at in range(0, len(job["others"]), _ROWS):
        peer.fill(job["others"][at : at + _ROWS], vectors[at : at + _ROWS])
    return alone | {"beside": _asked(peer, job)}


def _asked(peer: _Peer, job: dict[str, Any]) -> dict[str, Any]:
    for each in job["questions"][: job["warm_up"]]:
        peer.find(each["owner"], each["text"], job["most"])
    rankings: list[list[str]] = []
    times: list[float] = []
    for each in job["questions"]:
        began = time.perf_counter()
        rankings.append(peer.find(each["owner"], each["text"], job["most"]))
        times.append((time.perf_counter() - began) * 1000)
    return {"rankings": rankings, "ms": times}


def main(job_file: str, result_file: str, folder: str) -> None:
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    vectors: Any = importlib.import_module("numpy").load(job["vectors"], mmap_mode="r")
    encoder: Any = importlib.import_module("encoder")  # beside this file
    encoder.encode("warm")
    socket.socket.connect = _refuse
    versions = importlib.import_module("importlib.metadata").version
    results: dict[str, Any] = {}
    for make in (_PlainChroma, _Mem0):
        peer = make(Path(folder), encoder)
        results[peer.name] = _measure(peer, job, vectors)
    results["mem0"]["version"], results["chroma"]["version"] = versions("mem0ai"), versions("chromadb")
    results["connections refused"] = len(_refused)
    Path(result_file).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:4])
