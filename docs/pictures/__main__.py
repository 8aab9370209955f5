"""`make pictures`: draws the pictures of docs/pictures anew; those a browser shows only where it is there."""

import asyncio
import sys
import tempfile
from pathlib import Path

from docs.pictures.dashboard import draw_dashboard
from docs.pictures.draft import draw_draft
from docs.pictures.matrix import draw_matrix
from docs.pictures.script import rehearse
from docs.pictures.telegram import draw_telegram
from docs.pictures.terminal import draw_terminal
from tests.e2e.dashboard_stage import CHROMIUM
from tests.e2e.hydrogen_stage import MODULES
from tests.e2e.synapse import PYTHON
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
    if CHROMIUM is None:
        sys.stderr.write("Chromium is not there: the pictures of the dashboard and of Matrix stay as they are.\n")
        return
    await draw_dashboard(Path(tempfile.mkdtemp()), HERE)
    if not (PYTHON.exists() and MODULES.exists()):
        sys.stderr.write("Synapse or Hydrogen is not there (scripts/setup e2e): the pictures of Matrix stay.\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        await draw_matrix(Path(folder), HERE)


if __name__ == "__main__":
    asyncio.run(main())
