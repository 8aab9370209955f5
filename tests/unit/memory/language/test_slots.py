"""What plain statements are about, in three languages; nothing doubtful has a slot."""

import pytest

from memory.language.slots import are_rivals, say_the_same, slot, statement

SLOTS = [
    ("My dog is called Bruno", "name:dog", "Bruno"),
    ("my dog's name is Bruno.", "name:dog", "Bruno"),
    ("I have a dog named Bruno!", "name:dog", "Bruno"),
    ("my dog is called bruno and he is 3", "name:dog", "bruno"),
    ("Bruno is my dog.", "name:dog", "Bruno"),
    ("Mein Hund heißt Bruno", "name:dog", "Bruno"),
    ("Ich habe einen Hund, der Bruno heißt", "name:dog", "Bruno"),
    ("Мою собаку зовут Бруно", "name:dog", "Бруно"),
    ("У меня есть собака по имени Бруно.", "name:dog", "Бруно"),
    ("Имя моей собаки — Бруно", "name:dog", "Бруно"),
    ("Моего кота зовут Барсик", "name:cat", "Барсик"),
    ("My name is Ada Lovelace", "name:self", "Ada Lovelace"),
    ("Ich heiße Ada", "name:self", "Ada"),
    ("Меня зовут Ада", "name:self", "Ада"),
    ("My sister is Anna", "name:sister", "Anna"),
    ("My favourite colour is green", "favourite:colour", "green"),
    ("My favorite color is green.", "favourite:colour", "green"),
    ("Meine Lieblingsfarbe ist Grün", "favourite:colour", "Grün"),
    ("Мой любимый цвет — зелёный", "favourite:colour", "зелёный"),
    ("I live in Berlin", "home:self", "Berlin"),
    ("I moved to Hamburg last week", "home:self", "Hamburg"),
    ("Ich wohne in Berlin", "home:self", "Berlin"),
    ("Ich bin nach Hamburg gezogen", "home:self", "Hamburg"),
    ("Я живу в Берлине", "home:self", "Берлине"),
    ("I work at Siemens", "employer:self", "Siemens"),
    ("I work as a nurse", "job:self", "nurse"),
    ("Ich arbeite als Arzt", "job:self", "Arzt"),
    ("Я работаю врачом", "job:self", "врачом"),
    ("My birthday is on 3 May", "birthday:self", "3 May"),
    ("Ich bin am 3. Mai 1990 geboren", "birthday:self", "3. Mai 1990"),
    ("Мой день рождения 3 мая", "birthday:self", "3 мая"),
    ("My phone number is 555 0199", "trait:phone", "555 0199"),
    ("Meine Telefonnummer ist 0151 123", "trait:phone", "0151 123"),
]

DOUBTFUL = [
    *("What is my dog called?", "Is my dog called Bruno?", "my dog is not called Bruno", "Mein Hund heißt nicht Bruno"),
    *("My sister is ill", "my car is red", "Mein Auto ist rot", "If I lived in Rome", "Wenn ich in Rom wohne"),
    *("I like tea", "Ich mag Tee", "Я люблю чай", "I am allergic to peanuts", "the meeting is at 5", "", "?"),
    *("Das Haus meiner Schwester heißt Villa", "my dog is called a good boy by everyone"),
]


@pytest.mark.parametrize(("text", "expected", "value"), SLOTS)
def test_a_plain_statement_fills_a_slot(text: str, expected: str, value: str) -> None:
    found = statement(text)
    assert found is not None
    assert (found.slot, found.value) == (expected, value)


@pytest.mark.parametrize("text", DOUBTFUL)
def test_nothing_doubtful_fills_a_slot(text: str) -> None:
    assert slot(text) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("My dog is called Bruno", "My dog is called Rex", True),
        ("My dog is called Bruno", "Mein Hund heißt Rex", True),
        ("I live in Berlin", "I live in Hamburg", True),
        ("I live in Berlin", "I live in Berlin with Anna", False),
        ("My dog is called Bruno", "My cat is called Minka", False),
        ("I like tea", "I like coffee", False),
        ("I live in Berlin", "My sister lives in Bonn", False),
        ("Мою собаку зовут Бруно", "Мою собаку зовут Рекс", True),
    ],
)
def test_c3_only_the_same_slot_with_another_value_is_a_rival(one: str, other: str, *, expected: bool) -> None:
    assert are_rivals(one, other) is expected
    assert are_rivals(other, one) is expected


def test_w3_the_same_in_other_words_or_another_language_is_the_same() -> None:
    assert say_the_same("My dog is called Bruno", "My dog's name is Bruno")
    assert say_the_same("My dog is called Bruno", "Mein Hund heißt Bruno")
    assert not say_the_same("My dog is called Bruno", "My dog is called Bruno and is ill")
