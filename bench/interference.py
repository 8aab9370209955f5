"""Non-interference: in random towns nobody is shown a canary of whom they may not see all sources.

A sequence is messages, facts, joins, leaves, changes of team and scope, forgets and, at its end, somebody's questions;
a life is some people, groups and a team with a few such sequences one after the other, so that much is there to leak.
Every text carries a canary of its own; an oracle that knows only what happened says who may see it. What is looked at:
recall, the model request made of it, lists, search, digests, exports, and what the extractor itself is shown.
"""

import asyncio
import json
import random
import re
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from sqlalchemy.ext.asyncio import AsyncConnection

from handlers import prompt
from memory.instants import to_ms
from memory.linking import LinkRefused
from memory.memory import Memory
from memory.ports import Embedder, Json, ModelRequest, ModelTraits, Purpose
from memory.scope import PUBLIC, VIEW_SENSITIVE, Audience, group_key, own_key, sensitive_key, team_key
from memory.storage import log, members, people, sessions
from memory.storage.database import Database
from memory.storage.migrate import migrate
from memory.types import MemorySettings, Message, ObservationRefused, Origin, Recall, Role, Session, Utterance
from tests.fakes.clock import FrozenClock
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.fakes.model import TRAITS, ScriptedModel
from tests.fakes.noticing import noticed

PEOPLE, GROUPS, TEAMS = 3, 2, 1
OPERATIONS = (
    *("say", "keep", "keep", "keep", "keep", "keep", "fact", "fact", "join", "join", "leave", "leave", "team", "team"),
    *("stranger", "widen", "widen", "narrow", "say", "keep", "keep", "keep", "keep", "keep", "fact", "fact", "join"),
    *(
        "join",
        "leave",
        "leave",
        "team",
        "team",
        "stranger",
        "widen",
        "widen",
        "narrow",
        "learn",
        "forget",
        "link",
        "link",
    ),
)
LONGEST = 3
"""Operations of a sequence, before the questions that end it."""
PER_LIFE = 10
"""Sequences of a life."""
PER_TOWN = 4
"""Lives in one database: they must not see each other either."""

_CANARY = re.compile(r"zq\d+x")
_TOPICS = ("garden fence", "blue boat", "tax letter", "birthday cake", "red bicycle")
_LINE = re.compile(r"^\[(\d+)\] \w+ \S+ \S+ [^:]+: (.*)$", re.MULTILINE)

Operation = tuple[str, int, int, int]
"""What, and three small numbers that say who, where and which; any numbers will do."""
Sequence_ = tuple[Sequence[Operation], int, int]
"""What happens, and then who asks, and where."""


class LeakError(AssertionError):
    """Somebody was shown what they may not see."""


@dataclass
class Canary:
    word: str
    text: str
    said_in: str
    """Scope key of the place where it was said: whoever reads along there has seen it."""
    by: int
    home: str
    """Scope key of the observation that was made of it."""
    is_gone: bool = False


@dataclass
class Life:
    """One sequence: its people, groups and team, and what is known of them."""

    people: list[Audience]
    names: list[str]
    groups: list[int]
    team: int
    present: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Group -> people in it; 0 stands for a stranger."""
    in_team: set[int] = field(default_factory=set[int])
    canaries: list[Canary] = field(default_factory=list[Canary])
    linked: dict[int, tuple[str, list[Canary]]] = field(default_factory=dict[int, tuple[str, list[Canary]]])
    """Person -> the other identity that is theirs by now, and what was said there."""

    def may_see(self, canary: Canary, audience: Audience, *, sensitive: bool = False) -> bool:
        """The oracle: by what happened, never by what is stored."""
        if canary.is_gone:
            return False
        if audience.owner == canary.said_in:
            return True  # it stands in this very log
        return self._sees(canary.home, audience, sensitive=sensitive)

    def _sees(self, key: str, audience: Audience, *, sensitive: bool) -> bool:
        if audience.is_private:
            me = audience.user_id
            reach = {own_key(me), PUBLIC}
            reach |= {group_key(group) for group, there in self.present.items() if me in there}
            reach |= {team_key(self.team)} if me in self.in_team else set()
            return key in reach or (sensitive and key == sensitive_key(me))
        there = self.present[audience.chat_id] | {audience.user_id}
        if key == PUBLIC:
            return 0 not in there
        return key == audience.owner or (key == team_key(self.team) and there <= self.in_team)


class _OnTheLoop(Database):
    """What reads much runs on the loop, too: nobody waits here, and a trip to a thread takes longer than it."""

    @asynccontextmanager
    async def search(self) -> AsyncGenerator[AsyncConnection, None]:
        async with self.read() as connection:
            yield connection


class Town:
    """A database and a memory for some sequences."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FrozenClock()
        self.database = _OnTheLoop(f"sqlite+aiosqlite:///{folder / 'merk.db'}")
        self.model = ScriptedModel(always=self._answer, traits=TRAITS)
        self.memory = Memory(
            self.database,
            self.clock,
            vectors=ExactIndex(),
            embedder=cast("Embedder", WordEmbedder()),
            model=self.model,
            settings=MemorySettings(observe_after=0.0),
        )
        self.canaries: dict[str, Canary] = {}
        self._number = 0

    async def open(self) -> None:
        async with self.database.write() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.commit()
            await driver.execute("PRAGMA synchronous=OFF")  # what is measured here is not the disk
        await self.memory.open()

    async def close(self) -> None:
        await self.memory.close()
        await self.database.close()

    @property
    def now(self) -> int:
        return to_ms(self.clock.now())

    def word(self) -> str:
        self._number += 1
        return f"zq{self._number}x"

    def name(self) -> str:
        self._number += 1
        return f"name{self._number}"

    async def life(self) -> Life:
        """New people, groups and a team; the first person may see what is sensitive."""
        names = [self.name() for _ in range(PEOPLE)]
        async with self.database.write() as connection:
            users = [
                await people.admit(connection, f"telegram:{name}", "Person", Role.MEMBER, "en", self.now)
                for name in names
            ]
            chats = [
                await sessions.ensure_chat(connection, "telegram", name, kind="ai", title="", now=self.now)
                for name in names
            ]
            groups = [
                await sessions.ensure_chat(connection, "telegram", self.name(), kind="user", title="", now=self.now)
                for _ in range(GROUPS)
            ]
            team = await members.create_team(connection, self.name(), users[0].id, self.now)
            await members.grant(connection, users[0].id, VIEW_SENSITIVE)
        alone = [Audience(user.id, chat, is_private=True) for user, chat in zip(users, chats, strict=True)]
        return Life(alone, names, groups, team.id, {group: set() for group in groups}, {users[0].id})

    def _answer(self, request: ModelRequest) -> Json:
        """An extractor that notices everything, and a summary that repeats everything: the worst case for a leak."""
        shown = "\n".join(getattr(block, "text", "") for each in request.messages for block in each.blocks)
        if request.account.purpose is Purpose.CONSOLIDATION:
            return {"same": False}
        if request.account.purpose is Purpose.SUMMARY:
            fields = ("title", "request", "investigated", "learned", "completed", "next_steps", "notes")
            return {**dict.fromkeys(fields, ""), "text": " ".join(_CANARY.findall(shown)) or "A talk."}
        return {"observations": [{"message": int(number), **noticed(text)} for number, text in _LINE.findall(shown)]}


# --- what happens -------------------------------------------------------------------------------


async def live(town: Town, life: Life, sequences: Sequence[Sequence_]) -> None:
    """A life, sequence by sequence. Raises `LeakError`."""
    for number, (operations, who, where) in enumerate(sequences, 1):
        for what, *numbers in operations:
            person, at, which = numbers
            await _OPERATIONS[what](town, life, person % PEOPLE, at, which)
        person = life.people[who % PEOPLE]
        await _ask(town, life, person, where)
        if number % PER_LIFE == 0:
            await _look_around(town, life, person)


async def _say(town: Town, life: Life, who: int, where: int, which: int) -> int:
    """Somebody writes, and is answered."""
    audience = await _at(town, life, who, where)
    canary = town.word()
    text = f"The {_TOPICS[which % len(_TOPICS)]} {canary} matters to me"
    async with town.database.write() as connection:
        session = await _session(connection, audience, town.now)
        message_id = await _append(connection, session, text, audience.user_id, town.now)
        await _append(connection, session, "OK.", None, town.now)
    town.clock.advance(seconds=1)
    _remember(town, life, Canary(canary, text, audience.owner, audience.user_id, audience.owner))
    return message_id


async def _keep(town: Town, life: Life, who: int, where: int, which: int) -> None:
    """The same, and it is noticed at once."""
    message_id = await _say(town, life, who, where, which)
    await town.memory.observations.keep(await _at(town, life, who, where), message_id)


async def _fact(town: Town, life: Life, who: int, where: int, which: int) -> None:
    audience = await _at(town, life, who, where)
    canary = town.word()
    text = f"The {_TOPICS[which % len(_TOPICS)]} is {canary}"
    await town.memory.facts.remember(audience, "Person", text)
    _remember(town, life, Canary(canary, text, audience.owner, audience.user_id, audience.owner))


async def _join(town: Town, life: Life, who: int, where: int, _which: int) -> None:
    group = life.groups[where % GROUPS]
    async with town.database.write() as connection:
        await members.note(connection, group, f"telegram:{life.names[who]}", town.now)
    life.present[group].add(life.people[who].user_id)


async def _leave(town: Town, life: Life, who: int, where: int, _which: int) -> None:
    group = life.groups[where % GROUPS]
    async with town.database.write() as connection:
        await members.left(connection, group, f"telegram:{life.names[who]}")
    life.present[group].discard(life.people[who].user_id)


async def _stranger(town: Town, life: Life, _who: int, where: int, _which: int) -> None:
    group = life.groups[where % GROUPS]
    async with town.database.write() as connection:
        if 0 in life.present[group]:
            await members.left(connection, group, f"telegram:stranger{group}")
        else:
            await members.note(connection, group, f"telegram:stranger{group}", town.now)
    life.present[group] ^= {0}


async def _team(town: Town, life: Life, who: int, where: int, _which: int) -> None:
    person = life.people[who]
    async with town.database.write() as connection:
        if where % 2:
            await members.add_to_team(connection, life.team, person.user_id)
            life.in_team.add(person.user_id)
        else:
            await members.remove_from_team(connection, life.team, person.user_id)
            life.in_team.discard(person.user_id)


async def _widen(town: Town, life: Life, who: int, where: int, which: int) -> None:
    targets = (PUBLIC, team_key(life.team), *map(group_key, life.groups))
    await _move(town, life, life.people[who], targets[where % len(targets)], which)


async def _narrow(town: Town, life: Life, who: int, where: int, which: int) -> None:
    person = life.people[who]
    targets = (own_key(person.user_id), sensitive_key(person.user_id))
    await _move(town, life, person, targets[where % len(targets)], which)


async def _move(town: Town, life: Life, person: Audience, to: str, which: int) -> None:
    """Somebody tries to move anybody's observation; only what succeeds has happened."""
    found = await _observation(town, life, person, which)
    if found is None:
        return
    canary, observation_id = found
    try:
        await town.memory.observations.change_scope(person, observation_id, to, is_confirmed=True)
    except ObservationRefused:
        return
    if canary.by != person.user_id:
        raise LeakError("somebody moved what another said")
    canary.home = to


async def _forget(town: Town, life: Life, who: int, _where: int, which: int) -> None:
    person = life.people[who]
    found = await _observation(town, life, person, which)
    if found is None:
        return
    canary, observation_id = found
    receipt = await town.memory.forget_observations(person, [observation_id])
    canary.is_gone = receipt.observations > 0
    if canary.is_gone and canary.by != person.user_id:
        raise LeakError("somebody forgot what another said")


async def _link(town: Town, life: Life, who: int, where: int, which: int) -> None:
    """Somebody has said something on another network and is joined with it; the next time they are taken apart."""
    person = life.people[who]
    if who in life.linked:
        await _unlink(town, life, person, *life.linked.pop(who))
        return
    identity = f"matrix:{town.name()}"
    async with town.database.write() as connection:
        user = await people.admit(connection, identity, "Person", Role.MEMBER, "en", town.now)
        chat = await sessions.ensure_chat(connection, "matrix", identity, kind="ai", title="", now=town.now)
    there = replace(life, people=[Audience(user.id, chat, is_private=True)], canaries=[])
    await _keep(town, there, 0, 0, which)
    await _fact(town, there, 0, 0, where)
    life.canaries += there.canaries
    linking = town.memory.linking
    try:
        code = await linking.offer(person.user_id, f"telegram:{life.names[who]}", {})
    except LinkRefused:
        return  # they have had their codes for this hour
    await linking.take(code, identity)
    await linking.join(person.user_id, code, identity)
    for canary in there.canaries:
        canary.said_in = canary.home = person.owner
        canary.by = person.user_id
    life.linked[who] = identity, there.canaries


async def _unlink(town: Town, life: Life, person: Audience, identity: str, said: list[Canary]) -> None:
    await town.memory.linking.part(person.user_id, identity)
    async with town.database.read() as connection:
        user = await people.find(connection, identity)
        assert user is not None
        chat = await sessions.chat_id(connection, "matrix", identity)
    alone = Audience(user.id, chat or 0, is_private=True)
    for canary in said:
        canary.said_in = alone.owner
        if canary.home in (person.owner, sensitive_key(person.user_id)):  # what was shown to more people stays theirs
            canary.home, canary.by = canary.home[0] + alone.owner[1:], alone.user_id
    _check(town, life, alone, "recall", await town.memory.recall(alone, 0, said[0].text))
    _check(town, life, alone, "all", await town.memory.observations.list(alone, state="all", limit=100))


async def _learn(town: Town, _life: Life, _who: int, where: int, _which: int) -> None:
    if where % 3 == 0:  # it takes longer than all the rest of a life together
        await town.memory.learn()


_OPERATIONS = {
    "say": _say,
    "keep": _keep,
    "fact": _fact,
    "join": _join,
    "leave": _leave,
    "stranger": _stranger,
    "team": _team,
    "widen": _widen,
    "narrow": _narrow,
    "forget": _forget,
    "learn": _learn,
    "link": _link,
}


# --- what is looked at --------------------------------------------------------------------------


async def _ask(town: Town, life: Life, person: Audience, where: int) -> None:
    """Ask about everything, in private or in a group that one is in."""
    group = life.groups[where % GROUPS]
    is_there = person.user_id in life.present[group] and where % (GROUPS + 1)
    place = Audience(person.user_id, group, is_private=False) if is_there else person
    recall = await town.memory.recall(place, 0, _question(life, where))
    _check(town, life, place, "recall", recall)
    _check(town, life, place, "prompt", _prompt(place, recall))
    if where % 2:
        _check(town, life, place, "list", await town.memory.observations.list(place, limit=100))
        _check(town, life, place, "forget", await town.memory.forgettable.find(place, _question(life, where)))


def _question(life: Life, which: int) -> str:
    """About one of the things, by all of its words: whatever holds them is found if it is shown at all."""
    if not life.canaries:
        return _TOPICS[0]
    return life.canaries[which % len(life.canaries)].text


async def _look_around(town: Town, life: Life, person: Audience) -> None:
    """Look at all that is there for one person."""
    for where in range(GROUPS + 1):
        await _ask(town, life, person, where)
    question = _question(life, len(life.canaries) - 1)
    observations = town.memory.observations
    _check(town, life, person, "search", await observations.search(person, question, limit=100))
    _check(town, life, person, "digest", await observations.changes(person, FrozenClock().now()))
    every = await observations.list(person, state="all", limit=100, sensitive=True)
    _check(town, life, person, "all", every, sensitive=person is life.people[0])
    exported = await town.memory.export(person.user_id)
    for canary in _seen(town, exported):
        is_own = own_key(person.user_id) == canary.said_in or canary.by == person.user_id
        if canary.is_gone or not is_own:
            raise LeakError(f"an export shows {canary}")


def _check(town: Town, life: Life, audience: Audience, where: str, shown: object, *, sensitive: bool = False) -> None:
    for canary in _seen(town, shown):
        if not life.may_see(canary, audience, sensitive=sensitive):
            raise LeakError(f"{where} shows {canary} to {audience}")


def _seen(town: Town, shown: object) -> list[Canary]:
    """The canaries in something, of this life or of another in the same town."""
    return [town.canaries[word] for word in set(_CANARY.findall(repr(shown)))]


def _prompt(place: Audience, recall: Recall) -> Sequence[object]:
    """The model request that a turn would make."""
    now = FrozenClock().now()
    newest = Message(1, 1, "user", "Person", "And?", Origin.TYPED, None, now)
    situation = prompt.Situation("Merk", now, place.is_private, (), newest, recall)
    traits = ModelTraits("m", can_call_tools=False, can_follow_schema=True, context_tokens=100_000)
    request = prompt.build(situation, traits, ())
    return (request.system, request.messages)


# --- small things -------------------------------------------------------------------------------


def _remember(town: Town, life: Life, canary: Canary) -> None:
    life.canaries.append(canary)
    town.canaries[canary.word] = canary


async def _at(town: Town, life: Life, who: int, where: int) -> Audience:
    """In private, or in a group; whoever writes there is in it."""
    person = life.people[who]
    if where % (GROUPS + 1) == 0:
        return person
    if person.user_id not in life.present[life.groups[where % (GROUPS + 1) - 1]]:
        await _join(town, life, who, where % (GROUPS + 1) - 1, 0)
    return Audience(person.user_id, life.groups[where % (GROUPS + 1) - 1], is_private=False)


async def _observation(town: Town, life: Life, person: Audience, which: int) -> tuple[Canary, int] | None:
    """An observation that this person is shown, by one of the canaries."""
    page = await town.memory.observations.list(person, limit=100)
    of = {word: each.id for each in page.observations for word in _CANARY.findall(each.narrative)}
    there = [canary for canary in life.canaries if canary.word in of]
    return (there[which % len(there)], of[there[which % len(there)].word]) if there else None


async def _session(connection: Any, audience: Audience, now: int) -> Session:
    known = await sessions.current(connection, audience.chat_id, "")
    return known or await sessions.start(connection, audience, "", now=now)


async def _append(connection: Any, session: Session, text: str, user_id: int | None, now: int) -> int:
    role, speaker = ("assistant", "Merk") if user_id is None else ("user", "Person")
    return (await log.append(connection, Utterance(session.id, role, speaker, text, user_id=user_id), now)).id


def life_of(chance: random.Random) -> list[Sequence_]:
    """The sequences of a life, at random."""
    return [
        (
            [
                (chance.choice(OPERATIONS), chance.randrange(6), chance.randrange(12), chance.randrange(12))
                for _ in range(chance.randint(1, LONGEST))
            ],
            chance.randrange(6),
            chance.randrange(12),
        )
        for _ in range(PER_LIFE)
    ]


async def empty_database(folder: Path) -> Path:
    """A migrated database to copy for each town."""
    path = folder / "empty.db"
    database = Database.at(path)
    await migrate(database, path, FrozenClock())
    await database.flush_deleted()
    await database.close()
    return path


async def town_in(folder: Path, empty: Path) -> Town:
    folder.mkdir(parents=True)
    shutil.copy(empty, folder / "merk.db")
    town = Town(folder)
    await town.open()
    return town


# --- the benchmark ------------------------------------------------------------------------------


@dataclass
class Result:
    sequences: int
    operations: int
    seconds: float
    leaks: int
    first_leak: str = ""


async def measure(count: int, seed: int) -> dict[str, object]:
    """Run so many sequences; stop at the first leak, whose seed and operations are named."""
    chance = random.Random(seed)
    began, operations, done = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        empty = await empty_database(Path(name))
        while done < count:
            town = await town_in(Path(name) / f"town{done}", empty)
            for _ in range(PER_TOWN):
                life = life_of(chance)[: max(count - done, 0)]
                try:
                    await live(town, await town.life(), life)
                except LeakError as leak:
                    what = json.dumps({"leak": str(leak), "life": life})
                    return asdict(Result(done, operations, time.monotonic() - began, 1, what))
                operations += sum(len(each[0]) for each in life)
                done += len(life)
            await town.close()
            await asyncio.to_thread(shutil.rmtree, town.folder)
    return asdict(Result(done, operations, round(time.monotonic() - began, 1), 0))


def table(result: dict[str, object]) -> str:
    lines = [f"{name.replace('_', ' '):>12}  {value}" for name, value in result.items() if value != ""]
    return "\n".join(lines)
