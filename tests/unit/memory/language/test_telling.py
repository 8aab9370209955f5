"""Which sentences tell a forgotten fact."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language.telling import Forgotten, Line, Log, is_told, redact, redactions, tell
from memory.language.text import MARK

ADA, BEN = 1, 2


def _log(*said: tuple[int | None, str]) -> Log:
    return Log([Line(i, 1, who, "user" if who else "assistant", text) for i, (who, text) in enumerate(said)])


def _after(
    fact: str, said: Sequence[tuple[int | None, str]], *, kept: Sequence[str] = (), sources: Sequence[int] = ()
) -> list[str]:
    """The texts of the log after Ada's fact was forgotten."""
    log = _log(*said)
    telling = tell(Forgotten(fact, ADA, frozenset(sources)), kept, log)
    changed = redactions([telling], log)
    return [changed.get(line.id, line.text) for line in log]


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("My dog is called Bruno", "Bruno!"),
        ("My dog is called Bruno", "did you walk BRUNO today"),
        ("My dog is called Bruno", "Bruno's leash"),
        ("My dog is called Bruno", "Brunos Leine"),
        ("My dog is called Bruno", "Бруно спит"),
        ("my dog is called bruno", "Your dog is called Bruno."),
        ("Моего кота зовут Барсик", "Покорми Барсика"),
        ("Моего кота зовут Барсик", "Barsik is hungry"),
        ("I live in Berlin", "Berlin is nice in spring."),
        ("I live in Berlin", "Я знаю, что ты из Берлина"),
        ("My locker code is 47-11B", "11B it is"),
        ("My phone number is 555 01993", "call 01993"),
        ("My e-mail is ada@example.org", "Sent to ada@example.org!"),
        ("I am allergic to peanuts", "No peanuts for you."),
        ("У меня аллергия на арахис", "Без арахиса"),
        ("I am allergic to peanuts", "Du bist gegen Erdnüsse allergisch."),
        ("Meine Lieblingsfarbe ist Grün", "Your favourite colour is green."),
        ("My birthday is on 3 May 1990", "You were born on 3 May 1990."),
        ("The code of the cabin lies under the stone", "Look under the stone for the code."),
        ("Tea", "Tea"),
    ],
)
def test_it_is_told_in_any_form_and_language(fact: str, told: str) -> None:
    assert _after(fact, [(None, told)]) == [MARK]


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("My dog is called Bruno", "What is my dog called?"),
        ("My dog is called Bruno", "My brother is called Bruno."),
        ("My dog is called Bruno", "Your brother is called Bruno."),
        ("My dog is called Bruno", "My dog likes the park."),
        ("My favourite colour is green", "The lawn is green today."),
        ("Meine Lieblingsfarbe ist Grün", "Was kostet grüner Tee?"),
        ("I am allergic to peanuts", "My sister is allergic to cats."),
        ("I like tea", "I like coffee."),
        ("My birthday is on 3 May 1990", "The party is on 3 May."),
        ("My son is called Will", "Where will you be on Friday evening?"),
        ("The code of the cabin lies under the stone", "The cabin is cold."),
        ("Tea", "The steak was good."),
    ],
)
def test_what_is_about_something_else_stays(fact: str, other: str) -> None:
    assert _after(fact, [(ADA, other)]) == [other]


def test_an_ordinary_value_goes_where_it_answers_the_question() -> None:
    said = [
        (ADA, "What is my favourite colour?"),
        (None, "Green, I think."),
        (ADA, "Yes, green!"),
        (ADA, "Green frogs"),
    ]
    assert _after("My favourite colour is green", said) == [said[0][1], MARK, MARK, "Green frogs"]


def test_a_question_in_the_same_message_counts() -> None:
    assert _after("My favourite colour is green", [(None, "Your colour? That is green.")]) == [f"Your colour? {MARK}"]


def test_only_the_sentence_goes() -> None:
    text = "Good morning! My dog is called Bruno. He eats a lot.\nWhat is the weather?"
    assert _after("My dog is called Bruno", [(ADA, text)]) == [
        f"Good morning! {MARK} He eats a lot.\nWhat is the weather?"
    ]


def test_a_command_stays_a_command() -> None:
    assert _after("My dog is called Bruno", [(ADA, "/forget Bruno")]) == [f"/forget {MARK}"]


def test_g4_what_another_person_states_of_themselves_stays() -> None:
    said = [(ADA, "My dog is called Bruno"), (BEN, "My dog is called Bruno"), (BEN, "Bruno is so cute!")]
    assert _after("My dog is called Bruno", said) == [MARK, "My dog is called Bruno", MARK]


def test_a_sentence_that_states_a_kept_fact_stays() -> None:
    said = [(ADA, "I live in Berlin"), (ADA, "My sister lives in Berlin"), (None, "You live in Berlin.")]
    kept = ["My sister lives in Berlin"]
    assert _after("I live in Berlin", said, kept=kept) == [MARK, "My sister lives in Berlin", MARK]


def test_a_source_in_other_words_loses_its_nearest_sentence() -> None:
    said = [(ADA, "Ich kann keine Erdnüsse essen. Danke!")]
    assert _after("Allergic to nuts of any kind", said, sources=[0]) == [f"{MARK} Danke!"]
    assert _after("Nut allergy", [(ADA, "The allergy again. It rains.")], sources=[0]) == [f"{MARK} It rains."]


def test_a_bare_yes_as_a_source_stays() -> None:
    assert _after("My dog is called Bruno", [(ADA, "Yes, please!")], sources=[0]) == ["Yes, please!"]


def test_words_in_constant_use_say_nothing_alone() -> None:
    """Tea is talked of all the time: only what says that it is liked goes."""
    talk = [(ADA, f"Tea number {i} is in the shop") for i in range(8)]
    assert _after("I like tea", [*talk, (None, "You like tea.")]) == [text for _, text in talk] + [MARK]


def test_a_text_that_stands_alone_loses_the_same_sentences() -> None:
    telling = tell(Forgotten("My favourite colour is green", ADA), (), _log())
    assert redact([telling], "Green.") == "Green."
    assert redact([telling], "Green.", is_strict=True) == MARK
    assert is_told([telling], "They talked about the favourite colour. It is green.")
    assert not is_told([telling], "They talked about the lawn. It is green.")


names = st.from_regex(r"[BDKLMZ][aeiou][bdklmz]{1,2}[aeiou]x", fullmatch=True)
sentences_with = st.sampled_from(["{}!", "Where is {}?", "I saw {} today.", "Das ist {}.", "Это {}", "{}'s toys"])
plain = st.lists(st.sampled_from(["It rains.", "Hello there!", "What now?", "Мне холодно.", "Ja, gern."]), max_size=4)


@given(names, st.lists(sentences_with, min_size=1, max_size=3), plain)
def test_no_name_survives_and_nothing_else_goes(name: str, told: list[str], others: list[str]) -> None:
    """Property: after redaction the name is nowhere; a log without it is not touched."""
    fact = f"My dog is called {name}"
    log = _log((ADA, " ".join([*others, *(form.format(name) for form in told)])), (None, " ".join(others) or "OK"))
    changed = redactions([tell(Forgotten(fact, ADA), (), log)], log)
    assert name not in changed[0]
    assert set(changed) == {0}
    for sentence in others:
        assert sentence in changed[0]


@given(names, st.text(max_size=60), st.text(max_size=60))
def test_redacting_again_changes_nothing(name: str, before: str, after: str) -> None:
    log = _log((ADA, f"{before} {name} {after}"))
    telling = tell(Forgotten(f"My cat is called {name}", ADA), (), log)
    once = redactions([telling], log)[0]
    assert redactions([telling], _log((ADA, once))) == {}


@given(st.lists(st.text(max_size=40), max_size=5))
def test_a_log_that_does_not_tell_it_is_left_alone(texts: list[str]) -> None:
    log = _log(*((ADA, text) for text in texts if "qxzw" not in text.lower()))
    assert redactions([tell(Forgotten("My dog is called Qxzw", ADA), (), log)], log) == {}


@pytest.mark.parametrize(
    ("fact", "question", "answer"),
    [
        ("Anna's birthday is 12 June", "When is Anna's birthday?", "On the 12th of June."),
        ("Mein Auto ist rot", "Welche Farbe hat mein Auto?", "Rot."),
        ("Paul is vegetarian", "What can I cook for Paul?", "A vegetarian lasagne."),
        ("Наш код от подъезда — 12К", "Какой код от подъезда?", "12К"),
    ],
)
def test_what_is_said_of_anything_else_goes_with_its_answer(fact: str, question: str, answer: str) -> None:
    assert _after(fact, [(ADA, fact), (ADA, question), (None, answer)]) == [MARK, question, MARK]


def test_the_confirmation_of_an_ordinary_value_goes() -> None:
    said = [(ADA, "My favourite food is pizza."), (None, "Pizza, noted! Anything else?"), (ADA, "Let's order pizza.")]
    assert _after("My favourite food is pizza", said) == [MARK, f"{MARK} Anything else?", "Let's order pizza."]


def test_an_uncommon_value_goes_anywhere() -> None:
    """A word that this person uses for nothing else tells it; a word of every day does not."""
    said = [(ADA, "My favourite food is okroshka."), (ADA, "It rains."), (ADA, "How do I cook okroshka?")]
    assert _after("My favourite food is okroshka", said) == [MARK, "It rains.", MARK]


def test_of_a_list_each_thing_tells() -> None:
    said = [(None, "No shellfish, then."), (None, "And no peanuts."), (None, "Short replies are fine.")]
    assert _after("I am allergic to peanuts and shellfish", said) == [MARK, MARK, said[2][1]]
    assert _after("I prefer short answers", [said[2]]) == [said[2][1]]


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("My brother is called Mark", "Please mark the date in my calendar. The old German mark is history."),
        ("My daughter is called Rose", "The price of milk rose again. I planted a rose in the garden."),
        ("Ich wohne in Essen", "Wir essen heute um 19 Uhr bei Oma. Das Essen war gut. Kauf Brot zum Essen."),
        ("Ich wohne in Essen", "What a nice dish!"),
        ("I work at Apple", "I ate an apple. Recipe: two apples, sugar, flour."),
        ("Мою дочь зовут Вера", "Его вера в людей сильна. Моя вера крепка."),
        ("Мою жену зовут Надежда", "Есть надежда, что дождь кончится к вечеру."),
        ("Mein Hund heißt Bär", "Im Zoo gab es einen Bären, der Fisch frass. Der Bär schlief."),
        ("My cat is called Widget", "Where do I find the widget of the clock?"),
    ],
)
def test_d17_a_name_that_is_a_word_stays_where_it_is_the_word(fact: str, other: str) -> None:
    assert _after(fact, [(ADA, other)]) == [other]


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("My brother is called Mark", "I called Mark."),
        ("My daughter is called Rose", "Rose is ill."),
        ("My daughter is called Rose", "my daughter rose is ill"),
        ("Ich wohne in Essen", "Ich fahre nach Essen."),
        ("Мою дочь зовут Вера", "Я видел Веру."),
        ("Mein Hund heißt Bär", "Heute hat Bär gebellt."),
        ("My dog is called Bruno", "I walked bruno yesterday."),
    ],
)
def test_d17_it_goes_where_it_is_the_name(fact: str, told: str) -> None:
    assert _after(fact, [(ADA, told)]) == [MARK]


def test_d17_in_an_answer_a_word_is_the_name() -> None:
    said = [(ADA, "What is my daughter called?"), (None, "that is rose")]
    assert _after("My daughter is called Rose", said) == [said[0][1], MARK]


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ("Мою собаку зовут Бруно", "Брунчик спит."),
        ("Мою собаку зовут Бруно", "С Бруношей гуляли."),
        ("Мою собаку зовут Бруно", "брунчик спит"),
        ("Mein Hund heißt Bruno", "Komm, Brunochen!"),
        ("My wife is called Anna-Lena", "Annalena cooked today."),
        ("My wife is called Anna-Lena", "ANNA-LENA rules."),
        ("My salary is 5200 euros", "They pay me 5,200 EUR before tax."),
        ("My salary is 5200 euros", "5.200 € also reichen."),
        ("My phone number is 0171 2345678", "Call 0171/23 45 678."),
        ("My birthday is 3 May", "On May 3rd we party."),
        ("My birthday is 3 May", "Am 3. Mai ist viel los."),
        ("My birthday is 3 May", "Am 03.05. feiern wir."),
        ("Мой день рождения 3 мая", "3 мая будет пир."),
    ],
)
def test_d18_it_is_told_in_fond_joined_and_split_forms(fact: str, told: str) -> None:
    assert _after(fact, [(ADA, told)]) == [MARK]


@pytest.mark.parametrize(
    ("fact", "other"),
    [
        ("Мою собаку зовут Бруно", "Брусника поспела."),
        ("My dog is called Bruno", "Brunswick is a town."),
        ("My cat is called Luck", "That was a lucky day for me, I think."),
        ("My wife is called Anna-Lena", "The annals of Rome."),
        ("My salary is 5200 euros", "It costs 15,200 or 520 EUR."),
        ("My birthday is 3 May", "On 4 May and on May 13th we party."),
        ("My birthday is 3 May", "They may have 3 apples."),
    ],
)
def test_d18_what_only_looks_alike_stays(fact: str, other: str) -> None:
    assert _after(fact, [(ADA, other)]) == [other]
