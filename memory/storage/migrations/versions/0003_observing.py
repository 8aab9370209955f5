"""Observations with their evidence, feedback and word index, teams, and who is in a group."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    _teams()
    _team_members()
    _chat_members()
    _observations()
    _observation_evidence()
    _observation_feedback()
    _hook_events()
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE observation_words USING fts5(owner, body, tokenize = 'unicode61 remove_diacritics 0')"
        )


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")


def _teams() -> None:
    op.create_table(
        "teams",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_teams_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_teams"),
        sa.UniqueConstraint("name", name="uq_teams_name"),
    )


def _team_members() -> None:
    op.create_table(
        "team_members",
        sa.Column("team_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_team_members_team_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_team_members_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("team_id", "user_id", name="pk_team_members"),
    )


def _chat_members() -> None:
    op.create_table(
        "chat_members",
        sa.Column("chat_id", _ID, nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["chat_id"], ["chats.id"], name="fk_chat_members_chat_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chat_id", "identity", name="pk_chat_members"),
    )


def _observations() -> None:
    op.create_table(
        "observations",
        sa.Column("id", _ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("session_id", _ID),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("narrative", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("concepts", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("attribute", sa.Text(), server_default="", nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("trigger_source", sa.Text(), nullable=False),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("discovery_tokens", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("cost_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("relevance_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("proof_count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("confidence", sa.Float(), server_default="1.0", nullable=False),
        sa.Column("valid_from", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger()),
        sa.Column("superseded_by", _ID),
        sa.Column("rival_id", _ID),
        sa.Column("asked_at", sa.BigInteger()),
        sa.Column("hidden_at", sa.BigInteger()),
        sa.Column("indexed_as", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_observations_session_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_observations_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_observations"),
    )
    op.create_index("ix_observations_owner_slot", "observations", ["owner", "subject", "attribute"])
    op.create_index("ix_observations_session_id", "observations", ["session_id"])
    op.create_index(
        "uq_observations_owner_content_hash",
        "observations",
        ["owner", "content_hash"],
        unique=True,
        sqlite_where=sa.text("valid_to IS NULL"),
        postgresql_where=sa.text("valid_to IS NULL"),
    )


def _observation_evidence() -> None:
    op.create_table(
        "observation_evidence",
        sa.Column("id", _ID, nullable=False),
        sa.Column("observation_id", _ID, nullable=False),
        sa.Column("message_id", _ID),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_observation_evidence_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["observation_id"], ["observations.id"], name="fk_observation_evidence_observation_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_observation_evidence"),
    )
    op.create_index("ix_observation_evidence_message_id", "observation_evidence", ["message_id"])
    op.create_index("ix_observation_evidence_observation_id", "observation_evidence", ["observation_id"])


def _observation_feedback() -> None:
    op.create_table(
        "observation_feedback",
        sa.Column("id", _ID, nullable=False),
        sa.Column("observation_id", _ID, nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("message_id", _ID),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_observation_feedback_message_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["observation_id"], ["observations.id"], name="fk_observation_feedback_observation_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_observation_feedback_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_observation_feedback"),
    )
    op.create_index("ix_observation_feedback_observation_id", "observation_feedback", ["observation_id"])


def _hook_events() -> None:
    op.create_table(
        "hook_events",
        sa.Column("hook", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hook", "event_id", name="pk_hook_events"),
    )
