"""The tables of a tenant, in SQLAlchemy Core. Migrations under migrations/ make them; a test keeps the two equal.

Instants are integers: milliseconds since the epoch, UTC. Ids are integers that grow, so that they order.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

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
    Column("timezone", Text),  # IANA name, chosen with /timezone; null = the tenant's
    Column("created_at", BigInteger, nullable=False),
    sqlite_autoincrement=True,  # an id is never given twice: what still bears one is of nobody else
)

identities = Table(
    "identities",
    metadata,
    Column("key", Text, primary_key=True),  # telegram:42, matrix:@ada:example.org, terminal:local
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),
    Column("own_role", Text),  # what it was let in as by itself; null = it came by a link alone
    Column("created_at", BigInteger, nullable=False),
)

link_codes = Table(
    "link_codes",
    metadata,
    Column("code", Text, primary_key=True),
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),  # who asked for it
    Column("identity", Text, nullable=False),  # where they write from
    Column("place", JSON, nullable=False),  # where they asked, and are asked again
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_by", Text),  # the identity that brought it; only that one may bring it again
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

teams = Table(
    "teams",
    metadata,
    _id(),  # its scope key is "t" and this
    Column("name", Text, nullable=False, unique=True),
    _ref("user_id", "users.id", "SET NULL"),  # who made it
    Column("created_at", BigInteger, nullable=False),
)

team_members = Table(
    "team_members",
    metadata,
    _ref("team_id", "teams.id", "CASCADE", primary_key=True),
    _ref("user_id", "users.id", "CASCADE", primary_key=True),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),  # SHA-256; the token itself is shown once
    Column("grants", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
)

login_links = Table(
    "login_links",
    metadata,
    Column("hash", Text, primary_key=True),
    _ref("user_id", "users.id", "CASCADE", nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
)

web_sessions = Table(
    "web_sessions",
    metadata,
    Column("hash", Text, primary_key=True),
    _ref("user_id", "users.id", "CASCADE", nullable=False),
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

chat_members = Table(
    "chat_members",  # of groups, as the transport tells: what a group may see depends on it
    metadata,
    _ref("chat_id", "chats.id", "CASCADE", primary_key=True),
    Column("identity", Text, primary_key=True),
    Column("seen_at", BigInteger, nullable=False),
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
    Column("pinned_tier", Text),  # small | default | smart, chosen with /model; null = chosen by the task
    Column("routed_tier", Text),  # what the last turn was routed to: choosing is sticky
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
    Column("blocks", JSON(none_as_null=True)),  # tool calls and results of the turn, as stubs
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
    Index(  # as every query says it: SQLite takes an index of some rows for no other words
        "ix_messages_durable",
        "session_id",
        "id",
        sqlite_where=text("is_ephemeral = 0"),
        postgresql_where=text("NOT is_ephemeral"),
    ),
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

evidence = Table(
    "evidence",  # what is known of a message that may be found: derived, made anew when its words change
    metadata,
    _ref("message_id", "messages.id", "CASCADE", primary_key=True),
    Column("session_id", _Id, nullable=False),
    Column("owner", Text, nullable=False),
    Column("speaker", _Id, nullable=False),  # users.id; 0 = the assistant
    Column("language", Text, nullable=False),
    Column("is_question", Boolean, nullable=False),
    Column("words", Integer, nullable=False),  # terms in the body
    Column("body", Text, nullable=False),  # its stems, each behind its owner: what message_words indexes
    Column("at", BigInteger, nullable=False),
    Column("indexed_as", Text, index=True),  # embedder of its vectors; null = none yet
    Index("ix_evidence_owner_message_id", "owner", "message_id"),
)

message_vectors = Table(
    "message_vectors",  # of one embedder or, while they are made anew, of two
    metadata,
    _ref("message_id", "evidence.message_id", "CASCADE", primary_key=True),
    Column("model", Text, primary_key=True),
    Column("part", Integer, primary_key=True),  # a long message has several
    Column("owner", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # one scale as float32, then int8 a dimension
    Index("ix_message_vectors_owner_model_message_id", "owner", "model", "message_id"),
)

evidence_queue = Table(
    "evidence_queue",  # messages that are new or whose words changed; triggers write it
    metadata,
    _ref("message_id", "messages.id", "CASCADE", primary_key=True),
)

evidence_changes = Table(
    "evidence_changes",  # how often an owner's evidence changed: what is held in memory is as old as its figures
    metadata,
    Column("owner", Text, primary_key=True),
    Column("words", BigInteger, nullable=False, server_default="0"),
    Column("vectors", BigInteger, nullable=False, server_default="0"),
)

session_states = Table(
    "session_states",
    metadata,
    _ref("session_id", "sessions.id", "CASCADE", primary_key=True),  # at most one piece of work a session
    Column("tool", Text, nullable=False),  # who owns it
    Column("title", Text, nullable=False),  # the piece of work, in a person's words
    Column("step", Text, nullable=False, server_default=""),  # where it stands, for the model: "draft 3"
    Column("data", JSON, nullable=False, server_default="{}"),  # small; texts are working output, not here
    Column("idle_turns", Integer, nullable=False, server_default="0"),  # turns since it was last touched
    _ref("user_id", "users.id", "CASCADE", nullable=False),  # whose work it is
    Column("opened_at", BigInteger, nullable=False),
    Column("touched_at", BigInteger, nullable=False, index=True),
)

compactions = Table(
    "compactions",
    metadata,
    _ref("session_id", "sessions.id", "CASCADE", primary_key=True),
    Column("block", JSON(none_as_null=True)),  # the provider's own, as it came; null = there is none (any more)
    Column("text", Text),  # the same in words
    Column("model", Text),  # who made it
    Column("through_id", _Id, nullable=False, server_default="0"),  # the last message that it stands for
    Column("epoch", Integer, nullable=False, server_default="0"),  # moves on with every change of what it stands for
    Column("created_at", BigInteger, nullable=False, server_default="0"),
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
    Column("claimed_action", Text),  # what was chosen: a second press is told
    Column("is_working", Boolean, nullable=False, server_default=text("0")),  # of working output: closes with it
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
    Column("network", Text),  # the transport that it was told on
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

instructions = Table(
    "instructions",
    metadata,
    _id(),  # a snapshot; the newest of a subject is in force
    Column("subject", Text, nullable=False),  # scope key of a person ("u7"), or "persona" for the bot's own
    Column("text", Text, nullable=False),
    _ref("user_id", "users.id", "SET NULL"),  # who applied it
    Column("restored_from", _Id),  # the snapshot that was rolled back to
    Column("created_at", BigInteger, nullable=False),
    Index("ix_instructions_subject", "subject", "id"),
)

reminders = Table(
    "reminders",
    metadata,
    _id(),
    _ref("user_id", "users.id", "CASCADE", nullable=False, index=True),
    _ref("session_id", "sessions.id", "SET NULL"),  # where it was asked for
    Column("owner", Text, nullable=False, index=True),  # scope key: who may see it
    Column("place", JSON, nullable=False),  # transport, chat, thread: where it rings
    Column("text", Text, nullable=False),
    Column("starts", Text, nullable=False),  # wall clock of the first time: 2026-12-01T09:00
    Column("timezone", Text, nullable=False),
    Column("rule", Text),  # RFC 5545 RRULE; null = once
    Column("due_at", BigInteger, nullable=False),  # the next time it rings
    Column("status", Text, nullable=False, server_default="waiting"),  # waiting | rung | done
    Column("created_at", BigInteger, nullable=False),
    Index(
        "ix_reminders_due",
        "due_at",
        sqlite_where=text("status = 'waiting'"),
        postgresql_where=text("status = 'waiting'"),
    ),
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

observations = Table(
    "observations",
    metadata,
    _id(),
    Column("owner", Text, nullable=False),  # scope key
    Column("scope", Text, nullable=False),  # private | team | public | sensitive
    _ref("user_id", "users.id", "SET NULL"),  # whose it is; null = everybody's in the tenant
    _ref("session_id", "sessions.id", "SET NULL", index=True),  # where it was noticed
    Column("type", Text, nullable=False),  # fact | decision | event | concept | preference | task
    Column("title", Text, nullable=False),
    Column("narrative", Text, nullable=False),
    Column("facts", JSON, nullable=False, server_default="[]"),
    Column("concepts", JSON, nullable=False, server_default="[]"),
    Column("language", Text, nullable=False),
    Column("subject", Text, nullable=False, server_default=""),  # with attribute: the slot
    Column("attribute", Text, nullable=False, server_default=""),
    Column("value", Text, nullable=False, server_default=""),  # what the slot holds; another one is asked or replaces
    Column("content_hash", Text, nullable=False),
    Column("trigger_source", Text, nullable=False),  # chat | hook | manual | consolidation
    Column("prompt_version", Text),  # of the extractor that made it; a bad batch can be purged
    Column("discovery_tokens", JSON, nullable=False, server_default="[]"),  # under which it is found
    Column("cost_tokens", Integer, nullable=False, server_default="0"),
    Column("relevance_count", Integer, nullable=False, server_default="0"),
    Column("proof_count", Integer, nullable=False, server_default="1"),
    Column("confidence", Float, nullable=False, server_default="1.0"),
    Column("valid_from", BigInteger, nullable=False),
    Column("valid_to", BigInteger),
    Column("superseded_by", _Id),
    Column("rival_id", _Id),  # says something else of the same slot, and only a person can tell which holds
    Column("asked_at", BigInteger),  # when the person was asked: once
    Column("hidden_at", BigInteger),  # rejected twice
    Column("indexed_as", Text),  # embedder name and dimension of its vector; null = not embedded yet
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index(
        "uq_observations_owner_content_hash",
        "owner",
        "content_hash",
        unique=True,
        sqlite_where=text("valid_to IS NULL"),
        postgresql_where=text("valid_to IS NULL"),
    ),
    Index("ix_observations_owner_slot", "owner", "subject", "attribute"),
)

observation_evidence = Table(
    "observation_evidence",
    metadata,
    _id(),
    _ref("observation_id", "observations.id", "CASCADE", nullable=False, index=True),
    _ref("message_id", "messages.id", "CASCADE", index=True),  # null: a hook's event
    Column("quote", Text, nullable=False),  # verbatim
)

observation_feedback = Table(
    "observation_feedback",
    metadata,
    _id(),
    _ref("observation_id", "observations.id", "CASCADE", nullable=False, index=True),
    _ref("user_id", "users.id", "SET NULL"),
    _ref("message_id", "messages.id", "SET NULL"),  # the answer in which it was used
    Column("kind", Text, nullable=False),  # retrieved | cited | confirmed | rejected
    Column("created_at", BigInteger, nullable=False),
)

hook_events = Table(
    "hook_events",
    metadata,
    Column("hook", Text, primary_key=True),
    Column("event_id", Text, primary_key=True),
    Column("received_at", BigInteger, nullable=False),
)

spend = Table(
    "spend",
    metadata,
    _id(),
    _ref("user_id", "users.id", "SET NULL"),
    _ref("session_id", "sessions.id", "SET NULL"),
    Column("purpose", Text, nullable=False),  # chat | advisor | summary | extraction | consolidation
    Column("model", Text, nullable=False),
    Column("input", Integer, nullable=False),  # tokens, as billed
    Column("output", Integer, nullable=False),
    Column("cache_read", Integer, nullable=False),
    Column("cache_write", Integer, nullable=False),
    Column("cache_write_1h", Integer, nullable=False),  # of cache_write, what is kept for an hour
    Column("is_estimate", Boolean, nullable=False, server_default=text("0")),  # the call broke off before its bill
    Column("nano_usd", BigInteger),  # 1e-9 US dollars: exact, and can be added up in SQL; null = no price known
    Column("created_at", BigInteger, nullable=False),
    Index("ix_spend_created_at", "created_at"),
    Index("ix_spend_user_id_created_at", "user_id", "created_at"),
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
    Index("ix_telemetry_events_created_at", "created_at"),
    Index("ix_telemetry_events_user_id_created_at", "user_id", "created_at"),
)

telemetry_quarters = Table(
    "telemetry_quarters",  # events added up by the quarter of an hour; every zone's hours and days are made of these
    metadata,
    Column("name", Text, primary_key=True),
    Column("quarter", BigInteger, primary_key=True),  # its first instant
    Column("label", Text, primary_key=True),  # of a turn the person, else the tool, failure, fault or job, or ""
    Column("events", BigInteger, nullable=False),
    Column("successes", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("first_token_ms", BigInteger, nullable=False),
    Column("first_tokens", BigInteger, nullable=False),  # events that have one
    Column("tokens_in", BigInteger, nullable=False),
    Column("tokens_out", BigInteger, nullable=False),
    Column("tokens_cache_read", BigInteger, nullable=False),
    Column("tokens_cache_write", BigInteger, nullable=False),
    Column("cost_nano_usd", BigInteger, nullable=False),
    Column("recall_hits", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

kept_values = Table(
    "kept_values",
    metadata,
    Column("key", Text, primary_key=True),  # e.g. telegram.last_poll_at
    Column("value", JSON, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
