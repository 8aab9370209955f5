"""A small world to test memory in: real SQLite files, people, groups and what they say."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from memory.instants import to_ms
from memory.memory import Memory
from memory.ports import Embedder, ModelTraits
from memory.scope import Audience
from memory.storage import log, people, sessions
from memory.storage.database import Database
from memory.storage.tables import metadata
from memory.types import Fact, MemorySettings, Message, Origin, Role, Session, Utterance
from tests.fakes.clock import FrozenClock
from tests.fakes.disk import files_under
from tests.fakes.embedder import WordEmbedder
from tests.fakes.index import ExactIndex
from tests.fakes.model import ScriptedModel

PLAIN = ModelTraits("plain", can_call_tools=False, can_follow_schema=False, context_tokens=4096)
"""A model like the built-in one: summaries are made of the person's own sentences."""


@dataclass
class World:
    data_dir: Path
    database: Database
    clock: FrozenClock = field(default_factory=FrozenClock)
    vectors: ExactIndex = field(default_factory=ExactIndex)
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(traits=PLAIN))
    settings: MemorySettings = field(default_factory=lambda: MemorySettings(learn_after=0.01))

    def __post_init__(self) -> None:
        self.memory = self.reborn()

    def reborn(self, *, model: ScriptedModel | None = None, settings: MemorySettings | None = None) -> Memory:
        """The memory of a process that has just started on these files."""
        self.model = model or self.model
        self.settings = settings or self.settings
        self.memory = Memory(
            self.database,
            self.clock,
            vectors=self.vectors,
            embedder=cast("Embedder", self.embedder),  # its constants are no properties, which pyright minds
            model=self.model,
            settings=self.settings,
        )
        return self.memory

    @property
    def now(self) -> int:
        return to_ms(self.clock.now())

    async def person(self, name: str, network: str = "telegram") -> Audience:
        """Somebody in a private chat of their own."""
        async with self.database.write() as connection:
            user = await people.admit(connection, f"{network}:{name}", name, Role.MEMBER, "en", self.now)
            chat = await sessions.ensure_chat(connection, network, name, kind="ai", title=name, now=self.now)
        return Audience(user.id, chat, is_private=True)

    async def in_group(self, *members: Audience, title: str = "group", network: str = "telegram") -> list[Audience]:
        """The same people in a group chat."""
        async with self.database.write() as connection:
            chat = await sessions.ensure_chat(connection, network, f"-{title}", kind="user", title=title, now=self.now)
        return [Audience(member.user_id, chat, is_private=False) for member in members]

    async def session(self, audience: Audience, *, title: str = "") -> Session:
        self.clock.advance(minutes=1)
        async with self.database.write() as connection:
            return await sessions.start(connection, audience, "", now=self.now, title=title)

    async def say(
        self,
        session: Session,
        text: str,
        audience: Audience | None = None,
        *,
        origin: Origin = Origin.TYPED,
        is_ephemeral: bool = False,
        blocks: list[dict[str, Any]] | None = None,
        inbox_id: int | None = None,
    ) -> int:
        """One message: by the audience's person, or by the assistant where there is none."""
        self.clock.advance(seconds=1)
        utterance = Utterance(
            session_id=session.id,
            role="user" if audience else "assistant",
            speaker=f"User {audience.user_id}" if audience else "Merk",
            text=text,
            user_id=audience.user_id if audience else None,
            origin=origin,
            is_ephemeral=is_ephemeral,
            blocks=blocks,
            inbox_id=inbox_id,
        )
        async with self.database.write() as connection:
            return (await log.append(connection, utterance, self.now)).id

    async def talk(self, audience: Audience, *turns: str, title: str = "") -> Session:
        """A session in which the person and the assistant speak in turn."""
        session = await self.session(audience, title=title)
        for i, text in enumerate(turns):
            await self.say(session, text, audience if i % 2 == 0 else None)
        return session

    async def fact(self, audience: Audience, text: str, *sources: int) -> Fact:
        return (await self.memory.facts.remember(audience, "Ada", text, sources)).fact

    async def texts(self, session: Session) -> list[str]:
        """All messages of a session, working output too."""
        rows = await self.rows("messages")
        return [row["text"] for row in rows if row["session_id"] == session.id]

    async def messages(self, session: Session) -> list[Message]:
        async with self.database.read() as connection:
            return await log.since(connection, session.id, 0)

    async def rows(self, table: str) -> list[dict[str, Any]]:
        columns = metadata.tables[table]
        async with self.database.read() as connection:
            query = sa.select(columns).order_by(*columns.primary_key)
            return [dict(row) for row in (await connection.execute(query)).mappings()]

    async def insert(self, table: str, **values: Any) -> None:
        async with self.database.write() as connection:
            await connection.execute(metadata.tables[table].insert().values(**values))

    async def snapshot(self, owner: str) -> dict[str, list[dict[str, Any]]]:
        """Every row that belongs to an owner, to be compared byte by byte."""
        mine = {row["id"] for row in await self.rows("sessions") if row["owner"] == owner}
        owned = {name: await self.rows(name) for name in ("sessions", "facts", "summaries")}
        found = {name: [row for row in rows if row["owner"] == owner] for name, rows in owned.items()}
        for name in ("messages", "learning"):
            found[name] = [row for row in await self.rows(name) if row["session_id"] in mine]
        return found

    def bytes_on_disk(self) -> bytes:
        """The content of every file of the data directory, write-ahead log included."""
        return b"\0".join(content for _, content in files_under(self.data_dir))
