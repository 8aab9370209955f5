"""Which facts a person means by a few words. Pure; similarity by vectors comes only after it found nothing."""

from collections.abc import Sequence

from memory.text import normal_form
from memory.types import Fact
from memory.words import keys, telling_words

_ENOUGH = 0.5  # share of the query's words


def by_words(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that hold the query, or all of its words in any form and language; else those with half of them."""
    wanted = normal_form(query)
    if not wanted:
        return []
    literal = [fact for fact in facts if wanted in normal_form(fact.text)]
    words = [keys(word) for word in telling_words(query)]
    shares = {fact.id: _share(words, fact) for fact in facts}
    whole = [fact for fact in facts if fact in literal or shares[fact.id] == 1]
    if whole:
        return sorted(whole, key=lambda fact: (fact not in literal, fact.id))
    partial = [fact for fact in facts if shares[fact.id] >= _ENOUGH]
    return sorted(partial, key=lambda fact: (-shares[fact.id], fact.id))


def _share(words: Sequence[frozenset[str]], fact: Fact) -> float:
    if not words:
        return 0.0
    there = frozenset(key for word in telling_words(fact.text) for key in keys(word))
    return sum(not word.isdisjoint(there) for word in words) / len(words)
