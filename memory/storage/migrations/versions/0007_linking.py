"""Codes that join two identities; what an identity is by itself, and on which network a fact was told; ids of people
that are never given twice.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    op.add_column("identities", sa.Column("own_role", sa.Text()))
    op.execute("UPDATE identities SET own_role = (SELECT role FROM users WHERE users.id = identities.user_id)")
    op.add_column("facts", sa.Column("network", sa.Text()))
    op.create_table(
        "link_codes",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.Text()),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_link_codes_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("code", name="pk_link_codes"),
    )
    op.create_index("ix_link_codes_user_id", "link_codes", ["user_id"])
    if op.get_context().dialect.name == "sqlite":  # elsewhere a sequence gives no id twice
        with op.batch_alter_table("users", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")
