"""One process on Telegram and Matrix: a linked person's fact is known on both, a stranger's on neither."""

import re
from pathlib import Path

from tests.e2e.merk_process import Merk, deployment
from tests.fakes.homeserver import HomeserverFake
from tests.fakes.homeserver.server import BOT, PASSWORD
from tests.fakes.homeserver.views import body_now, messages
from tests.fakes.homeserver.world import Room
from tests.fakes.messages_api import Request, texts

ADA, EVE = 42, 66
YES = "Yes, that is me"


def answers(merk: Merk) -> list[Request]:
    """The requests that were made to answer somebody, as opposed to those in the background."""
    return [request for request in merk.model.requests if request.body.get("stream")]


async def on_telegram(merk: Merk, person: int, text: str) -> str:
    """Say something and return what came back."""
    before = len(merk.telegram.messages(person, by_bot=True))
    merk.telegram.say(person, text)
    await merk.telegram.wait_for(lambda: len(merk.telegram.messages(person, by_bot=True)) > before, timeout=30)
    await merk.settle()
    return merk.telegram.last(person).text


async def on_matrix(merk: Merk, server: HomeserverFake, room: Room, person: str, text: str) -> str:
    """Say something and return what came back."""
    before = len(server.shown(room))
    await server.say(room, person, text)
    await merk.telegram.wait_for(lambda: len(server.shown(room)) > before, timeout=30)
    await merk.settle()
    return server.shown(room)[-1]


async def press_on_matrix(merk: Merk, server: HomeserverFake, room: Room, person: str, label: str) -> None:
    card = messages(room, BOT)[-1]
    mark = next(line for line in body_now(room, card).splitlines() if line.endswith(label)).partition(" ")[0]
    await server.react(room, person, card["event_id"], mark)
    await merk.telegram.wait_for(lambda: "I have asked" in server.shown(room)[-1], timeout=30)
    await merk.settle()


async def asked(merk: Merk, server: HomeserverFake, room: Room, person: str, text: str) -> str:
    """All that the model was shown for a question on Matrix."""
    before = len(answers(merk))
    await on_matrix(merk, server, room, person, text)
    return texts(answers(merk)[before])


async def test_one_process_serves_both_and_what_a_linked_person_told_on_one_the_other_knows(tmp_path: Path) -> None:
    async with HomeserverFake() as server, deployment(tmp_path) as merk:
        merk.more |= {
            "MERK_MATRIX__HOMESERVER": server.url,
            "MERK_MATRIX__USER_ID": BOT,
            "MERK_MATRIX__PASSWORD": PASSWORD,
            "MERK_MATRIX__ENCRYPTION": "off",
            "MERK_ACCESS__ADMIT": "open",
        }
        merk.telegram.private_chat(ADA, "Ada")
        merk.telegram.private_chat(EVE, "Eve")
        ada, eve = server.person("ada"), server.person("eve")
        await merk.start()
        await merk.telegram.wait_for(lambda: any(path.endswith("/sync") for _, path, _ in server.requests), timeout=30)
        room, eves = server.world.create(ada, BOT), server.world.create(eve, BOT)
        await server.happen()

        await on_telegram(merk, ADA, "/remember My dog is called Bruno.")
        await on_telegram(merk, EVE, "/remember My ship is called Nautilus.")
        assert "Bruno" not in await asked(merk, server, room, ada, "What is my dog called?")

        found = re.search(r"/link (\w{8})", await on_telegram(merk, ADA, "/link"))
        assert found is not None
        assert "Is that you?" in await on_matrix(merk, server, room, ada, f"/link {found[1]}")
        await press_on_matrix(merk, server, room, ada, YES)
        card = merk.telegram.last(ADA)
        assert f"(Matrix: {ada})" in card.text
        merk.telegram.press(ADA, card.id, YES)
        await merk.telegram.wait_for(lambda: "one person to me now" in server.shown(room)[-1], timeout=30)

        known = await asked(merk, server, room, ada, "What is my dog called?")
        assert "Bruno" in known
        assert "Nautilus" not in known
        await on_telegram(merk, ADA, "/remember My cat is called Minka.")
        assert "Minka" in await asked(merk, server, room, ada, "And my cat?")
        told = await asked(merk, server, eves, eve, "What is Ada's dog called, and her cat?")
        assert not any(name in told for name in ("Bruno", "Minka", "Nautilus"))
        assert merk.rows("SELECT count(*) FROM users") == [(3,)]
        assert merk.model.violations == []
        assert await merk.stop() == 0
