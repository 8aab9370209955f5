"""Messages as evidence: in step with the log, within their owners, gone with their words."""

from collections.abc import Sequence
from datetime import date

import pytest
import sqlalchemy as sa

from memory.language.words import content_words
from memory.recall.evidence import Evidence
from memory.recall.finder import Finder, Ranked, asks
from memory.recall.shelf import Posting, Shelf
from memory.scope import Audience
from memory.storage import log
from tests.unit.memory.world import World

TODAY = date(2026, 3, 1)
SMALL_TALK = """
hi|hello|hey|hey!|hi there|hello!!|good morning|good evening|good night|morning!|evening|ok|okay|k|kk|yes|yep|yeah|no|
nope|sure|all right|alright|thanks|thank you|thank you so much|thx|ty|many thanks|cheers|great|perfect|nice|cool|fine|
awesome|super|bye|goodbye|see you|see you later|see you soon|lol|haha|hmm|wow|oops|sorry|welcome|👍|❤️|?|...|
hallo|hi du|moin|servus|guten Morgen|guten Tag|guten Abend|gute Nacht|danke|danke dir|danke schön|vielen Dank|
dankeschön|ja|nein|jo|nö|klar|genau|okay danke|alles klar|super, danke|prima|toll|schön|tschüss|ciao|bis später|
bis bald|gern|gerne|entschuldigung|grüß Gott|na|
привет|здравствуй|здравствуйте|добрый день|доброе утро|добрый вечер|спокойной ночи|спасибо|спасибо большое|
большое спасибо|благодарю|пожалуйста|пока|до свидания|увидимся|ок|окей|да|нет|ага|угу|ладно|хорошо|отлично|супер|
класс|круто|понял|поняла|ясно|понятно|извини|извините|прости|ха-ха
"""


async def _ranked(world: World, audience: Audience, text: str) -> Ranked:
    evidence = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
    await evidence.catch_up()
    finder = Finder(evidence)
    question, found = await finder.words(audience.visible, text, TODAY)
    vector = await world.embedder.embed_query(text)
    return await finder.rank(question, found, vector, asker=audience.user_id)


async def _best(world: World, audience: Audience, text: str) -> int:
    ranked = await _ranked(world, audience, text)
    return int(ranked.shelf.ids[ranked.best(1)[0]])


def vectors(shelf: Shelf) -> int:
    return sum(len(volume) for volume in shelf.volumes)


async def _terms(world: World) -> set[str]:
    async with world.database.read() as connection:
        rows = await connection.execute(sa.text("SELECT DISTINCT term FROM message_terms"))
        return {str(row[0]) for row in rows.all()}


async def test_a_message_is_found_by_its_words_and_by_what_stands_around_it(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "Which colour?")
    await world.say(session, "Blue, I think.", ada)
    answer = (await world.messages(session))[-1].id
    await world.talk(ada, "We fly to Lisbon in May.", "Nice.")
    ranked = await _ranked(world, ada, "What about the fence?")
    order = [int(each) for each in ranked.shelf.ids[ranked.best(len(ranked.shelf))]]
    assert order[0] == (await world.messages(session))[0].id
    assert order.index(answer) < 3


async def test_p28_nobody_elses_words_are_looked_at(world: World) -> None:
    ada, bob = await world.person("ada"), await world.person("bob")
    await world.talk(ada, "Zwirbelwitz is my dog.", "OK")
    await world.talk(bob, "Zwirbelwitz is a cat.", "OK")
    ranked = await _ranked(world, ada, "Who is Zwirbelwitz?")
    assert {int(each) for each in ranked.shelf.speakers} <= {0, ada.user_id}
    assert len(ranked.shelf) == 2
    evidence = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
    with pytest.raises(ValueError, match="P28"):
        await Finder(evidence).words([], "Who?", TODAY)


async def test_an_apostrophe_does_not_take_a_word_out_of_its_owner(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "Meet me at 5 o'clock at O'Reilly's.", "OK")
    await _ranked(world, ada, "When?")
    assert all(term.startswith(f"{ada.owner}_") for term in await _terms(world))


async def test_c7_an_edited_message_is_found_by_its_new_words_only(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    message = (await world.messages(session))[0]
    await _ranked(world, ada, "fence")
    async with world.database.write() as connection:
        await log.amend(connection, message.id, "The gate needs paint.")
    assert f"{ada.owner}_fenc" not in await _terms(world)
    assert await _best(world, ada, "gate") == message.id
    assert f"{ada.owner}_gate" in await _terms(world)


async def test_what_is_kept_from_the_model_is_no_evidence(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    message = (await world.messages(session))[0]
    await _ranked(world, ada, "fence")
    async with world.database.write() as connection:
        await log.withhold(connection, message.id)
    ranked = await _ranked(world, ada, "fence")
    assert message.id not in ranked.shelf.ids


async def test_what_is_held_in_memory_follows_the_log(world: World) -> None:
    """One searcher all along: messages that come, change and go between two questions."""
    ada = await world.person("ada")
    evidence = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
    finder = Finder(evidence)
    first = await world.talk(ada, "The fence needs paint.", "OK")
    await evidence.catch_up()
    _, found = await finder.words(ada.visible, "fence", TODAY)
    assert len(found.shelf) == 2
    await world.talk(ada, "The gate needs paint.", "Sure thing, the gate.")
    await evidence.catch_up()
    _, found = await finder.words(ada.visible, "gate", TODAY)
    assert (len(found.shelf), vectors(found.shelf)) == (4, 4)
    await world.memory.forget_session(ada, first.id)
    _, found = await finder.words(ada.visible, "fence", TODAY)
    assert len(found.shelf) == 2
    assert found.hits == [[]]


async def test_what_is_remembered_of_a_word_follows_the_log(world: World) -> None:
    """One searcher that is asked for the same words again finds what one that is asked for the first time finds."""
    ada = await world.person("ada")
    held = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World

    async def stand() -> None:
        await held.catch_up()
        fresh = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
        for text in ("fence", "fence gate", "Where is the unicorn?"):
            _, ours = await Finder(held).words(ada.visible, text, TODAY)
            _, theirs = await Finder(fresh).words(ada.visible, text, TODAY)
            assert [_counts(ours.shelf, forms) for forms in ours.hits] == [
                _counts(theirs.shelf, forms) for forms in theirs.hits
            ]

    await stand()
    first = await world.talk(ada, "The fence needs paint, the whole fence.", "OK")
    await stand()
    second = await world.talk(ada, "The gate needs paint.", "Gate or fence?")
    await stand()
    await world.say(first, "The unicorn stands beside the fence.", ada)
    await stand()
    await world.memory.forget_session(ada, second.id)
    await stand()
    async with world.database.write() as connection:
        await log.amend(connection, (await world.messages(first))[0].id, "The gate needs paint.")
    await stand()


def _counts(shelf: Shelf, forms: Sequence[Posting]) -> dict[int, float]:
    """How often a word stands in each message."""
    found: dict[int, float] = {}
    for posting in forms:
        for message, count in zip(shelf.ids[shelf.by_id[posting.whose]].tolist(), posting.counts.tolist(), strict=True):
            found[message] = max(found.get(message, 0.0), count)
    return found


async def test_a_long_message_has_several_vectors(world: World) -> None:
    ada = await world.person("ada")
    text = " ".join(f"Sentence number {number} is about the garden and its many beds." for number in range(30))
    await world.talk(ada, text, "OK")
    ranked = await _ranked(world, ada, "garden beds")
    assert 1 < vectors(ranked.shelf) <= 7


async def test_what_was_replaced_stands_below_what_replaced_it(world: World) -> None:
    ada = await world.person("ada")
    await world.talk(ada, "I live in Berlin.", "OK")
    await world.talk(ada, "I live in Munich.", "OK")
    evidence = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
    await evidence.catch_up()
    finder = Finder(evidence)
    question, found = await finder.words(ada.visible, "Where do I live?", TODAY)
    vector = await world.embedder.embed_query("Where do I live?")
    old, new = found.shelf.ids[found.shelf.is_person]
    for outdated, best in ((int(old), int(new)), (int(new), int(old))):
        ranked = await finder.rank(question, found, vector, asker=ada.user_id, replaced={outdated})
        assert ranked.shelf.ids[ranked.best(1)[0]] == best


async def test_everything_can_be_made_anew(world: World) -> None:
    ada = await world.person("ada")
    session = await world.talk(ada, "The fence needs paint.", "OK")
    evidence = Evidence(world.database, world.embedder)  # pyright: ignore[reportArgumentType] - as in World
    await evidence.catch_up()
    before = await _terms(world)
    assert await evidence.rebuild() == 2
    assert await _terms(world) == before
    assert await _best(world, ada, "fence") == (await world.messages(session))[0].id


def test_p12_small_talk_asks_nothing_of_memory() -> None:
    texts = [text.strip() for text in SMALL_TALK.replace("\n", "").split("|") if text.strip()]
    assert len(texts) >= 100
    assert [(text, content_words(text)) for text in texts if asks(text)] == []
