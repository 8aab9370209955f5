"""The three catalogues say the same."""

import re
from pathlib import Path

import pytest

from handlers.buttons import answers
from handlers.locales import LANGUAGES, nearest, phrases
from memory.ports import Failure

ROOT = Path(__file__).parents[3]
FIELD = re.compile(r"\{(\w+)\}")
USED = re.compile(r"say\(\s*[\"']([a-z_-]+)[\"']")


@pytest.mark.parametrize("language", ["de", "ru"])
def test_every_language_has_every_text_with_the_same_fields(language: str) -> None:
    english, other = phrases("en"), phrases(language)
    assert other.keys() == english.keys()
    for key in english.keys():  # noqa: SIM118 - a method of ours, no mapping
        wanted = set(FIELD.findall(english.forms(key)[-1]))
        for form in other.forms(key):
            assert form.strip(), key
            assert set(FIELD.findall(form)) <= wanted | {"n"}, key


def test_every_text_that_the_program_says_is_there() -> None:
    said = {
        key
        for folder in ("handlers", "bot")
        for path in (ROOT / folder).rglob("*.py")
        for key in USED.findall(path.read_text())
    }
    said |= {f"failed-{failure}" for failure in Failure}
    said |= set(answers.OFFERED.values())
    assert said <= phrases("en").keys()


@pytest.mark.parametrize(
    ("tag", "language"), [("de-AT", "de"), ("ru", "ru"), ("en_GB", "en"), ("fr", "en"), ("", "en"), ("RU-ru", "ru")]
)
def test_the_nearest_language_is_taken(tag: str, language: str) -> None:
    assert nearest(tag) == language


@pytest.mark.parametrize(("n", "said"), [(1, "1 факт"), (3, "3 факта"), (5, "5 фактов"), (21, "21 факт")])
def test_russian_counts_in_three_forms(n: int, said: str) -> None:
    assert phrases("ru")("receipt-facts", n=n) == said


def test_there_are_three() -> None:
    assert LANGUAGES == ("en", "de", "ru")
