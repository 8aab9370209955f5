"""A part is down: the answer still comes, `merk doctor` names it, and everything catches up after."""

import asyncio
import shutil
from pathlib import Path

from tests.e2e.merk_process import Merk, deployment
from tests.fakes.messages_api import texts
from tests.fakes.ollama_api import OllamaApi

ADA = 42


async def talk(merk: Merk, text: str) -> None:
    merk.telegram.say(ADA, text)
    await merk.telegram.wait_text(ADA, f"Echo: {text}", timeout=30)


async def indexed(merk: Merk, count: int, seconds: float = 60) -> None:
    await merk.telegram.wait_for(
        lambda: len(merk.rows("SELECT 1 FROM summaries WHERE indexed_as IS NOT NULL")) >= count, timeout=seconds
    )


async def doctor(merk: Merk) -> str:
    _status, said = await merk.run("doctor")
    return said


async def test_with_the_index_deleted_answers_come_and_it_is_built_anew(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        await merk.start()
        await talk(merk, "We are planning a summer trip to Riga by ferry.")
        await indexed(merk, 1)
        shutil.rmtree(merk.data_dir / "chroma")
        await talk(merk, "And what about the hotel?")
        await merk.stop()
        assert "WRONG index" in await doctor(merk)
        await merk.start()
        merk.telegram.say(ADA, "/newchat")
        await merk.telegram.wait_text(ADA, "A new chat begins", timeout=20)

        async def finds_it() -> bool:
            await talk(merk, "When does our holiday to Latvia begin?")
            return "Riga" in texts([request for request in merk.model.requests if request.body.get("stream")][-1])

        async with asyncio.timeout(40):
            while not await finds_it():  # noqa: ASYNC110 - the index is built in another process
                await asyncio.sleep(1)


async def test_with_the_embedder_down_answers_come_and_vectors_catch_up(tmp_path: Path) -> None:
    async with OllamaApi() as ollama:
        more = {"MERK_EMBEDDING__PROVIDER": "ollama", "MERK_EMBEDDING__URL": ollama.host}
        async with deployment(tmp_path, more=more) as merk:
            merk.telegram.private_chat(ADA, "Ada")
            await merk.start()
            await talk(merk, "We are planning a summer trip to Riga by ferry.")
            await indexed(merk, 1)
            await ollama.down()
            merk.telegram.say(ADA, "/newchat")
            await merk.telegram.wait_text(ADA, "A new chat begins", timeout=20)
            await talk(merk, "Is the ferry to Riga booked?")
            asked = texts([request for request in merk.model.requests if request.body.get("stream")][-1])
            assert "not fully available" in asked
            assert "summer trip" in asked  # found by its words
            assert "WRONG embedder" in await doctor(merk)
            await merk.telegram.wait_for(lambda: len(merk.rows("SELECT 1 FROM summaries")) >= 2, timeout=40)
            await ollama.up()
            await talk(merk, "Thank you.")
            await indexed(merk, 2)


async def test_with_summaries_failing_answers_come_and_the_work_is_done_later(tmp_path: Path) -> None:
    async with deployment(tmp_path) as merk:
        merk.telegram.private_chat(ADA, "Ada")
        failing = merk.model.on(background=True).fault("server_error", times=None)
        await merk.start()
        await talk(merk, "We are planning a summer trip to Riga by ferry.")
        await merk.telegram.wait_for(lambda: merk.rows("SELECT 1 FROM learning WHERE attempts > 0"), timeout=40)
        said = await doctor(merk)
        assert "WRONG index" in said
        assert "could not be summarised" in said
        await talk(merk, "Still there?")
        del failing
        merk.model.clear()
        await indexed(merk, 1, seconds=110)


async def test_with_ollama_stopped_the_person_is_told_and_a_tap_answers_later(tmp_path: Path) -> None:
    async with OllamaApi() as ollama:
        more = {"MERK_MODEL__PROVIDER": "ollama", "MERK_MODEL__OLLAMA__HOST": ollama.host}
        async with deployment(tmp_path, more=more) as merk:
            merk.telegram.private_chat(ADA, "Ada")
            await merk.start()
            await talk(merk, "hello")
            await ollama.down()
            merk.telegram.say(ADA, "are you there?")
            card = await merk.telegram.wait_text(ADA, "cannot reach the model", timeout=40)
            assert "WRONG model" in await doctor(merk)
            merk.telegram.say(ADA, "/remember I like tea")
            await merk.telegram.wait_text(ADA, "Saved: I like tea", timeout=10)
            await ollama.up()
            merk.telegram.press(ADA, card.id, "Try again")
            await merk.telegram.wait_text(ADA, "Echo: (.|\n)*are you there", timeout=30)
