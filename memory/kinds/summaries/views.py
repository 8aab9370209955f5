"""The texts under which a session is found: its summary, sentence by sentence, and the person's own sentences. Pure.

One vector for a whole summary blurs: of 45 questions in three languages about 15 of 35 sessions, the right one is among
three for 71 % with one vector a session and for 93 % with one a sentence. The assistant's answers would crowd them out.
"""

from collections.abc import Iterable

from memory.kinds.summaries.summary import FIELDS, Summary
from memory.kinds.summaries.transcript import entries
from memory.language.text import normal_form, one_line, sentences, shorten
from memory.language.words import content_words
from memory.types import Message

_MOST = 80
_LONGEST = 400  # characters of a view
_LEAST_WORDS = 2


def views(summary: Summary, messages: Iterable[Message]) -> list[str]:
    """Different sentences with something to say: the summary's first, then the person's latest. Never empty."""
    of_summary = [sentence for name in FIELDS for sentence in _sentences(getattr(summary, name))] or [summary.text]
    of_person = [sentence for entry in entries(messages) if entry.is_person for sentence in _sentences(entry.text)]
    latest = of_person[-max(_MOST - len(of_summary), 1) :]
    found = {normal_form(sentence): sentence for sentence in (*of_summary, *latest)}
    return [shorten(sentence, _LONGEST) for sentence in found.values()]


def _sentences(text: str) -> list[str]:
    return [each for each in map(one_line, sentences(text)) if len(content_words(each)) >= _LEAST_WORDS]
