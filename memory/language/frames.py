"""The frames of plain statements in English, German and Russian, as data; slots.py reads them.

A row: kind, language, pattern, words of the attribute. In a pattern {CAPITALS} stand for a fragment below.
"""

import re
from dataclasses import dataclass
from typing import Literal

from memory.language.words import Language

Kind = Literal["name", "favourite", "home", "employer", "job", "birthday", "birthplace", "trait", "object", "state"]


@dataclass(frozen=True, slots=True)
class Frame:
    kind: Kind
    language: Language
    pattern: re.Pattern[str]
    """Groups: "v" the value, "x" whose or what, where it is not the speaker."""
    attribute: str
    """Words that carry the attribute where there is no group "x"."""


_COMMON = {
    "X": r"(?P<x>[^\W\d_][\w'’-]*(?: [\w'’-]+){0,2}?)",
    "V": r"(?P<v>\S.*)",
    "S": r"(?P<x>[\w'’-]+(?: [\w'’-]+){0,5}?)",
}
_FRAGMENTS: dict[Language, dict[str, str]] = {
    "en": {
        "MY": r"\b(?:my|our|your)",
        "I": r"\b(?:i|we|you)(?: now| currently| really| just| also)?",
        "IAM": r"\b(?:i am|i'm|i’m|you are|you're|you’re)(?: now| currently| really| just| also)?",
        "IS": r"(?: is|'s|’s)(?: now| currently| actually)?",
        "IN": r"(?:in|to|at|on|near)(?: the)?",
    },
    "de": {
        "MY": r"\b(?:mein|dein|unser|euer|eur)e?",
        "OFMY": r"\b(?:mein|dein|unser|eur)(?:es|er)",
        "I": r"\b(?:ich|wir|du)",
        "NOW": r"(?: jetzt| nun| übrigens| eigentlich| gerade| auch)?",
        "IN": r"(?:in|im|am|an|bei|auf)(?: der| dem| den)?",
    },
    "ru": {
        "MY": r"\b(?:(?:мо|тво)(?:й|я|ё|е|ю|и|его|ему|ей|их)|(?:на|ва)ш(?:а|е|и|у|его|ей|их)?)",
        "I": r"\b(?:я|мы|ты)(?: теперь| сейчас| вообще| также)?",
        "ATME": r"\bу (?:меня|нас|тебя|вас)(?: есть| живет| живёт)?",
        "NOW": r"(?: теперь| сейчас| вообще)?",
        "IS": r"(?: ?[-–—:=]| это)(?: это)?",
        "IN": r"(?:во?|на|под)",
    },
}

_ROWS: tuple[tuple[Kind, Language, str, str], ...] = (
    # names
    ("name", "en", r"\bthe name of {MY} {X} is {V}", ""),
    ("name", "en", r"{MY} {X}(?:'s|’s)? name{IS} {V}", ""),
    ("name", "en", r"{MY} {X}(?:{IS}|s) (?:called|named) {V}", ""),
    ("name", "en", r"{I} (?:have|got|own|have got) (?:an?|one|two) {X},? (?:called|named) {V}", ""),
    ("name", "en", r"{I} (?:call|called|named) {MY} {X} (?P<v>(?-i:[A-Z])[\w'’-]*)", ""),
    ("name", "en", r"{MY} (?:first |full |last )?name{IS} {V}", "name"),
    ("name", "en", r"{IAM} (?:called|named) {V}", "name"),
    ("name", "de", r"\bder name (?:von |des |der )?{OFMY} {X} ist {V}", ""),
    ("name", "de", r"{MY} {X} (?:heißt|heisst|heißen|nennt sich){NOW} {V}", ""),
    (
        "name",
        "de",
        r"{I} (?:habe|haben|hast) (?:einen|eine|ein) {X},? (?:namens|der|die|das) (?P<v>.+?)(?: heißt)?$",
        "",
    ),
    ("name", "de", r"{MY} name ist {V}", "name"),
    ("name", "de", r"\b(?:ich heiße|ich heisse|du heißt) {V}", "name"),
    ("name", "ru", r"{MY} {X}{NOW} (?:зовут|звали|называют){NOW} {V}", ""),
    ("name", "ru", r"\b(?:имя|кличка|кличку) {MY} {X}{IS} {V}", ""),
    ("name", "ru", r"{ATME} {X},? (?:по имени|по кличке|зовут) {V}", ""),
    ("name", "ru", r"\b(?:меня|тебя|вас) зовут {V}", "имя"),
    # what one has one of
    ("favourite", "en", r"{MY} favou?rite {X}(?:{IS}| are) {V}", ""),
    ("favourite", "de", r"{MY} lieblings-?{X} (?:ist|sind|heißt){NOW} {V}", ""),
    ("favourite", "ru", r"{MY}(?: самый| самая)? любим(?:ый|ая|ое|ые) {X}{IS} {V}", ""),
    ("birthday", "en", r"{MY} birthday{IS} (?:on )?(?:the )?{V}", "birthday born"),
    ("birthday", "en", r"\b(?:i was|you were) born on (?:the )?{V}", "birthday born"),
    ("birthday", "de", r"{I} (?:habe|hast) am (?P<v>.+?) geburtstag\b", "geburtstag geboren"),
    ("birthday", "de", r"{MY} geburtstag ist (?:am |der )?{V}", "geburtstag geboren"),
    ("birthday", "de", r"{I} (?:bin|wurde|bist|wurdest) am (?P<v>.+?) geboren\b", "geburtstag geboren"),
    ("birthday", "ru", r"\bдень рождения(?: у меня| у тебя)?(?:{IS})? {V}", "рождения родился"),
    ("birthday", "ru", r"{I} родил(?:ся|ась) (?P<v>\d.*)", "рождения родился"),
    ("birthplace", "en", r"\b(?:i was|you were) born in {V}", "born"),
    ("birthplace", "de", r"{I} (?:bin|wurde|bist|wurdest) in (?P<v>.+?) geboren\b", "geboren"),
    ("birthplace", "ru", r"{I} родил(?:ся|ась) во? {V}", "родился"),
    # where one lives and works
    ("home", "en", r"{I} (?:live|lived|reside|moved|have moved) {IN} {V}", "live"),
    ("home", "en", r"{IAM} living {IN} {V}", "live"),
    ("home", "en", r"{MY} {X} (?:lives|lived|moved) {IN} {V}", ""),
    ("home", "de", r"{I} (?:wohne|wohnen|wohnst|lebe|leben|lebst){NOW} {IN} {V}", "wohne"),
    ("home", "de", r"{I} (?:bin|sind|bist) nach (?P<v>.+?) (?:um)?gezogen\b", "wohne gezogen"),
    ("home", "de", r"{MY} {X} (?:wohnt|lebt) {IN} {V}", ""),
    ("home", "ru", r"{I} (?:живу|живем|живём|живешь|живёшь|переехал[аи]?) {IN} {V}", "живу"),
    ("home", "ru", r"{MY} {X} (?:живет|живёт|живут) {IN} {V}", ""),
    ("job", "en", r"{I} work as (?:an? |the )?{V}", "work job"),
    ("job", "de", r"{I} (?:arbeite|arbeitest){NOW} als {V}", "arbeite beruf"),
    ("job", "de", r"{I} (?:bin|bist) von beruf {V}", "beruf"),
    ("job", "ru", r"{I} работа(?:ю|ешь) (?!с |по |из |до |над |от |у |за )(?P<v>\w+(?:ом|ем|ём|ой|ей))\b", "работаю"),
    ("employer", "en", r"{I} work (?:at|for) {V}", "work employer"),
    ("employer", "en", r"{IAM} working (?:at|for) {V}", "work employer"),
    ("employer", "de", r"{I} (?:arbeite|arbeitest){NOW} (?:bei|beim|für)(?: der| dem)? {V}", "arbeite"),
    ("employer", "ru", r"{I} работа(?:ю|ешь) (?:во?|на) {V}", "работаю"),
    # traits: slots.py gives a slot to those that one has one of, and to the names of people and pets
    ("trait", "en", r"{MY} {X}{IS} {V}", ""),
    ("trait", "de", r"{MY} {X} (?:ist|lautet){NOW} {V}", ""),
    ("trait", "ru", r"{MY} {X}{IS} {V}", ""),
    ("trait", "en", r"^(?P<v>(?-i:[A-Z])[\w'’-]+) is (?:the name of )?{MY} {X}\s*[.!]*$", ""),
    ("trait", "de", r"^(?P<v>(?-i:[A-ZÄÖÜ])[\w-]+) ist {MY} {X}\s*[.!]*$", ""),
    ("trait", "ru", r"^(?P<v>(?-i:[А-Я])[\w-]+){IS} {MY} {X}\s*[.!]*$", ""),
    # what may hold many times over
    ("object", "en", r"{IAM} allergic to {V}", "allergic"),
    ("object", "en", r"{I} (?:have|suffer from) (?:an? )?(?P<v>.+?) allergy\b", "allergic"),
    (
        "object",
        "en",
        r"{I} (?:don't|do not|can't|cannot|never) (?:eat|drink|like|tolerate|stand) {V}",
        "eat drink like",
    ),
    ("object", "en", r"{I} (?:like|love|hate|prefer|enjoy|dislike|adore) {V}", "like love hate prefer"),
    ("object", "en", r"{IAM} an? (?P<v>\w+)\s*[.!]?$", "i i'm you you're"),
    ("object", "de", r"{I} (?:bin|bist) allergisch (?:gegen|auf) {V}", "allergisch"),
    ("object", "de", r"{I} (?:habe|hast) eine (?P<v>\w+?)-?allergie\b", "allergisch"),
    ("object", "de", r"{I} (?:esse|trinke|vertrage|isst|trinkst|verträgst) (?:keine?n?|nie|gerne?) {V}", "esse trinke"),
    ("object", "de", r"{I} (?:mag|magst|liebe|liebst|hasse|hasst)(?: keine?n?)? {V}", "mag liebe hasse"),
    ("object", "de", r"{I} (?:bin|bist)(?: eine?)? (?P<v>(?-i:[A-ZÄÖÜ])\w+)\s*[.!]?$", "ich du"),
    ("object", "ru", r"\bу (?:меня|тебя) аллергия на {V}", "аллергия"),
    ("object", "ru", r"{I} не (?:ем|пью|ешь|пьешь|переношу) {V}", "ем пью переношу"),
    ("object", "ru", r"{I}(?: не)? (?:люблю|любишь|обожаю|ненавижу) {V}", "люблю обожаю ненавижу"),
    ("object", "ru", r"\b(?:мне|тебе)(?: не)? нрав(?:ится|ятся) {V}", "нравится"),
    # what is said of anything else
    ("state", "en", r"^{S} (?:is|are) {V}", ""),
    ("state", "de", r"^{S} (?:ist|sind) {V}", ""),
    ("state", "ru", r"^{S}(?: [-–—] | это | [-–—] это ){V}", ""),
)


def _fill(pattern: str, language: Language) -> re.Pattern[str]:
    for name, fragment in (_COMMON | _FRAGMENTS[language]).items():
        pattern = pattern.replace(f"{{{name}}}", fragment)
    return re.compile(pattern, re.IGNORECASE)


FRAMES = tuple(
    Frame(kind, language, _fill(pattern, language), attribute) for kind, language, pattern, attribute in _ROWS
)
