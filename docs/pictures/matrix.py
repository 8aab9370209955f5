"""Draws a mail written together on Matrix, as Hydrogen shows the encrypted room in a browser."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from docs.pictures.script import rehearse, rehearse_mail
from tests.e2e.hydrogen_stage import Hydrogen, window_on_merk
from tests.e2e.synapse import Synapse
from tests.fakes.messages_api import MessagesApi

_SHOTS = {"asked": "matrix-asked", "closed": "matrix-closed"}


async def draw_matrix(folder: Path, target: Path) -> None:
    """Write matrix-*.png into a folder."""
    with Synapse.running(folder / "synapse") as synapse:
        async with window_on_merk(synapse, folder) as (merk, _, window):

            async def shoot(moment: str) -> None:
                if name := _SHOTS.get(moment):
                    await window.picture(target / f"{name}.png")

            await tell(merk.model, window, shoot)


async def tell(model: MessagesApi, window: Hydrogen, shoot: Callable[[str], Awaitable[None]]) -> None:
    """Live the story in the browser; `shoot` is called with the name of each moment worth a picture."""
    rehearse(model)
    rehearse_mail(model)
    await window.say("Please remember that my dog is called Bruno.")
    await window.offers("Saved: My dog is called Bruno", "1️⃣", "2️⃣")
    await shoot("remembered")
    await window.say("What shall I pack for two days?")
    await window.sees("vaccination card")
    await window.say("Write a mail to my landlord: the heating is cold.")
    await window.offers("Draft 1", "1️⃣", "2️⃣")
    await shoot("drafted")
    await window.say("Say since when, it was Monday, and ask for a date.")
    await window.offers("Draft 2", "1️⃣", "2️⃣", "3️⃣")
    await window.tap("Draft 2", "1️⃣")
    await window.offers("what you wanted", "👍", "👎")
    await shoot("asked")
    await window.tap("what you wanted", "👍")
    await window.sees("Kept:")
    await window.misses("Draft 1", "Draft 2", "what you wanted")
    await shoot("closed")
