"""Tokens for programs, login links and sessions for browsers, sums of telemetry."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    _api_tokens()
    _login_links()
    _web_sessions()
    _telemetry()


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")


def _api_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("grants", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.UniqueConstraint("hash", name="uq_api_tokens_hash"),
    )


def _login_links() -> None:
    op.create_table(
        "login_links",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_login_links_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hash", name="pk_login_links"),
    )


def _web_sessions() -> None:
    op.create_table(
        "web_sessions",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_web_sessions_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hash", name="pk_web_sessions"),
    )


def _telemetry() -> None:
    op.create_index("ix_telemetry_events_created_at", "telemetry_events", ["created_at"])
    op.create_index("ix_telemetry_events_user_id_created_at", "telemetry_events", ["user_id", "created_at"])
    sums = (
        *("events", "successes", "duration_ms", "first_token_ms", "first_tokens", "tokens_in", "tokens_out"),
        *("tokens_cache_read", "tokens_cache_write", "cost_nano_usd", "recall_hits"),
    )
    op.create_table(
        "telemetry_quarters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("quarter", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in sums),
        sa.PrimaryKeyConstraint("name", "quarter", "label", name="pk_telemetry_quarters"),
        sqlite_with_rowid=False,
    )
