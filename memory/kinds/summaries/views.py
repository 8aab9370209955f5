"""The texts under which a session is found beside its messages: its summary, sentence by sentence. Pure.

One vector for a whole summary blurs: of 45 questions in three languages about 15 of 35 sessions, the right one is among
three for 71 % with one vector a session and for 93 % with one a sentence. What was said is found by itself.
"""

from memory.kinds.summaries.summary import FIELDS, Summary
from memory.language.text import normal_form, one_line, sentences, shorten
from memory.language.words import content_words

_MOST = 16
_LONGEST = 400  # characters of a view
_LEAST_WORDS = 2


def views(summary: Summary) -> list[str]:
    """Different sentences with something to say, in the summary's order. Never empty."""
    told = [sentence for name in FIELDS for sentence in _sentences(getattr(summary, name))] or [summary.text]
    found = {normal_form(sentence): sentence for sentence in told[:_MOST]}
    return [shorten(sentence, _LONGEST) for sentence in found.values()]


def _sentences(text: str) -> list[str]:
    return [each for each in map(one_line, sentences(text)) if len(content_words(each)) >= _LEAST_WORDS]
