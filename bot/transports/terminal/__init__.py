"""The terminal as a transport: a pleasant prompt for a person, one line a message for a script."""

from bot.transports.terminal.transport import TerminalTransport

__all__ = ["TerminalTransport"]
