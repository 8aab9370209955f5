"""The cards around facts, for commands, tools and buttons alike. What they say comes from the stored row."""

from handlers.locales import Phrases
from handlers.types import Button, Card
from memory.types import Receipt, Remembered

LABEL_LENGTH = 40
LISTED = 8  # a phone shows about so many buttons at once
BUDGET_WARNING = 0.8


def kept_card(say: Phrases, kept: Remembered, *, replaces: str | None = None) -> Card:
    """Told from the stored row: what was kept, with Undo and Edit; asks when it contradicts an older fact."""
    fact = kept.fact
    lines = [say("fact-known" if kept.was_known else "fact-kept", fact=fact.text)]
    if kept.redacted:
        lines.append(say("fact-redacted"))
    if kept.budget_used >= BUDGET_WARNING:
        lines.append(say("fact-budget", percent=round(kept.budget_used * 100)))
    if kept.rivals:
        old = kept.rivals[0]
        lines.append(say("fact-rival", old=old.text))
        choices = tuple(
            (Button(say(f"settle-{choice}"), "settle_fact", {"id": fact.id, "choice": choice}),)
            for choice in ("new", "both", "old")
        )
        return Card("\n".join(lines), choices, replaces)
    buttons: list[Button] = []
    if not kept.was_known:
        buttons.append(Button(say("undo"), "undo_fact", {"id": fact.id}))
    buttons.append(Button(say("edit"), "edit_fact", {"id": fact.id}))
    if kept.budget_used >= BUDGET_WARNING:
        buttons.append(Button(say("tidy"), "memory_page", {"page": 0}))
    return Card("\n".join(lines), (tuple(buttons),), replaces)


def told(kept: Remembered) -> str:
    """The same for the model."""
    if kept.was_known:
        return f"Already stored, nothing changed: {kept.fact.text}"
    said = f"Stored: {kept.fact.text}"
    if kept.rivals:
        said += f" It contradicts a stored fact ({kept.rivals[0].text}); the person is asked which one holds."
    return said


def ask_to_keep(say: Phrases, text: str, message_id: int | None) -> Card:
    """For words that are not the person's own: nothing is written without a tap."""
    data = {"text": text, "message_id": message_id}
    return Card(
        say("keep-untrusted", fact=text), ((Button(say("keep"), "keep_fact", data), Button(say("no"), "leave")),)
    )


def receipt_lines(say: Phrases, receipt: Receipt) -> str:
    """What was erased, counted from the stores."""
    lines = [say("receipt-facts", n=receipt.facts)] if receipt.facts else []
    if receipt.observations:
        lines.append(say("receipt-observations", n=receipt.observations))
    if receipt.messages_redacted:
        lines.append(say("receipt-messages", n=receipt.messages_redacted))
    if receipt.summaries_anew:
        lines.append(say("receipt-summaries", n=receipt.summaries_anew))
    if gone := receipt.summaries - receipt.summaries_anew:
        lines.append(say("receipt-summaries-gone", n=gone))
    if receipt.vectors:
        lines.append(say("receipt-vectors", n=receipt.vectors))
    lines += [say("receipt-backup", backup=backup) for backup in receipt.backups]
    lines += [say(f"receipt-still-{where}") for where in receipt.still_said]
    if receipt.unfinished:
        lines.append(say("receipt-unfinished"))
    return "\n".join([say("receipt"), *(f"• {line}" for line in lines)]) if lines else say("receipt-nothing")


def shorten(text: str, length: int = LABEL_LENGTH) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"
