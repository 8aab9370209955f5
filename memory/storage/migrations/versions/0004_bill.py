"""What was spent, which model a session is pinned or routed to, and what a provider condensed it to."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    _spend()
    _sessions()
    _compactions()


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")


def _spend() -> None:
    op.create_table(
        "spend",
        sa.Column("id", _ID, nullable=False),
        sa.Column("user_id", _ID),
        sa.Column("session_id", _ID),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input", sa.Integer(), nullable=False),
        sa.Column("output", sa.Integer(), nullable=False),
        sa.Column("cache_read", sa.Integer(), nullable=False),
        sa.Column("cache_write", sa.Integer(), nullable=False),
        sa.Column("cache_write_1h", sa.Integer(), nullable=False),
        sa.Column("is_estimate", sa.Boolean(), nullable=False, server_default=sa.text("0")),
        sa.Column("nano_usd", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_spend_session_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_spend_user_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_spend"),
    )
    op.create_index("ix_spend_created_at", "spend", ["created_at"])
    op.create_index("ix_spend_user_id_created_at", "spend", ["user_id", "created_at"])


def _sessions() -> None:
    op.add_column("sessions", sa.Column("pinned_tier", sa.Text()))
    op.add_column("sessions", sa.Column("routed_tier", sa.Text()))


def _compactions() -> None:
    op.create_table(
        "compactions",
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("block", sa.JSON()),
        sa.Column("text", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("through_id", _ID, nullable=False, server_default="0"),
        sa.Column("epoch", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger(), nullable=False, server_default="0"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_compactions_session_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session_id", name="pk_compactions"),
    )
