"""`python -m tests.fakes.messages_api --port N`: the stand-in as a process of its own (port 0 picks a free one)."""

import argparse
import asyncio
import contextlib

from tests.fakes.messages_api.server import MessagesApi


async def serve(api: MessagesApi) -> None:
    """Run until cancelled, having said where."""
    async with api:
        print(f"Messages API stand-in at {api.base_url}", flush=True)  # noqa: T201 - the caller reads the port
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="test", help="the API key that is accepted")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(MessagesApi(port=arguments.port, key=arguments.key)))


if __name__ == "__main__":
    main()
