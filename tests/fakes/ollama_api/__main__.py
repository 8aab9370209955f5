"""`python -m tests.fakes.ollama_api --port N`: the stand-in as a process of its own (port 0 picks a free one)."""

import argparse
import asyncio
import contextlib

from tests.fakes.ollama_api.server import OllamaApi


async def serve(api: OllamaApi) -> None:
    """Run until cancelled, having said where."""
    async with api:
        print(f"Ollama stand-in at {api.host}", flush=True)  # noqa: T201 - the caller reads the port
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(OllamaApi(port=parser.parse_args().port)))


if __name__ == "__main__":
    main()
