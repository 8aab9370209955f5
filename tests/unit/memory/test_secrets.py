"""Secrets never reach memory; ordinary numbers do (pitfall P24)."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets import SECRET_MARK, redact_secrets

SECRETS = [
    ("my key is sk-ant-api03-AbCdEf0123456789_-xyzXYZ", "sk-ant-api03-AbCdEf0123456789_-xyzXYZ"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789 is the token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("bot 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw!", "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"),
    ("xoxb-123456789012-abcdefGHIJKL", "xoxb-123456789012-abcdefGHIJKL"),
    ("syt_YWRh_abcdefghijklmnop_1a2b3c", "syt_YWRh_abcdefghijklmnop_1a2b3c"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIiOiIxMjM0In0"),
    ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"),
    ("postgres://me:s3cr3t@db.example.org/x", "s3cr3t"),
    ("https://x.example/?token=abcdef123456&y=1", "abcdef123456"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA"),
    ("My password is hunter2", "hunter2"),
    ("my password for the wifi is swordfish9.", "swordfish9"),
    ("my password is swordfish", "swordfish"),
    ("Mein WLAN-Passwort lautet Sommer2024!", "Sommer2024"),
    ("Kennwort: geheim", "geheim"),
    ("пароль от вайфая: кракозябра", "кракозябра"),
    ("Мой пароль — Qwerty12", "Qwerty12"),
    ("Meine PIN ist 4711.", "4711"),
    ("api key: abcd1234efgh5678", "abcd1234efgh5678"),
    ("My seed phrase is: apple banana cherry dog. Ok?", "banana cherry"),
    ("card 4111 1111 1111 1111 ok", "4111 1111 1111 1111"),
    ("5500-0000-0000-0004", "5500-0000-0000-0004"),
    ("IBAN DE89 3704 0044 0532 0130 00", "3704 0044"),
]

ORDINARY = [
    *("call +49 151 12345678", "0151 12345678 or 555-0199", "ring 8 (916) 123-45-67"),
    *("born 1990-05-03", "am 12.11.2026 um 14:30", "3 мая 1990 года"),
    *("it costs 1.299,00 EUR", "order 4111111111111112", "flight LH 1234 at gate B22"),
    *("the password is on the fridge", "Das Passwort ist auf dem Zettel", "I forgot my password again"),
    *("password reset tomorrow at 10", "the token is in the drawer", "spin class at 7", "Chopin 1810"),
    *("DE89 3704 0044 0532 0130 01", "ISBN 978-3-16-148410-0", "version 2.10.3", "https://example.org/a?page=2"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_p24_secrets_are_taken_out(text: str, secret: str) -> None:
    redacted, had_any = redact_secrets(text)
    assert had_any
    assert secret not in redacted
    assert SECRET_MARK in redacted


@pytest.mark.parametrize("text", ORDINARY)
def test_p24_ordinary_numbers_and_talk_survive(text: str) -> None:
    assert redact_secrets(text) == (text, False)


@given(st.sampled_from([text for text, _ in SECRETS]), st.text(max_size=20), st.text(max_size=20))
def test_p24_redacting_again_changes_nothing(secret: str, before: str, after: str) -> None:
    once, _ = redact_secrets(f"{before} {secret} {after}")
    assert redact_secrets(once) == (once, False)


@given(st.integers(1, 31), st.integers(1, 12), st.integers(1900, 2099))
def test_p24_no_date_is_a_secret(day: int, month: int, year: int) -> None:
    for text in (f"{year}-{month:02}-{day:02}", f"{day:02}.{month:02}.{year}", f"{month}/{day}/{year}"):
        assert redact_secrets(f"on {text} at noon") == (f"on {text} at noon", False)


@given(st.text(string.digits, min_size=6, max_size=13))
def test_p24_no_telephone_is_a_secret(digits: str) -> None:
    for text in (f"call +{digits}", f"phone {digits}", f"tel. 0{digits[:3]}/{digits[3:]}"):
        assert redact_secrets(text) == (text, False)


@given(st.text(string.digits, min_size=15, max_size=15))
def test_p24_a_card_is_told_by_its_check_digit(digits: str) -> None:
    """Of ten numbers that look like a Visa card exactly one is taken for one."""
    number = "4" + digits[:-1]
    taken = [last for last in string.digits if redact_secrets(f"no {number}{last}")[1]]
    assert len(taken) == 1 or len(set(number)) == 1
