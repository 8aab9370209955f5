"""A strict emulator of the Telegram Bot API for Merk's tests, reached by the real library through `base_url`.

One rule: what the real server refuses, this one refuses in the same words.
"""

from .api import DEFAULT_TOKEN, BotApi
from .errors import BotApiError
from .faults import Fault, FaultKind
from .render import render_svg
from .world import Call, Draft, Message, Press, Violation

__all__ = [
    "DEFAULT_TOKEN",
    "BotApi",
    "BotApiError",
    "Call",
    "Draft",
    "Fault",
    "FaultKind",
    "Message",
    "Press",
    "Violation",
    "render_svg",
]
