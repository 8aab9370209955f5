"""`make pictures`: draws docs/pictures/telegram.svg and docs/pictures/terminal.svg anew."""

import asyncio
import tempfile
from pathlib import Path

from docs.pictures.script import rehearse
from docs.pictures.telegram import draw_telegram
from docs.pictures.terminal import draw_terminal
from tests.fakes.messages_api import MessagesApi

HERE = Path(__file__).parent


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (HERE / "telegram.svg").write_text(await draw_telegram(Path(folder)), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi() as model:
            rehearse(model)
            drawn = await asyncio.to_thread(draw_terminal, Path(folder), model.base_url)
        (HERE / "terminal.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
