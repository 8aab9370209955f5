"""A session condensed without a language model: its most telling sentences, verbatim. Pure but for the embedder.

The person's own statements come first: they are what somebody will ask for again.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory.kinds.summaries.summary import EXTRACTIVE, Condensed, kept, kept_title
from memory.kinds.summaries.transcript import Entry, first_words
from memory.language.text import one_line, sentences, shorten
from memory.language.words import content_words, keys_of, stems
from memory.ports import Embedder, EmbedderError

LATEST = 400  # messages looked at: a chat that goes on for years is condensed anew after every answer
_SENTENCES = 3
_NOTES = 8
_MOST = 200  # sentences looked at, the latest
_LEAST_WORDS = 2
_LONGEST = 300  # characters of a sentence
_WEIGHTS = {"statement": 1.0, "question": 0.6, "answer": 0.5}


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    text: str
    is_person: bool
    weight: float


async def extract(lines: Sequence[Entry], embedder: Embedder) -> Condensed | None:
    """Pick the sentences; None when nobody said anything to remember."""
    candidates = await asyncio.to_thread(_candidates, lines[-LATEST:])  # takes some ten milliseconds
    if not candidates:
        return None
    ranked = _ranked(candidates, await _saliences(candidates, embedder))
    text = ([each for each in ranked if each.is_person] or ranked)[:_SENTENCES]
    notes = [each for each in ranked if each not in text][:_NOTES]
    title = kept_title(first_words(lines))
    return Condensed(kept({"text": _in_order(text), "notes": _in_order(notes)}), title, EXTRACTIVE)


def _candidates(lines: Sequence[Entry]) -> list[_Candidate]:
    found: list[_Candidate] = []
    seen: set[frozenset[str]] = set()
    for entry in lines:
        for sentence in map(one_line, sentences(entry.text)):
            words = keys_of(content_words(sentence))
            if len(content_words(sentence)) < _LEAST_WORDS or words in seen:
                continue
            seen.add(words)
            kind = "answer" if not entry.is_person else "question" if sentence.endswith("?") else "statement"
            found.append(_Candidate(len(found), shorten(sentence, _LONGEST), entry.is_person, _WEIGHTS[kind]))
    return found[-_MOST:]


async def _saliences(candidates: Sequence[_Candidate], embedder: Embedder) -> list[float]:
    """How near each sentence is to what the session is about, 0 to 1."""
    try:
        vectors = np.stack(await embedder.embed_documents([each.text for each in candidates]))
    except EmbedderError:
        return _saliences_of_words(candidates)
    centroid = vectors.mean(axis=0)
    return [float(cosine) for cosine in vectors @ (centroid / (np.linalg.norm(centroid) or 1.0))]


def _saliences_of_words(candidates: Sequence[_Candidate]) -> list[float]:
    words = [{min(stems(word)) for word in content_words(each.text)} for each in candidates]
    frequency = Counter(word for each in words for word in each)
    top = max(frequency.values())
    return [sum(frequency[word] for word in each) / (top * len(each)) for each in words]


def _ranked(candidates: Sequence[_Candidate], saliences: Sequence[float]) -> list[_Candidate]:
    scores = {each.place: (0.5 + salience) * each.weight for each, salience in zip(candidates, saliences, strict=True)}
    return sorted(candidates, key=lambda each: (-scores[each.place], each.place))


def _in_order(chosen: Sequence[_Candidate]) -> str:
    texts = [each.text for each in sorted(chosen, key=lambda each: each.place)]
    return " ".join(text if text[-1] in ".!?…" else f"{text}." for text in texts)
