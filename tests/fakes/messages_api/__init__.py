"""A scripted stand-in for the Messages API, as strict as the real one where its rules are known."""

from tests.fakes.messages_api.faults import Fault
from tests.fakes.messages_api.rules import Match, Reply, Rule
from tests.fakes.messages_api.scene import Request, conversation, newest_user, system_text, texts, tool_result
from tests.fakes.messages_api.server import MessagesApi, Violation

__all__ = [
    "Fault",
    "Match",
    "MessagesApi",
    "Reply",
    "Request",
    "Rule",
    "Violation",
    "conversation",
    "newest_user",
    "system_text",
    "texts",
    "tool_result",
]
