"""A chat as a phone shows it, as one self-contained SVG: for the README, and for a look at what the bot did.

One rule: it draws what is stored in the emulator and invents nothing but the frame.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from html import escape
from typing import TYPE_CHECKING

from .errors import Json
from .typeset import Line, shorten, text_width, typeset
from .world import SERVICE_FIELDS, Chat, Message

if TYPE_CHECKING:
    from .reading import Lane, Reading

_SANS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', Roboto, sans-serif"
_MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_BOLD = frozenset({"bold"})
_LINKS = {"text_link", "url", "mention", "bot_command", "hashtag", "email", "text_mention", "cashtag", "phone_number"}
_SIZE, _LEADING, _SMALL = 15, 20, 11.5
_HEADER, _FOOTER, _MARGIN, _PAD, _GAP = 60, 56, 10, 10, 6
_BUTTON_HEIGHT, _BUTTON_GAP = 34, 4
_NAME_COLOURS = ("#c03d33", "#4fad2d", "#d09306", "#168acd", "#8544d6", "#cd4073", "#2996ad", "#ce671b")


@dataclass(frozen=True)
class _Piece:
    """Something drawn at the top left of its place, and the height it takes."""

    svg: str
    height: float


@dataclass(frozen=True)
class _Look:
    width: int
    zone: tzinfo
    me: int
    is_group: bool

    @property
    def bubble_limit(self) -> float:
        return self.width * 0.8 - 2 * _PAD


def render_svg(
    api: "Reading",
    chat_id: int,
    title: str | None = None,
    width: int = 420,
    *,
    thread: "Lane" = "any",
    me: int | None = None,
    zone: tzinfo = UTC,
) -> str:
    """Draw the visible messages of a chat. `me` is whose phone it is, by default the chat's first person's."""
    chat = api.world.chats[chat_id]
    people = [user_id for user_id in chat.members if user_id != api.world.bot["id"]]
    look = _Look(width, zone, people[0] if me is None else me, chat.type != "private")
    pieces = [_draw(look, message) for message in api.messages(chat_id, thread=thread)]
    body: list[str] = []
    top = _HEADER + _MARGIN
    for piece in pieces:
        body.append(f'<g transform="translate(0 {top:.1f})">{piece.svg}</g>')
        top += piece.height + _GAP
    height = int(top + _MARGIN + _FOOTER)
    heading = title or chat.names.get("title") or str(api.world.bot["first_name"])
    return "\n".join([*_frame(look, height), *body, *_bars(look, chat, heading, height), "</g></svg>", ""])


def _frame(look: _Look, height: int) -> Iterable[str]:
    size = f'width="{look.width}" height="{height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {look.width} {height}" font-family="{_SANS}">'
    yield '<defs><linearGradient id="wall" x1="0" y1="0" x2="1" y2="1">'
    yield '<stop offset="0" stop-color="#d3e3d0"/><stop offset="1" stop-color="#b9d3de"/></linearGradient>'
    yield '<linearGradient id="face" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#6fb1f0"/>'
    yield '<stop offset="1" stop-color="#3f86d8"/></linearGradient>'
    yield f'<clipPath id="screen"><rect {size} rx="22"/></clipPath></defs>'
    yield f'<g clip-path="url(#screen)"><rect {size} fill="url(#wall)"/>'


def _bars(look: _Look, chat: Chat, title: str, height: int) -> Iterable[str]:
    humans = sum(status not in ("left", "kicked") for status in chat.members.values())
    about = "bot" if chat.type == "private" else f"{humans} members"
    yield f'<rect width="{look.width}" height="{_HEADER}" fill="#ffffff"/>'
    yield '<path d="M22 22 l-8 8 l8 8" fill="none" stroke="#3f86d8" stroke-width="2.4" stroke-linecap="round"/>'
    yield f'<circle cx="56" cy="30" r="19" fill="url(#face)"/>{_label(56, 36, title[:1].upper(), 17, "#fff", "middle")}'
    yield _label(86, 27, shorten(title, 16, look.width - 110, _BOLD), 16, "#000", bold=True)
    yield _label(86, 45, about, 13, "#8a8f95")
    top = height - _FOOTER
    yield f'<rect y="{top}" width="{look.width}" height="{_FOOTER}" fill="#ffffff"/>'
    yield f'<rect x="14" y="{top + 10}" width="{look.width - 70}" height="36" rx="18" fill="#f1f3f5"/>'
    yield _label(30, top + 33, "Message", 15, "#9aa0a6")
    yield f'<circle cx="{look.width - 32}" cy="{top + 28}" r="18" fill="#3f86d8"/>'
    yield (
        f'<path d="M{look.width - 32} {top + 36} v-15 m-6 6 l6 -6 l6 6" fill="none" stroke="#fff" stroke-width="2.4"'
        ' stroke-linecap="round" stroke-linejoin="round"/>'
    )


def _draw(look: _Look, message: Message) -> _Piece:
    return _service(look, message) if message.is_service else _bubble(look, message)


def _service(look: _Look, message: Message) -> _Piece:
    raw = message.raw
    if "forum_topic_created" in raw:
        text = f"Topic “{raw['forum_topic_created']['name']}” created"
    else:
        kind = next(name for name in raw if name.startswith(SERVICE_FIELDS))
        about = {"new_chat_members": "joined the group", "left_chat_member": "left the group"}.get(kind)
        words = kind.replace("forum_topic_", "topic ").replace("_", " ").capitalize()
        text = f"{raw['from']['first_name']} {about}" if about else words
    shown = shorten(text, 13, look.width - 60)
    wide = text_width(shown, 13) + 24
    pill = f'<rect x="{(look.width - wide) / 2:.1f}" width="{wide:.1f}" height="24" rx="12" fill="#000" opacity=".25"/>'
    return _Piece(pill + _label(look.width / 2, 17, shown, 13, "#fff", "middle"), 24)


def _bubble(look: _Look, message: Message) -> _Piece:
    mine = message.raw["from"]["id"] == look.me
    parts = [*_sender(look, message, mine), *_reply(message), *_media(message)]
    lines = typeset(message.text, message.entities, _SIZE, look.bubble_limit) if message.text else []
    stamp = _stamp(look, message, mine=mine)
    last = lines[-1] if lines and lines[-1].block == "text" else None
    beside = last is not None and last.width + stamp[1] <= look.bubble_limit
    inner = max(
        [width for _, width in parts]
        + [line.width + (0 if line.block == "text" else 18) for line in lines]
        + [(last.width if last and beside else 0) + stamp[1], _keyboard_width(message, look), 40]
    )
    wide = min(inner, look.bubble_limit) + 2 * _PAD
    left = look.width - _MARGIN - wide if mine else _MARGIN
    drawn: list[str] = []
    y = 7.0
    for piece, _ in parts:
        drawn.append(f'<g transform="translate({_PAD} {y:.1f})">{piece.svg}</g>')
        y += piece.height
    drawn += _lines(lines, y, wide)
    y += len(lines) * _LEADING + (0 if beside else 16) + 8
    drawn.append(f'<g transform="translate({wide - _PAD:.1f} {y - 9:.1f})">{stamp[0]}</g>')
    chips = _chips(message)
    shape = _shape(wide, y, "#e4fbd0" if mine else "#ffffff", mine=mine)
    keys = _keyboard(message, wide)
    svg = f'<g transform="translate({left:.1f} 0)">{shape}{"".join(drawn)}'
    svg += f'<g transform="translate(0 {y:.1f})">{chips.svg}</g>'
    svg += f'<g transform="translate(0 {y + chips.height:.1f})">{keys.svg}</g></g>'
    return _Piece(svg, y + chips.height + keys.height)


def _shape(wide: float, high: float, fill: str, *, mine: bool) -> str:
    """A rounded rectangle whose lower corner on the speaker's side is sharp."""
    r, right, left = 14, 4 if mine else 14, 14 if mine else 4
    path = (
        f"M{r} 0 H{wide - r:.1f} Q{wide:.1f} 0 {wide:.1f} {r} V{high - right:.1f}"
        f" Q{wide:.1f} {high:.1f} {wide - right:.1f} {high:.1f} H{left} Q0 {high:.1f} 0 {high - left:.1f}"
        f" V{r} Q0 0 {r} 0 Z"
    )
    return f'<path d="{path}" fill="#000" opacity=".1" transform="translate(0 1)"/><path d="{path}" fill="{fill}"/>'


def _sender(look: _Look, message: Message, mine: bool) -> Iterable[tuple[_Piece, float]]:
    if look.is_group and not mine:
        sender: Json = message.raw["from"]
        colour = _NAME_COLOURS[int(sender["id"]) % len(_NAME_COLOURS)]
        name = shorten(sender["first_name"], 14, look.bubble_limit, _BOLD)
        yield _Piece(_label(0, 14, name, 14, colour, bold=True), 19), text_width(name, 14, _BOLD)
    if "forward_origin" in message.raw:
        origin: Json = message.raw["forward_origin"]
        source = origin.get("sender_user_name") or origin.get("sender_user", {}).get("first_name", "")
        shown = shorten(f"Forwarded from {source}", 13, look.bubble_limit)
        yield _Piece(_label(0, 13, shown, 13, "#3f86d8"), 19), text_width(shown, 13)


def _reply(message: Message) -> Iterable[tuple[_Piece, float]]:
    original: Json | None = message.raw.get("reply_to_message")
    if original is None or "forum_topic_created" in original:
        return
    quote: Json = message.raw.get("quote", {})
    said = shorten(quote.get("text") or original.get("text") or original.get("caption") or "…", 13, 220)
    name = shorten(original["from"]["first_name"], 13, 220, _BOLD)
    bar = '<rect width="3" height="34" rx="1.5" fill="#3f86d8"/>'
    svg = bar + _label(10, 13, name, 13, "#3f86d8", bold=True) + _label(10, 30, said, 13, "#333")
    yield _Piece(svg, 41), 12 + max(text_width(name, 13, _BOLD), text_width(said, 13))


def _media(message: Message) -> Iterable[tuple[_Piece, float]]:
    raw = message.raw
    if "photo" in raw or "video" in raw:
        box = '<rect y="2" width="230" height="130" rx="8" fill="#c8d6df"/>'
        hill = '<path d="M12 124 l60 -70 l44 48 l24 -24 l76 46 z" fill="#9fb6c4"/><circle cx="180" cy="40" r="14"'
        yield _Piece(f'{box}{hill} fill="#eef4f7"/>', 140), 230
    if "sticker" in raw:
        yield _Piece(_label(0, 50, raw["sticker"].get("emoji", "🙂"), 48, "#000"), 60), 64
    for kind in ("document", "audio", "voice"):
        if kind in raw:
            name = shorten(raw[kind].get("file_name", kind.capitalize()), 14, 190, _BOLD)
            icon = '<circle cx="20" cy="22" r="19" fill="#3f86d8"/><path d="M14 13 h8 l5 5 v14 h-13 z" fill="#fff"/>'
            size = _label(48, 36, f"{max(1, raw[kind]['file_size'] // 1024)} KB", 12.5, "#8a8f95")
            svg = icon + _label(48, 19, name, 14, "#000", bold=True) + size
            yield _Piece(svg, 48), 52 + text_width(name, 14, _BOLD)


def _lines(lines: list[Line], top: float, wide: float) -> Iterable[str]:
    for index, line in enumerate(lines):
        y = top + index * _LEADING
        x = float(_PAD)
        if line.block == "pre":
            x += 8
            fill = f'width="{wide - 2 * _PAD:.1f}" height="{_LEADING + 0.5}" fill="#eef2f6"'
            yield f'<rect x="{_PAD}" y="{y + 1:.1f}" {fill}/>'
        if line.block != "text":
            x += 2 if line.block == "pre" else 10
            bar = "#9bb4cc" if line.block == "pre" else "#3f86d8"
            yield f'<rect x="{_PAD}" y="{y + 1:.1f}" width="3" height="{_LEADING + 0.5}" fill="{bar}"/>'
        spans = "".join(f"<tspan{_style(run.marks)}>{_clean(run.text)}</tspan>" for run in line.runs)
        fit = f' textLength="{line.width:.1f}" lengthAdjust="spacingAndGlyphs"' if line.width else ""
        yield f'<text x="{x:.1f}" y="{y + 15:.1f}" font-size="{_SIZE}" xml:space="preserve"{fit}>{spans}</text>'


def _style(marks: frozenset[str]) -> str:
    attributes: list[str] = []
    if marks & {"code", "pre"}:
        attributes.append(f'font-family="{_MONO}" font-size="13.5"')
    if marks & {"code"}:
        attributes.append('fill="#c7254e"')
    if "bold" in marks:
        attributes.append('font-weight="600"')
    if "italic" in marks:
        attributes.append('font-style="italic"')
    if marks & _LINKS:
        attributes.append('fill="#2f7fd1"')
    if "spoiler" in marks:
        attributes.append('fill="#b5bcc3"')
    lines = [name for mark, name in (("underline", "underline"), ("strikethrough", "line-through")) if mark in marks]
    if lines:
        attributes.append(f'text-decoration="{" ".join(lines)}"')
    return "".join(f" {attribute}" for attribute in attributes)


def _keyboard_width(message: Message, look: _Look) -> float:
    """Room for the widest row, as far as the bubble may grow."""
    rows = [sum(text_width(b["text"], 14, _BOLD) + 24 for b in row) for row in message.buttons]
    return min(max(rows, default=0.0), look.bubble_limit)


def _keyboard(message: Message, wide: float) -> _Piece:
    drawn: list[str] = []
    top = float(_BUTTON_GAP)
    for row in message.buttons:
        each = (wide - _BUTTON_GAP * (len(row) - 1)) / len(row)
        for index, button in enumerate(row):
            x = index * (each + _BUTTON_GAP)
            drawn.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{each:.1f}" height="{_BUTTON_HEIGHT}" rx="9"'
                ' fill="#2f4a5a" opacity=".55"/>'
            )
            label = shorten(button["text"], 14, each - 12, _BOLD)
            drawn.append(_label(x + each / 2, top + 22, label, 14, "#fff", "middle", bold=True))
        top += _BUTTON_HEIGHT + _BUTTON_GAP
    return _Piece("".join(drawn), top if drawn else 0)


def _chips(message: Message) -> _Piece:
    emoji = [reaction["emoji"] for reactions in message.reactions.values() for reaction in reactions]
    drawn = [
        f'<rect x="{6 + 40 * index}" y="-6" width="36" height="24" rx="12" fill="#dcecfb" stroke="#fff"/>'
        + _label(24 + 40 * index, 11, shown, 14, "#000", "middle")
        for index, shown in enumerate(emoji)
    ]
    return _Piece("".join(drawn), 18 if drawn else 0)


def _stamp(look: _Look, message: Message, *, mine: bool) -> tuple[str, float]:
    """The time, with ticks on one's own messages, drawn to the left of its place; and the width it needs."""
    time = datetime.fromtimestamp(message.raw["date"], look.zone).strftime("%H:%M")
    text = f"edited {time}" if "edit_date" in message.raw else time
    width = text_width(text, _SMALL) + 10
    if not mine:
        return _label(0, 0, text, _SMALL, "#8a8f95", "end"), width
    ticks = '<path d="M-16 -4 l3.5 3.5 l6 -7.5 M-8.5 -0.8 l.5 .3 l6 -7.5" fill="none" stroke="#4fae4e"'
    ticks += ' stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"/>'
    return _label(-19, 0, text, _SMALL, "#5aa55a", "end") + ticks, width + 19


def _label(x: float, y: float, text: str, size: float, fill: str, anchor: str = "start", *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}{weight}>{_clean(text)}</text>"


def _clean(text: str) -> str:
    return escape("".join(character for character in text if character >= " "), quote=False)
