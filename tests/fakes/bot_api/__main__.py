"""The emulator as a process of its own: `python -m tests.fakes.bot_api --port N [--state FILE]`.

One rule: the first line on standard output is the base URL, so that a caller can use port 0.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from .api import DEFAULT_TOKEN, BotApi


async def serve(port: int, token: str, state: Path | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with BotApi(port=port, token=token, state=state) as api:
        sys.stdout.write(f"{api.base_url}\n")
        sys.stdout.flush()
        await stopped.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.bot_api", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port")
    parser.add_argument("--token", default=DEFAULT_TOKEN)
    parser.add_argument("--state", type=Path, help="a file that keeps the emulator's state across restarts")
    given = parser.parse_args()
    asyncio.run(serve(given.port, given.token, given.state))


if __name__ == "__main__":
    main()
