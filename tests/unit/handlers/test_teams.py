"""/team: who may make teams and fill them, who sees them, and what is shared with one."""

from pathlib import Path
from typing import Any

from memory.storage import people
from memory.storage.database import Database
from tests.fakes.house import House, house

BOB: dict[str, Any] = {"from": "7", "chat": "7"}
EVE: dict[str, Any] = {"from": "8", "chat": "8"}
GROUP: dict[str, Any] = {"chat": "-5", "group": True}
OWNED: dict[str, Any] = {"owners": ["fake:42"]}


async def with_team(opened: House) -> None:
    await opened.say("hi", **BOB)
    await opened.say("hi", **EVE)
    await opened.say("/team create Red Sox")


async def test_an_owner_makes_a_team_and_fills_it(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNED) as opened:
        await with_team(opened)
        assert "Person 7 is in Red Sox now" in (await opened.say("/team add red sox person 7"))[0]
        assert "Person 8 is in Red Sox now" in (await opened.say("/team add Red Sox fake:8"))[0]
        assert "Red Sox: Person 7, Person 8, Person 42" in _sorted((await opened.say("/team"))[0])
        assert "sees nothing of it" in (await opened.say("/team remove Red Sox Person 8"))[0]
        assert "already" in (await opened.say("/team create RED SOX"))[0]


def _sorted(told: str) -> str:
    """The members of each team by the number in their name."""
    lines = told.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("Red Sox: "):
            names = line.removeprefix("Red Sox: ").split(", ")
            lines[at] = "Red Sox: " + ", ".join(sorted(names, key=lambda each: int(each.split()[1])))
    return "\n".join(lines)


async def test_who_may_not_manage_people_sees_their_own_teams_and_can_leave(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNED) as opened:
        await with_team(opened)
        assert await opened.say("/team", **BOB) == ["You are in no team."]
        assert "manage:users" in (await opened.say("/team create Blue", **BOB))[0]
        assert "manage:users" in (await opened.say("/team add Red Sox Person 7", **BOB))[0]
        await opened.say("/team add Red Sox Person 7")
        assert "Red Sox" in (await opened.say("/team", **BOB))[0]
        assert "not in Red Sox any more" in (await opened.say("/team leave red sox", **BOB))[0]
        assert await opened.say("/team", **BOB) == ["You are in no team."]


async def test_what_does_not_fit_is_said(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNED) as opened:
        await with_team(opened)
        assert "no such team" in (await opened.say("/team add Blue Person 7"))[0]
        assert "nobody called Zoe" in (await opened.say("/team add Red Sox Zoe"))[0]
        assert "/team create NAME" in (await opened.say("/team dance"))[0]
        assert "private chat" in (await opened.say("/team", **GROUP))[0]
        async with database.write() as connection:
            await people.meet(connection, 1, "Person 8", "en")
        assert "Several people" in (await opened.say("/team add Red Sox Person 8"))[0]


async def test_a_team_sees_what_is_shared_with_it_until_one_leaves(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNED) as opened:
        await with_team(opened)
        await opened.say("/team add Red Sox Person 7")
        await opened.say("The key is under the mat.", ref="r1")
        await opened.say("/keep", reply_to="r1")
        await opened.press("Who sees it")
        assert "More people would see this: Red Sox" in (await opened.press("Red Sox"))[0]
        await opened.press("Yes, share it")
        assert "under the mat" in (await opened.say("/memory", **BOB))[0]
        assert "under the mat" not in (await opened.say("/memory", **EVE))[0]
        await opened.say("/team leave Red Sox", **BOB)
        assert "under the mat" not in (await opened.say("/memory", **BOB))[0]


async def test_in_a_group_only_teams_of_everybody_there_are_offered(database: Database, tmp_path: Path) -> None:
    async with house(database, tmp_path, **OWNED) as opened:
        await with_team(opened)
        await opened.say("hello", **{**GROUP, "from": "7"})
        await opened.say("The party is in the garden.", ref="r1", **GROUP)
        await opened.say("/keep", reply_to="r1", **GROUP)
        await opened.press("Who sees it", **GROUP)
        assert "Red Sox" not in opened.labels()
        await opened.say("/team add Red Sox Person 7")
        await opened.say("/keep", reply_to="r1", **GROUP)
        await opened.press("Who sees it", **GROUP)
        assert "Red Sox" in opened.labels()
