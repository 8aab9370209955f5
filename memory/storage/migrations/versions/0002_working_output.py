"""Pieces of work, standing instructions and reminders; what was chosen on a card."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    op.add_column("users", sa.Column("timezone", sa.Text()))
    op.add_column("confirmations", sa.Column("claimed_action", sa.Text()))
    op.add_column("confirmations", sa.Column("is_working", sa.Boolean(), nullable=False, server_default=sa.text("0")))
    _session_states()
    _instructions()
    _reminders()


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")


def _session_states() -> None:
    op.create_table(
        "session_states",
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False, server_default=""),
        sa.Column("data", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("idle_turns", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("touched_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_session_states"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_session_states_session_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_session_states_user_id", ondelete="CASCADE"),
    )
    op.create_index("ix_session_states_touched_at", "session_states", ["touched_at"])


def _instructions() -> None:
    op.create_table(
        "instructions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("restored_from", _ID),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instructions"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_instructions_user_id", ondelete="SET NULL"),
    )
    op.create_index("ix_instructions_subject", "instructions", ["subject", "id"])


def _reminders() -> None:
    op.create_table(
        "reminders",
        sa.Column("id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("session_id", _ID),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("starts", sa.Text(), nullable=False),
        sa.Column("timezone", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text()),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False, server_default="waiting"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reminders"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_reminders_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_reminders_session_id", ondelete="SET NULL"),
    )
    op.create_index("ix_reminders_user_id", "reminders", ["user_id"])
    op.create_index("ix_reminders_owner", "reminders", ["owner"])
    op.create_index(
        "ix_reminders_due",
        "reminders",
        ["due_at"],
        sqlite_where=sa.text("status = 'waiting'"),
        postgresql_where=sa.text("status = 'waiting'"),
    )
