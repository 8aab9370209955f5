"""/team: named teams, to share what was noticed with. Whoever may manage people makes and fills them; anybody leaves.

Rule: only in a private chat, for the list says who is here; whoever may not manage people sees their own teams alone.
"""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from handlers.remembering.remembered import Remembered
from handlers.types import Command, Notice, Reply, Request, UserError
from memory.instants import to_ms
from memory.scope import MANAGE_USERS
from memory.storage import members, people
from memory.storage.members import Team, TeamExists
from memory.types import User

_LONGEST_NAME = 60


def command(kept: Remembered) -> Command:
    async def handle(request: Request) -> Reply:
        if not request.audience.is_private:
            raise UserError(request.say("team-private"))
        verb, _, words = request.args.strip().partition(" ")
        words = " ".join(words.split())
        async with kept.database.write() as connection:
            match verb.lower():
                case "" | "list":
                    told = await _list(connection, request)
                case "create":
                    told = await _create(connection, request, words, to_ms(kept.clock.now()))
                case "add":
                    told = await _add(connection, request, words)
                case "remove":
                    told = await _remove(connection, request, words)
                case "leave":
                    told = await _leave(connection, request, words)
                case _:
                    raise UserError(request.say("team-how"))
        yield Notice(told)

    return Command("team", handle)


async def _list(connection: AsyncConnection, request: Request) -> str:
    is_manager = await members.has(connection, request.user, MANAGE_USERS)
    teams = await members.list_teams(connection, None if is_manager else request.user.id)
    how = request.say("team-how") if is_manager else request.say("team-how-leave")
    if not teams:
        return request.say("team-none") + (f"\n\n{how}" if is_manager else "")
    lines = [f"{team.name}: {', '.join(await _names(connection, team.members))}" for team in teams]
    return "\n".join([request.say("team-list"), *lines, "", how])


async def _names(connection: AsyncConnection, user_ids: Sequence[int]) -> list[str]:
    found = [await people.by_id(connection, each) for each in user_ids]
    return [user.name for user in found if user]


async def _create(connection: AsyncConnection, request: Request, name: str, now: int) -> str:
    await _check(connection, request)
    if not name or len(name) > _LONGEST_NAME:
        raise UserError(request.say("team-how"))
    try:
        team = await members.create_team(connection, name, request.user.id, now)
    except TeamExists as error:
        raise UserError(request.say("team-exists", name=name)) from error
    return request.say("team-created", name=team.name)


async def _add(connection: AsyncConnection, request: Request, words: str) -> str:
    await _check(connection, request)
    team, user = await _team_and_person(connection, request, words)
    await members.add_to_team(connection, team.id, user.id)
    return request.say("team-added", name=team.name, who=user.name)


async def _remove(connection: AsyncConnection, request: Request, words: str) -> str:
    await _check(connection, request)
    team, user = await _team_and_person(connection, request, words)
    await members.remove_from_team(connection, team.id, user.id)
    return request.say("team-removed", name=team.name, who=user.name)


async def _leave(connection: AsyncConnection, request: Request, name: str) -> str:
    team = await members.team_by_name(connection, name)
    if team is None or request.user.id not in team.members:
        raise UserError(request.say("team-not-in", name=name))
    await members.remove_from_team(connection, team.id, request.user.id)
    return request.say("team-left", name=team.name)


async def _check(connection: AsyncConnection, request: Request) -> None:
    if not await members.has(connection, request.user, MANAGE_USERS):
        raise UserError(request.say("team-grant"))


async def _team_and_person(connection: AsyncConnection, request: Request, words: str) -> tuple[Team, User]:
    """The longest name of a team that the words begin with, and the person in the rest of them."""
    teams = [
        team
        for team in await members.list_teams(connection)
        if f"{words} ".casefold().startswith(f"{team.name} ".casefold())
    ]
    if not teams:
        raise UserError(request.say("team-unknown"))
    team = max(teams, key=lambda each: len(each.name))
    whom = words[len(team.name) :].strip()
    if not whom:
        raise UserError(request.say("team-how"))
    found = await people.named(connection, whom)
    if len(found) != 1:
        raise UserError(request.say("team-several" if found else "team-nobody", who=whom))
    return team, found[0]
