"""Merk in a client with a face: what a person sees in an encrypted room, and what a tap does."""

from pathlib import Path

import pytest

from docs.pictures.matrix import tell
from tests.e2e.dashboard_stage import CHROMIUM
from tests.e2e.hydrogen_stage import MODULES, window_on_merk
from tests.e2e.synapse import Synapse

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""Left there to be looked at."""

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not there: apt-get install chromium"),
    pytest.mark.skipif(not MODULES.exists(), reason="Hydrogen is not there: scripts/setup e2e brings it where npm is"),
]


async def test_a_mail_is_written_and_kept_in_an_encrypted_room(synapse: Synapse, tmp_path: Path) -> None:
    """Formatting, legends, reactions to tap on, the closing question, and afterwards no draft any more."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    async with window_on_merk(synapse, tmp_path) as (merk, ada, window):
        await tell(merk.model, window, lambda moment: window.picture(SCREENSHOTS / f"hydrogen-{moment}.png"))
        answer = await window.sees("vaccination card")
        assert await answer.locator("li").count() == 3
        assert await answer.locator("strong").inner_text() == "vaccination card"
        (room,) = ada.rooms
        said = (await ada.view(room)).messages
        assert {message.kind for message in said if not message.is_redacted} == {"m.room.encrypted"}
        assert sum(message.is_redacted for message in said) == 3
        assert merk.model.violations == []
