"""What bears on a question: what it calls by its own name is found, however much else is said."""

from memory.kinds.observations.keeping import Wish, keep
from memory.kinds.observations.observation import Content, Trigger, Type
from memory.scope import Audience
from tests.unit.memory.world import World

LONG = (
    "I have thought about this for a while and honestly I am not sure any more what is right, since the colleagues had "
    "some objections during the last review: how shall we handle rolling updates on {name} when the page goes live?"
)


async def _noticed(world: World, audience: Audience, text: str, *concepts: str, aliases: tuple[str, ...] = ()) -> None:
    content = Content(Type.CONCEPT, text, text, concepts=concepts, aliases=aliases)
    wish = Wish(content, audience.owner, audience.user_id, Trigger.MANUAL, quote=text)
    async with world.database.write() as connection:
        await keep(connection, wish, world.now)


async def _found(world: World, audience: Audience, question: str) -> list[str]:
    return [each.text for each in (await world.memory.recall(audience, 0, question)).observations]


async def test_what_a_long_question_calls_by_its_name_or_by_an_alias_is_found(world: World) -> None:
    ada = await world.person("ada")
    await _noticed(
        world, ada, "Services go to a cluster of three machines.", "Falke", aliases=("Projekt Falke", "Сокол")
    )
    await _noticed(world, ada, "Invoices are due on the tenth of a month.", "Reiher")
    await world.memory.open()
    for name in ("Falke", "Projekt Falke", "FALKE", "Сокол"):
        assert await _found(world, ada, LONG.format(name=name)) == ["Services go to a cluster of three machines."]


async def test_half_of_a_name_is_no_name(world: World) -> None:
    ada = await world.person("ada")
    await _noticed(world, ada, "Services go to a cluster of three machines.", "Blue Heron Station")
    await world.memory.open()
    assert await _found(world, ada, LONG.format(name="the blue one")) == []
