"""Words in three languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language.words import content_words, index_terms, keys, language_of, name_keys, query_terms, tokens


@pytest.mark.parametrize(
    "text",
    [
        *(
            "hi",
            "Hello!",
            "ok thanks",
            "Good morning",
            "see you later",
            "haha yes",
            "👍",
            "",
            "...",
            "What did you say?",
        ),
        *("Hallo", "ok danke", "Guten Tag!", "wie geht's?", "Alles klar, bis später", "Weißt du noch?"),
        *("привет", "Спасибо!", "доброе утро", "как дела?", "да, конечно", "Что ты сказал?"),
    ],
)
def test_p12_small_talk_has_no_content(text: str) -> None:
    assert content_words(text) == []


@pytest.mark.parametrize("text", ["Bruno", "weather in Kiel?", "Wo wohne ich?", "Где мой паспорт?"])
def test_a_question_has_content(text: str) -> None:
    assert content_words(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("bruno's", "bruno"), ("dogs", "dog"), ("brunos", "bruno")),
        *(("hundes", "hund"), ("häuser", "haus"), ("hund", "dog")),
        *(("барсика", "барсик"), ("мурке", "мурка"), ("собаку", "hund"), ("зелёного", "зеленый")),
    ],
)
def test_forms_of_a_word_share_a_key(one: str, other: str) -> None:
    assert not keys(tokens(one)[0]).isdisjoint(keys(tokens(other)[0]))


def test_a_name_is_known_in_both_scripts() -> None:
    assert not name_keys("барсиком").isdisjoint(name_keys("barsik"))
    assert not name_keys("бруно").isdisjoint(name_keys("bruno"))
    assert not name_keys("jürgen").isdisjoint(name_keys("jurgen"))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("My dog is called Bruno", "en"),
        ("Mein Hund heißt Bruno", "de"),
        ("Grüne Äpfel", "de"),
        ("Мою собаку зовут Bruno", "ru"),
        ("Bruno", "en"),
    ],
)
def test_the_language_is_told_by_script_and_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("stored", "question"),
    [
        ("We visited two castles near Heidelberg", "which castle did we visit?"),
        ("Die Katzen haben die Vasen zerbrochen", "Was hat die Katze mit der Vase gemacht?"),
        ("Мы купили билеты в Казань", "Где мои билеты до Казани?"),
    ],
)
def test_a_question_finds_stored_words_in_another_form(stored: str, question: str) -> None:
    terms = set(index_terms(stored))
    assert sum(not forms.isdisjoint(terms) for forms in query_terms(question)) >= 2


@given(st.text(max_size=80))
def test_tokens_are_lower_case_and_stable(text: str) -> None:
    """Whatever comes in: the tokens of the joined tokens are the tokens."""
    once = tokens(text)
    assert all(once)
    assert content_words(" ".join(content_words(text))) == content_words(text)
