"""Runs the peers in their own environment: a job comes in as JSON, rankings and times go out.

Rule: this file imports nothing of Merk, and no socket is opened while it measures.
"""

import importlib
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

_refused: list[str] = []


def _refuse(_socket: object, address: object) -> None:
    _refused.append(str(address))
    raise OSError(f"no network while peers are measured: {address}")


class _Peer:
    """What is measured of each: adding a text, and finding the nearest ones of an owner."""

    name = ""

    def add(self, owner: str, turn: str, text: str) -> None:
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

    def find(self, owner: str, question: str, most: int) -> list[str]:
        found = self._memory.search(question, filters={"user_id": owner}, top_k=most, threshold=0.0)
        return [str(each["metadata"]["turn"]) for each in found["results"]]


def _measure(peer: _Peer, job: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    for each in job["texts"]:
        peer.add(each["owner"], each["turn"], each["text"])
    indexing = time.perf_counter() - began
    rankings: list[list[str]] = []
    times: list[float] = []
    for each in job["questions"]:
        began = time.perf_counter()
        rankings.append(peer.find(each["owner"], each["text"], job["most"]))
        times.append((time.perf_counter() - began) * 1000)
    return {"rankings": rankings, "ms": times, "indexed_per_second": len(job["texts"]) / indexing}


def main(job_file: str, result_file: str, folder: str) -> None:
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    encoder: Any = importlib.import_module("encoder")  # beside this file
    encoder.encode("warm")
    socket.socket.connect = _refuse
    versions = importlib.import_module("importlib.metadata").version
    results: dict[str, Any] = {}
    for make in (_PlainChroma, _Mem0):
        peer = make(Path(folder), encoder)
        results[peer.name] = _measure(peer, job)
    results["mem0"]["version"], results["chroma"]["version"] = versions("mem0ai"), versions("chromadb")
    results["connections refused"] = len(_refused)
    Path(result_file).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:4])
