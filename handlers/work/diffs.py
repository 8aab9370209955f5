"""What changed between two texts, readable on a phone: pure.

Rule: nothing of either text is lost in the parts; only the shown context is shortened.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, takewhile
from typing import Literal

from handlers.work.markdown import literal

CONTEXT = 60
"""Characters of unchanged text that are shown on each side of a change."""
MAX_PAIRS = 50_000
"""Pairs of equal words up to which words are compared; two texts that repeat themselves beyond it cost seconds."""
MIN_LIKENESS = 0.3
"""Of words in common: below it, two passages are shown one after the other, not woven into each other."""
MIN_BRIDGE = 4
"""Characters of unchanged text between two changes below which the two are shown as one."""

Kind = Literal["same", "gone", "new"]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TOKEN = re.compile(r"\s+|\S+")
_BLANK = re.compile(r"\n(?:[ \t]*\n){2,}")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text: in both texts, in the old one only, or in the new one only."""

    kind: Kind
    text: str


def difference(old: str, new: str) -> str:
    """The way from one text to the other as Markdown: gone words struck, new ones bold, the rest shortened.

    The texts' own markup is shown as typed. Empty where nothing changed.
    """
    found = parts(old, new)
    if all(part.kind == "same" for part in found):
        return ""
    shown = ""
    for at, part in enumerate(found):
        if part.kind == "same":
            piece = literal(_shortened(part.text, is_first=at == 0, is_last=at == len(found) - 1))
        else:
            piece = _marked(part)
        if shown and piece and not (shown[-1].isspace() or piece[0].isspace()):
            shown += " "
        shown += piece
    return _BLANK.sub("\n\n", shown).strip("\n")


def parts(old: str, new: str) -> list[Part]:
    """The stretches in order. Those that are not new make up the old text, those that are not gone the new one."""
    before, after = _LINE.findall(old), _LINE.findall(new)
    found: list[Part] = []
    for same, gone, made in _steps(SequenceMatcher(None, before, after, autojunk=False), before, after):
        found += [Part("same", same)] if same else _words(gone, made)
    return _joined(_trimmed(_joined(_bridged(_joined(found)))))


def _words(gone: str, made: str) -> list[Part]:
    """The stretches of two passages word by word, where they have enough in common."""
    whole = [Part("gone", gone), Part("new", made)]
    before, after = _TOKEN.findall(gone), _TOKEN.findall(made)
    old_counts, new_counts = (Counter(each for each in side if not each.isspace()) for side in (before, after))
    common = sum((old_counts & new_counts).values())
    pairs = sum(count * new_counts[word] for word, count in old_counts.items())
    if pairs > MAX_PAIRS or 2 * common < MIN_LIKENESS * (old_counts.total() + new_counts.total()):
        return whole
    woven: list[Part] = []
    for same, left, right in _steps(SequenceMatcher(str.isspace, before, after, autojunk=False), before, after):
        woven += [Part("same", same), Part("gone", left), Part("new", right)]
    return woven


def _steps(
    matcher: SequenceMatcher[str], before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """What stays, or what goes and what comes in its place."""
    for tag, a, b, c, d in matcher.get_opcodes():
        old, new = "".join(before[a:b]), "".join(after[c:d])
        yield (old, "", "") if tag == "equal" else ("", old, new)


def _joined(found: Iterable[Part]) -> list[Part]:
    """Each run of changes as one gone and one new stretch, each run of unchanged text as one."""
    joined: list[Part] = []
    for is_same, run in groupby((part for part in found if part.text), key=lambda part: part.kind == "same"):
        each = list(run)
        kinds: tuple[Kind, ...] = ("same",) if is_same else ("gone", "new")
        for kind in kinds:
            text = "".join(part.text for part in each if part.kind == kind)
            joined += [Part(kind, text)] if text else []
    return joined


def _bridged(found: Sequence[Part]) -> Iterator[Part]:
    """A short word between two changes goes with them: confetti is hard to read."""
    for at, part in enumerate(found):
        is_between = 0 < at < len(found) - 1
        if part.kind == "same" and is_between and len(part.text.strip()) < MIN_BRIDGE and "\n" not in part.text:
            yield Part("gone", part.text)
            yield Part("new", part.text)
        else:
            yield part


def _trimmed(found: Sequence[Part]) -> Iterator[Part]:
    """The white space that a gone and a new stretch both end with stays: a line is not broken twice."""
    for at, part in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else part
        before = found[at - 1] if at else part
        end = 0
        if part.kind == "gone" and after.kind == "new":
            end = _common_end(part.text, after.text)
        elif part.kind == "new" and before.kind == "gone":
            end = _common_end(before.text, part.text)
        cut = len(part.text) - end
        yield Part(part.kind, part.text[:cut])
        if part.kind == "new":
            yield Part("same", part.text[cut:])


def _common_end(gone: str, new: str) -> int:
    """The length of the white space at the end of both."""
    pairs = zip(reversed(gone), reversed(new), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1] and pair[0].isspace(), pairs))


def _marked(part: Part) -> str:
    """A change with its mark around each line, never around the space at its ends."""
    mark = "~~" if part.kind == "gone" else "**"
    if not part.text.strip():
        return "" if part.kind == "gone" else part.text
    lines = part.text.split("\n")
    return "\n".join(_wrapped(line, mark) for line in lines)


def _wrapped(line: str, mark: str) -> str:
    core = line.strip()
    if not core:
        return line
    start = line.index(core)
    return f"{line[:start]}{mark}{literal(core)}{mark}{line[start + len(core) :]}"


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    head = "" if is_first else text[:CONTEXT]
    tail = "" if is_last else text[-CONTEXT:]
    if len(text) <= len(head) + len(tail) + CONTEXT // 2:
        return text
    head, tail = _cut_end(head), _cut_start(tail)
    return f"{head} … {tail}" if head and tail else f"{head} …" if head else f"… {tail}"


def _cut_end(text: str) -> str:
    return re.sub(r"\s+\S*$", "", text)


def _cut_start(text: str) -> str:
    return re.sub(r"^\S*\s+", "", text)
