"""The tables of the first release, and the word index of summaries."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    _people()
    _places()
    _log()
    _traffic()
    _memory()
    _records()
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE summary_words USING fts5(owner, body, tokenize = 'unicode61 remove_diacritics 0')"
        )


def downgrade() -> None:
    raise NotImplementedError("there is nothing before the first schema: restore a backup instead")


def _people() -> None:
    op.create_table(
        "users",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("language", sa.Text()),
        sa.Column("client_language", sa.Text(), server_default="en", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
    )
    op.create_table(
        "identities",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_identities_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name="pk_identities"),
    )
    op.create_index("ix_identities_user_id", "identities", ["user_id"])
    op.create_table(
        "grants",
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_grants_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "name", name="pk_grants"),
    )
    op.create_table(
        "pairing_codes",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("code", name="pk_pairing_codes"),
    )
    op.create_index("ix_pairing_codes_identity", "pairing_codes", ["identity"])


def _places() -> None:
    op.create_table(
        "chats",
        sa.Column("id", _ID, nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_chats"),
    )
    op.create_index("uq_chats_transport_external_id", "chats", ["transport", "external_id"], unique=True)
    op.create_table(
        "sessions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("chat_id", _ID, nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("user_prompt", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("metadata", sa.JSON(), server_default="{}", nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], name="fk_sessions_chat_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sessions_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_owner", "sessions", ["owner"])
    op.create_index("ix_sessions_place", "sessions", ["chat_id", "thread"])
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_index(
        "uq_sessions_current",
        "sessions",
        ["chat_id", "thread"],
        unique=True,
        sqlite_where=sa.text("is_current"),
        postgresql_where=sa.text("is_current"),
    )


def _log() -> None:
    op.create_table(
        "messages",
        sa.Column("id", _ID, nullable=False),
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), server_default="typed", nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("blocks", sa.JSON()),
        sa.Column("is_ephemeral", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("tool", sa.Text()),
        sa.Column("inbox_id", _ID),
        sa.Column("external_ref", sa.Text()),
        sa.Column("duration_ms", sa.Integer()),
        sa.Column("memory_trace", sa.JSON()),
        sa.Column("model", sa.Text()),
        sa.Column("redacted_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_messages_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_messages_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index(
        "uq_messages_inbox_id_role",
        "messages",
        ["inbox_id", "role"],
        unique=True,
        sqlite_where=sa.text("NOT is_ephemeral"),
        postgresql_where=sa.text("NOT is_ephemeral"),
    )
    op.create_index("ix_messages_session_id_external_ref", "messages", ["session_id", "external_ref"])
    op.create_index("ix_messages_session_id_id", "messages", ["session_id", "id"])
    op.create_index("ix_messages_user_id", "messages", ["user_id"])


def _traffic() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", _ID, nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
    )
    op.create_index(
        "ix_inbox_open",
        "inbox",
        ["transport", "id"],
        sqlite_where=sa.text("status <> 'done'"),
        postgresql_where=sa.text("status <> 'done'"),
    )
    op.create_index("uq_inbox_transport_external_id", "inbox", ["transport", "external_id"], unique=True)
    op.create_table(
        "outbox",
        sa.Column("id", _ID, nullable=False),
        sa.Column("transport", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("event", sa.JSON()),
        sa.Column("user_id", _ID),
        sa.Column("session_id", _ID),
        sa.Column("message_id", _ID),
        sa.Column("inbox_id", _ID),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("refs", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_outbox_message_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_outbox_session_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_outbox_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
    )
    op.create_index("ix_outbox_inbox_id", "outbox", ["inbox_id"])
    op.create_index("ix_outbox_message_id", "outbox", ["message_id"])
    op.create_index(
        "ix_outbox_open",
        "outbox",
        ["transport", "id"],
        sqlite_where=sa.text("status not in ('sent', 'unknown', 'failed')"),
        postgresql_where=sa.text("status not in ('sent', 'unknown', 'failed')"),
    )
    op.create_index("ix_outbox_session_id", "outbox", ["session_id"])
    op.create_index("ix_outbox_user_id", "outbox", ["user_id"])
    op.create_table(
        "confirmations",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("session_id", _ID),
        sa.Column("card", sa.Text(), nullable=False),
        sa.Column("claimed_by", _ID),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_confirmations_session_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_confirmations_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("token", name="pk_confirmations"),
    )
    op.create_index("ix_confirmations_card", "confirmations", ["card"])
    op.create_index("ix_confirmations_session_id", "confirmations", ["session_id"])
    op.create_index("ix_confirmations_user_id", "confirmations", ["user_id"])


def _memory() -> None:
    op.create_table(
        "facts",
        sa.Column("id", _ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("slot", sa.Text()),
        sa.Column("source_message_ids", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger()),
        sa.Column("superseded_by", _ID),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_facts_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_facts"),
    )
    op.create_index("ix_facts_owner", "facts", ["owner", "id"])
    op.create_index(
        "uq_facts_owner_content_hash",
        "facts",
        ["owner", "content_hash"],
        unique=True,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )
    op.create_table(
        "summaries",
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), server_default="", nullable=False),
        sa.Column("investigated", sa.Text(), server_default="", nullable=False),
        sa.Column("learned", sa.Text(), server_default="", nullable=False),
        sa.Column("completed", sa.Text(), server_default="", nullable=False),
        sa.Column("next_steps", sa.Text(), server_default="", nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("generated_by_model", sa.Text(), nullable=False),
        sa.Column("watermark", _ID, nullable=False),
        sa.Column("indexed_as", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_summaries_session_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session_id", name="pk_summaries"),
    )
    op.create_index("ix_summaries_owner", "summaries", ["owner"])
    op.create_table(
        "learning",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("watermark", _ID, server_default="0", nullable=False),
        sa.Column("lease_until", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("claim", sa.Text()),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_error", sa.Text()),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_learning_session_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("kind", "session_id", name="pk_learning"),
    )


def _records() -> None:
    op.create_table(
        "telemetry_events",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("session_id", _ID),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_telemetry_events"),
    )
    op.create_index("ix_telemetry_events_name_created_at", "telemetry_events", ["name", "created_at"])
    op.create_table(
        "kept_values",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_kept_values"),
    )
