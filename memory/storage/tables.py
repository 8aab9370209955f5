"""The tables of a tenant, in SQLAlchemy Core. Migrations under migrations/ make them; a test keeps the two equal.

Instants are integers: milliseconds since the epoch, UTC. Ids are integers that grow, so that they order.
"""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, MetaData, Table, Text, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite gives rowids only to INTEGER keys
_Id = BigInteger().with_variant(Integer, "sqlite")


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True, autoincrement=True)


def _ref(
    name: str, target: str, ondelete: str, *, nullable: bool = True, index: bool = False, primary_key: bool = False
) -> Column[int]:
    key = ForeignKey(target, ondelete=ondelete)
    if primary_key:
        return Column(name, _Id, key, primary_key=True)
    return Column(name, _Id, key, nullable=nullable, index=index)


# --- people ------------------------------------------------------------------------------------

users = Table(
    "users",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),  # owner | admin | member | guest
    Column("language", Text),  # chosen with /language; null = the client's
    Column("client_language", Text, nullable=False, server_default="en"),
    Column("created_at", BigInteger, nullable=False),
)

identities = Table(
    "identities",
    metadata,
    Column("key", Text, primary_key=True),  # telegram:42, matrix:@ada:example.org, terminal:local
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
)

grants = Table(
    "grants",
    metadata,
    _ref("user_id", "users.id", "CASCADE", primary_key=True),
    Column("name", Text, primary_key=True),
)

pairing_codes = Table(
    "pairing_codes",
    metadata,
    Column("code", Text, primary_key=True),
    Column("identity", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("language", Text, nullable=False),
    Column("place", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

# --- places and sessions -------------------------------------------------------------------------

chats = Table(
    "chats",
    metadata,
    _id(),
    Column("transport", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("kind", Text, nullable=False),  # ai = the bot and one person, user = a group
    Column("title", Text, nullable=False, server_default=""),
    Column("created_at", BigInteger, nullable=False),
    Index("uq_chats_transport_external_id", "transport", "external_id", unique=True),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    _ref("chat_id", "chats.id", "CASCADE", nullable=False),
    Column("thread", Text, nullable=False),  # the transport's thread id, "" where there is none
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),  # who opened it
    Column("owner", Text, nullable=False, index=True),  # the scope key of what is said in it (memory.scope)
    Column("title", Text, nullable=False, server_default=""),
    Column("user_prompt", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False, server_default="active"),  # active | completed | failed
    Column("metadata", JSON, nullable=False, server_default="{}"),
    Column("is_current", Boolean, nullable=False),  # the one that a message in this place goes to
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
    Index("ix_sessions_place", "chat_id", "thread"),
    Index(
        "uq_sessions_current",
        "chat_id",
        "thread",
        unique=True,
        sqlite_where=text("is_current"),
        postgresql_where=text("is_current"),
    ),
)

# --- the log ---------------------------------------------------------------------------------------

messages = Table(
    "messages",
    metadata,
    _id(),
    _ref("session_id", "sessions.id", "CASCADE", nullable=False),
    _ref("user_id", "users.id", "SET NULL", index=True),  # who spoke; null = the bot
    Column("role", Text, nullable=False),  # user | assistant
    Column("speaker", Text, nullable=False),  # the name shown
    Column("origin", Text, nullable=False, server_default="typed"),  # typed | forwarded | quoted | tool | file
    Column("text", Text, nullable=False),
    Column("blocks", JSON),  # tool calls and results of the turn, as stubs
    Column("is_ephemeral", Boolean, nullable=False, server_default=text("0")),
    Column("tool", Text),
    Column("inbox_id", _Id),  # what it answers or came from: one durable row of each side
    Column("external_ref", Text),  # the transport's own id of a person's message
    Column("duration_ms", Integer),
    Column("memory_trace", JSON),  # ids and figures, never text
    Column("model", Text),
    Column("redacted_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_messages_session_id_id", "session_id", "id"),
    Index(
        "uq_messages_inbox_id_role",
        "inbox_id",
        "role",
        unique=True,
        sqlite_where=text("NOT is_ephemeral"),
        postgresql_where=text("NOT is_ephemeral"),
    ),
    Index("ix_messages_session_id_external_ref", "session_id", "external_ref"),
)

inbox = Table(
    "inbox",
    metadata,
    _id(),
    Column("transport", Text, nullable=False),
    Column("external_id", Text, nullable=False),
    Column("payload", JSON),  # as the transport sent it; emptied when done
    Column("status", Text, nullable=False),  # running | done
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("received_at", BigInteger, nullable=False),
    Column("done_at", BigInteger),
    Index("uq_inbox_transport_external_id", "transport", "external_id", unique=True),
    Index(
        "ix_inbox_open",
        "transport",
        "id",
        sqlite_where=text("status <> 'done'"),
        postgresql_where=text("status <> 'done'"),
    ),
)

outbox = Table(
    "outbox",
    metadata,
    _id(),
    Column("transport", Text, nullable=False),
    Column("place", JSON, nullable=False),  # chat, thread: fixed when the turn starts
    Column("lane", Text, nullable=False),  # rows of one lane go out in order
    Column("event", JSON),  # the reply event; emptied when sent
    _ref("user_id", "users.id", "CASCADE", index=True),  # whom it answers: may ask to see it again
    _ref("session_id", "sessions.id", "CASCADE", index=True),
    _ref("message_id", "messages.id", "CASCADE", index=True),  # the logged message that it shows
    Column("inbox_id", _Id, index=True),  # what it answers
    # opening | streaming: an answer grows in it; pending | sending | sent;
    # doubtful: it may have arrived, to be offered; unknown: it was offered; failed
    Column("status", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("not_before", BigInteger, nullable=False, server_default="0"),
    Column("refs", JSON, nullable=False, server_default="[]"),  # the transport's message ids, part by part
    Column("error", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    Index(
        "ix_outbox_open",
        "transport",
        "id",
        sqlite_where=text("status not in ('sent', 'unknown', 'failed')"),
        postgresql_where=text("status not in ('sent', 'unknown', 'failed')"),
    ),
)

confirmations = Table(
    "confirmations",
    metadata,
    Column("token", Text, primary_key=True),
    Column("action", Text, nullable=False),
    Column("data", JSON, nullable=False),
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),  # only this person
    _ref("session_id", "sessions.id", "CASCADE", index=True),
    Column("card", Text, nullable=False),  # buttons of one card: a press settles them all
    Column("claimed_by", _Id),  # the inbox row of the press; the same row may resume after a crash
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index("ix_confirmations_card", "card"),
)

# --- memory ------------------------------------------------------------------------------------------

facts = Table(
    "facts",
    metadata,
    _id(),
    Column("owner", Text, nullable=False),  # scope key
    Column("scope", Text, nullable=False),  # private | team | public | sensitive
    _ref("user_id", "users.id", "SET NULL"),  # who said it
    Column("speaker", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("slot", Text),  # what it is about, where that can be told: a new value asks
    Column("source_message_ids", JSON, nullable=False, server_default="[]"),
    Column("valid_from", BigInteger, nullable=False),
    Column("valid_to", BigInteger),
    Column("superseded_by", _Id),
    Column("created_at", BigInteger, nullable=False),
    Index(
        "uq_facts_owner_content_hash",
        "owner",
        "content_hash",
        unique=True,
        sqlite_where=text("valid_to IS NULL"),
        postgresql_where=text("valid_to IS NULL"),
    ),
    Index("ix_facts_owner", "owner", "id"),
)

summaries = Table(
    "summaries",
    metadata,
    _ref("session_id", "sessions.id", "CASCADE", primary_key=True),
    Column("owner", Text, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("request", Text, nullable=False, server_default=""),
    Column("investigated", Text, nullable=False, server_default=""),
    Column("learned", Text, nullable=False, server_default=""),
    Column("completed", Text, nullable=False, server_default=""),
    Column("next_steps", Text, nullable=False, server_default=""),
    Column("notes", Text, nullable=False, server_default=""),
    Column("generated_by_model", Text, nullable=False),
    Column("watermark", _Id, nullable=False),  # the last message it covers
    Column("indexed_as", Text),  # embedder name and dimension of its vector; null = not embedded yet
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

learning = Table(
    "learning",
    metadata,
    Column("kind", Text, primary_key=True),
    _ref("session_id", "sessions.id", "CASCADE", primary_key=True),
    Column("watermark", _Id, nullable=False, server_default="0"),
    Column("lease_until", BigInteger, nullable=False, server_default="0"),
    Column("claim", Text),  # names the work that holds the lease: only it may write its result
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("retry_at", BigInteger, nullable=False, server_default="0"),
    Column("last_error", Text),  # the class of the failure, never text
)

telemetry_events = Table(
    "telemetry_events",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("user_id", _Id),
    Column("session_id", _Id),
    Column("data", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_telemetry_events_name_created_at", "name", "created_at"),
)

kept_values = Table(
    "kept_values",
    metadata,
    Column("key", Text, primary_key=True),  # e.g. telegram.last_poll_at
    Column("value", JSON, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
