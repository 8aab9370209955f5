"""What is never learned from, however it was typed: small talk, pasted logs, boot prompts, injections, recalled blocks.

Pure. The model is not even shown it: of 10,134 memories of one system 97.8 % were of this kind (pitfall P10).
"""

import re

from memory.language.text import MARK
from memory.language.words import content_words
from memory.secrets import SECRET_MARK

_LEAST_WORDS = 2
_LONG = 3000  # characters; what somebody types on a phone is shorter
_LINES = 4
"""Lines from which a text that looks made by a machine counts as pasted."""

_ANY = re.IGNORECASE | re.MULTILINE
_BOOT = re.compile(
    r"^\W*you are (?:now )?(?:an?|the|my) [\w -]{0,40}(?:assistant|model|ai|bot|agent|expert|chatbot)\b|"
    r"^\W*du bist (?:ab )?(?:jetzt |nun |sofort )?(?:ein|eine|mein) [\w -]{0,40}"
    r"(?:assistent|assistentin|modell|ki|bot|agent|experte)\b|"
    r"^\W*(?:ты|вы) (?:теперь |являетесь )?[\w -]{0,30}(?:ассистент|помощник|модель|бот|агент|эксперт)|"
    r"\bsystem ?prompt\b|\bsystemprompt\b|системн\w+ промпт|<\|\w+\|>|\[/?INST\]|^\s*#{0,3}\s*(?:system|developer)\s*:",
    _ANY,
)
_INJECTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|any|your)\b.{0,30}"
    r"\b(?:instructions?|rules?|prompts?|guidelines)\b|"
    r"\b(?:ignoriere?|vergiss|missachte)\b.{0,40}\b(?:anweisung|anweisungen|regeln|vorgaben)\b|"
    r"(?:игнорируй|забудь|отмени)\w*.{0,40}(?:инструкци|правил|указани)|"
    r"\b(?:from now on|ab sofort|ab jetzt|с этого момента|отныне)\b.{0,60}"
    r"\b(?:you (?:must|will|are|always)|always answer|antworte\w* immer|отвечай\w* всегда|всегда отвечай\w*)|"
    r"\b(?:admin|root|master)[ -]?(?:password|passwort|kennwort|token|key)\b|парол\w* администратора|"
    r"\b(?:jailbreak|developer mode|do anything now)\b",
    _ANY | re.DOTALL,
)
_RECALLED = re.compile(
    r"<\s*/?\s*(?:known|memory|memories|recall|recalled|facts?|context|summary|untrusted)\b|"
    r"^\s*(?:known facts|relevant memories|recalled|earlier chats|bekannte fakten|известные факты)\s*:|\[o\d+\]",
    _ANY,
)
_MACHINE = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|"
    r"\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\]?[\s:|]|"
    r"at \S+\(.*\)|File \".*\", line \d+|[\w.]*(?:Error|Exception)\b.*:|Traceback|(?:GET|POST|PUT|DELETE)\s/|"
    r"[{\[<].*[}\]>],?\s*$|\S+\s+\S+\s+(?:kernel|systemd|sshd)\b)"
)
"""A line that only a program writes."""
_MADE = re.compile(r"\s*(?:[$#>]\s|\+{3}|-{3}|@@|[{}\[\]()<>]+[,;]?\s*$|[\"'\w.-]+\s*[:=]\s*[\"{\[\d])")
"""A line that a program may have written."""
_CODE = re.compile(r"```|~~~")
_COMMAND = re.compile(r"\s*/\w+")
_CLAUSE = re.compile(r"[,;:–—]")
_QUESTION = re.compile(r"[?？]\s*$")


def why_not(text: str) -> str | None:
    """The reason for which a typed message is not learned from, as a code; None where it may be."""
    if _COMMAND.match(text):
        return "command"
    if len(content_words(text.replace(MARK, " ").replace(SECRET_MARK, " "))) < _LEAST_WORDS:
        return "small_talk"
    for reason, pattern in (("recalled", _RECALLED), ("injection", _INJECTION), ("boot_prompt", _BOOT)):
        if pattern.search(text):
            return reason
    if _is_pasted(text):
        return "pasted"
    if _is_question(text):
        return "question"
    return None


def _is_pasted(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    certain = sum(_MACHINE.match(line) is not None for line in lines)
    machine = sum(_MACHINE.match(line) is not None or _MADE.match(line) is not None for line in lines)
    is_machine = certain == len(lines) or (len(lines) >= _LINES and machine * 2 >= len(lines))
    return len(text) > _LONG or is_machine or _CODE.search(text) is not None


def _is_question(text: str) -> bool:
    """Say whether it only asks: "I live in Leeds, is there a bakery?" tells something, too."""
    parts = [part for part in re.split(r"(?<=[.!?？…])\s+|\n+", text.strip()) if part.strip()]
    return all(_QUESTION.search(part) and not _tells_before_it_asks(part) for part in parts)


def _tells_before_it_asks(sentence: str) -> bool:
    *before, _ = _CLAUSE.split(sentence)
    return any(len(content_words(clause)) >= _LEAST_WORDS for clause in before)
