"""Somebody deletes their message, or asks Merk into a room: what a person sees of it, and what they do not."""

from pathlib import Path

from memory.language.text import MARK
from memory.storage.database import Database
from tests.fakes.house import house
from tests.fakes.model import Says, call


async def test_a_deleted_message_is_silent_and_not_sent_to_the_model_again(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as home:
        await home.say("The vet of Zwirbelwitz called.", ref="m1")
        assert await home.say("", taken_back=True, ref="m1") == []
        await home.say("And now?")
        assert "Zwirbelwitz" not in str(home.model.requests[-1])
        assert MARK in str(home.model.requests[-1])


async def test_what_was_kept_of_a_deleted_message_is_named(database: Database, tmp_path: Path) -> None:
    script = (call("remember_fact", fact="My dog is called Bruno."), Says("Noted."))
    async with house(database, tmp_path, *script) as home:
        await home.say("Remember that my dog is called Bruno.", ref="m1")
        (told,) = await home.say("", taken_back=True, ref="m1")
        assert told.startswith("You deleted a message. What I had kept of it is gone, too.")
        assert "1 fact" in told


async def test_nobody_takes_back_the_message_of_another(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path) as home:
        await home.say("The vet of Zwirbelwitz called.", ref="m1", chat="g", group=True)
        for who in ("7", "8"):
            await home.say("", taken_back=True, ref="m1", chat="g", group=True, **{"from": who})
        await home.say("And now?", chat="g", group=True)
        assert "Zwirbelwitz" in str(home.model.requests[-1])


async def test_a_strangers_invitation_asks_the_owner_and_tells_the_stranger_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with house(database, tmp_path, owners=["fake:42"], admit="pairing") as home:
        await home.say("hello")
        (asked,) = await home.say("", invited=True, chat="room", name="Eve", **{"from": "66"})
        assert "Eve" in asked
        assert home.labels() == ["Let in", "Not now"]
        assert await home.say("", invited=True, chat="other", name="Eve", **{"from": "66"}) == []
        shown = await home.press("Let in")
        assert any("Hello Eve" in each for each in shown)


async def test_where_nobody_is_asked_a_strangers_invitation_is_not_answered(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, owners=["fake:42"], admit="allowlist") as home:
        await home.say("hello")
        assert await home.say("", invited=True, chat="room", name="Eve", **{"from": "66"}) == []
