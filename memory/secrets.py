"""Secrets are taken out of every text before memory writes it: keys, tokens, passwords, card and account numbers.

Pure, and a table of shapes. Ordinary numbers (telephones, dates, sums) stay.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

SECRET_MARK = "[•••]"  # noqa: S105 - the mark, not a secret

_LEAST = 3  # characters; a shorter word is no secret
_LONGEST_CODE = 12  # digits


def _always(_value: str) -> bool:
    return True


def _is_card(value: str) -> bool:
    """Luhn's check."""
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) if i % 2 else digit for i, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _is_account(value: str) -> bool:
    """The check of ISO 13616."""
    plain = re.sub(r"\s", "", value).upper()
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _looks_secret(value: str) -> bool:
    """Written as nobody writes a word: letters with digits, a short code, a symbol or a capital inside."""
    core = value.strip(".,;:!?\"'()«»„“”")
    if len(core) < _LEAST:
        return False
    has_digit, has_letter = any(map(str.isdigit, core)), any(map(str.isalpha, core))
    if has_digit and (has_letter or (core.isdigit() and len(core) <= _LONGEST_CODE)):
        return True
    return re.search(r"\w[^\w\s'’./-]\w|[a-zа-я][A-ZА-Я]|\w[@#$%^&*]$", core) is not None


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of secret: the group "secret", or else the whole match, is taken out where `is_one` agrees."""

    name: str
    pattern: re.Pattern[str]
    is_one: Callable[[str], bool] = _always


def _shape(name: str, *parts: str, is_one: Callable[[str], bool] = _always, flags: re.RegexFlag = re.NOFLAG) -> Shape:
    return Shape(name, re.compile("".join(parts), flags), is_one)


_ANY_CASE = re.IGNORECASE
_CODE_WORD = (
    r"(?<!\w)(?:[\w-]*(?:pass ?(?:word|code|phrase)|passwor[dt]|kennwort|zugangscode)|парол[ьяюе]м?|pwd|passwd|"
    r"кодов(?:ое|ая) (?:слово|фраза)|(?:[\w-]+-)?pin(?:[ -]?(?:code|nummer|number))?|пин(?:[ -]?код)?|"
    r"puk|cvv|cvc)(?!\w)"
)
_KEY_WORD = (
    r"(?<!\w)(?:(?:api|access|auth|secret|private|client|bot|refresh)[ _-]?(?:key|token|secret)|secret|token|"
    r"credentials?|api-?schlüssel|geheimschlüssel|zugangsschlüssel|токен|секрет(?:ный)?(?: ключ)?|api-?ключ)(?!\w)"
)
_PHRASE_WORD = (
    r"(?<!\w)(?:(?:seed|recovery|mnemonic|backup|wallet)[ -]?(?:phrase|words)|wiederherstellungsphrase|"
    r"сид-?фраза|мнемоническая фраза)(?!\w)"
)
_FEW_WORDS = r"(?:[ \t]+[^\s:=]+){0,6}?"
_ARE = r"[ \t]*(?:[:=]|->|→)[ \t]*"
_IS = r"[ \t]+(?:is|are|was|ist|war|lautet|heißt|это|был|-|–|—)[ \t]+(?:now |jetzt |теперь )?"
_OPEN = r"[\"'«„“]?"
_VALUE = r"(?P<secret>[^\s\[\"'«„“]\S*)"
_LAST_WORD = r"(?P<secret>[^\s\[\"'«„“.!?]+)(?=[\"'»”“]?[.!?]*\s*(?:$|\n))"
_FOURS = r"(?:[ -]?\d{4})"

SHAPES: tuple[Shape, ...] = (
    _shape(
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        flags=re.DOTALL,
    ),
    _shape("private key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    _shape("model key", r"\b(?:sk|pk|rk)-(?:[A-Za-z0-9]+-)*[A-Za-z0-9_-]{16,}"),
    _shape("payment key", r"\b(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}"),
    _shape(
        "code host token",
        r"\b(?:gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|ptt|dt|rt|cbt|soat)-[\w-]{16,}|ATBB\w{20,})",
    ),
    _shape(
        "chat token",
        r"\b(?:xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|sy[tr]_[\w=-]{10,}|m[ac]t_\w{16,}|mcr_\w{16,}|",
        r"\d{6,12}:[A-Za-z0-9_-]{30,})",
    ),
    _shape(
        "cloud key",
        r"\b(?:(?:A[KS]IA|AGPA|AROA|ABIA)[0-9A-Z]{16}\b|AIza[\w-]{30,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}|",
        r"do[opr]_v1_[0-9a-f]{32,}|tskey-[\w-]{16,})",
    ),
    _shape(
        "registry token",
        r"\b(?:hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|dckr_pat_[\w-]{16,}|figd_[\w-]{20,}|",
        r"lin_api_\w{20,}|ntn_\w{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|key-[0-9a-f]{32}\b)",
    ),
    _shape("web token", r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),
    _shape("web token", r"\b(?:bearer|basic)\s+(?P<secret>[\w.~+/=-]{16,})", flags=_ANY_CASE),
    _shape("address", r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?P<secret>[^\s/@]+)@", flags=_ANY_CASE),
    _shape(
        "address",
        r"[?&](?:access_token|api_?key|key|token|sig|signature|secret|password|auth)=(?P<secret>[^\s&#]{6,})",
        flags=_ANY_CASE,
    ),
    _shape(
        "address",
        r"https://(?:hooks\.slack\.com/services|discord(?:app)?\.com/api/webhooks)/(?P<secret>[\w/-]{16,})",
    ),
    _shape(
        "key phrase",
        _PHRASE_WORD,
        r"[^\n:=]{0,30}?\s*(?::|=|\b(?:is|are|ist|lautet|это)\b)\s*(?P<secret>[^\s.!?:=\[][^.!?\n]*)",
        flags=_ANY_CASE,
    ),
    _shape("password", _CODE_WORD, _FEW_WORDS, _ARE, r"(?P<secret>[^\s\[]\S*)", flags=_ANY_CASE),
    _shape("password", _CODE_WORD, _FEW_WORDS, _IS, _OPEN, _VALUE, is_one=_looks_secret, flags=_ANY_CASE),
    _shape("password", _CODE_WORD, _IS, _OPEN, _LAST_WORD, flags=_ANY_CASE | re.MULTILINE),
    _shape("password", _CODE_WORD, r"[ \t]+", _OPEN, _VALUE, is_one=_looks_secret, flags=_ANY_CASE),
    _shape(
        "key",
        _KEY_WORD,
        rf"{_FEW_WORDS}(?:{_ARE}|{_IS}){_OPEN}(?P<secret>[\w.~+/=-]{{8,}})",
        is_one=_looks_secret,
        flags=_ANY_CASE,
    ),
    _shape(
        "card number",
        r"(?<![\d+.,/-])(?:",
        rf"4\d{{3}}{_FOURS}{{3}}|",  # Visa
        rf"(?:5[1-5]\d{{2}}|222[1-9]|22[3-9]\d|2[3-6]\d{{2}}|27[01]\d|2720|220[0-4]){_FOURS}{{3}}|",  # Mastercard, Mir
        r"3[47]\d{2}[ -]?\d{6}[ -]?\d{5}|",  # American Express
        r"3(?:0[0-5]|[689]\d)\d[ -]?\d{6}[ -]?\d{4}|",  # Diners Club
        rf"(?:6011|64[4-9]\d|(?:35|50|5[6-9]|62|65|67)\d{{2}}){_FOURS}{{3}}(?:[ -]?\d{{1,3}})?",  # JCB and others
        r")(?![\d-])",
        is_one=_is_card,
    ),
    _shape(
        "account number",
        r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b",
        is_one=_is_account,
    ),
)


def redact_secrets(text: str) -> tuple[str, bool]:
    """The text without its secrets, and whether there were any. Doing it again changes nothing."""
    redacted = text
    for shape in SHAPES:
        redacted = shape.pattern.sub(lambda match, shape=shape: _replacement(match, shape), redacted)
    return redacted, redacted != text


def _replacement(match: re.Match[str], shape: Shape) -> str:
    group = "secret" if "secret" in match.re.groupindex else 0
    secret = match[group]
    if SECRET_MARK in secret or not shape.is_one(secret):
        return match[0]
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    tail = secret[len(secret.rstrip(".,;!?\"'»”“")) :] if group else ""
    return match[0][:start] + SECRET_MARK + tail + match[0][end:]
