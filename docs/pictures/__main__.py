"""`make pictures`: draws telegram.svg, draft.svg and terminal.svg of docs/pictures anew."""

import asyncio
import tempfile
from pathlib import Path

from docs.pictures.draft import draw_draft
from docs.pictures.script import rehearse
from docs.pictures.telegram import draw_telegram
from docs.pictures.terminal import draw_terminal
from tests.fakes.messages_api import MessagesApi

HERE = Path(__file__).parent


async def main() -> None:
    for name, draw in (("telegram", draw_telegram), ("draft", draw_draft)):
        with tempfile.TemporaryDirectory() as folder:
            (HERE / f"{name}.svg").write_text(await draw(Path(folder)), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi() as model:
            rehearse(model)
            drawn = await asyncio.to_thread(draw_terminal, Path(folder), model.base_url)
        (HERE / "terminal.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
