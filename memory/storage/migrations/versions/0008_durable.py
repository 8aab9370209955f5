"""An index of what a model may read of a chat, so that a long one is counted without reading its rows."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_messages_durable",
        "messages",
        ["session_id", "id"],
        sqlite_where=sa.text("is_ephemeral = 0"),
        postgresql_where=sa.text("NOT is_ephemeral"),
    )


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")
