"""Messages as evidence: their words and vectors, and the triggers that keep both true."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite gives rowids only to INTEGER keys


def upgrade() -> None:
    _evidence()
    _vectors()
    op.create_table(
        "evidence_queue",
        sa.Column("message_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_evidence_queue_message_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", name="pk_evidence_queue"),
    )
    op.create_table(
        "evidence_changes",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("words", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("vectors", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_evidence_changes"),
    )
    if op.get_context().dialect.name == "sqlite":
        for statement in _IN_SQLITE:
            op.execute(statement)
    op.execute("INSERT INTO evidence_queue (message_id) SELECT id FROM messages WHERE NOT is_ephemeral")


def downgrade() -> None:
    raise NotImplementedError("restore the backup that was taken before the upgrade instead")


def _evidence() -> None:
    op.create_table(
        "evidence",
        sa.Column("message_id", _ID, nullable=False),
        sa.Column("session_id", _ID, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("speaker", _ID, nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("is_question", sa.Boolean(), nullable=False),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("indexed_as", sa.Text()),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_evidence_message_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("message_id", name="pk_evidence"),
    )
    op.create_index("ix_evidence_indexed_as", "evidence", ["indexed_as"])
    op.create_index("ix_evidence_owner_message_id", "evidence", ["owner", "message_id"])


def _vectors() -> None:
    op.create_table(
        "message_vectors",
        sa.Column("message_id", _ID, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["evidence.message_id"], name="fk_message_vectors_message_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", "model", "part", name="pk_message_vectors"),
    )
    op.create_index("ix_message_vectors_owner_model_message_id", "message_vectors", ["owner", "model", "message_id"])


# frozen: one statement a line, as long as it is
_IN_SQLITE = (
    "CREATE VIRTUAL TABLE message_words USING fts5(body, content = 'evidence', content_rowid = 'message_id', tokenize = \"unicode61 remove_diacritics 0 tokenchars '_'''\")",  # noqa: E501 - one statement
    "CREATE VIRTUAL TABLE message_terms USING fts5vocab(message_words, instance)",
    "CREATE TRIGGER message_said AFTER INSERT ON messages WHEN NOT NEW.is_ephemeral BEGIN INSERT OR IGNORE INTO evidence_queue (message_id) VALUES (NEW.id); END",  # noqa: E501 - one statement
    "CREATE TRIGGER message_changed AFTER UPDATE OF text, is_ephemeral, origin, session_id ON messages BEGIN DELETE FROM evidence WHERE message_id = OLD.id; INSERT OR IGNORE INTO evidence_queue (message_id) VALUES (NEW.id); END",  # noqa: E501 - one statement
    "CREATE TRIGGER session_moved AFTER UPDATE OF owner ON sessions BEGIN DELETE FROM evidence WHERE message_id IN (SELECT id FROM messages WHERE session_id = OLD.id); INSERT OR IGNORE INTO evidence_queue (message_id) SELECT id FROM messages WHERE session_id = OLD.id; END",  # noqa: E501 - one statement
    "CREATE TRIGGER evidence_added AFTER INSERT ON evidence BEGIN INSERT INTO message_words (rowid, body) VALUES (NEW.message_id, NEW.body); INSERT INTO evidence_changes (owner, words) VALUES (NEW.owner, 1) ON CONFLICT (owner) DO UPDATE SET words = words + 1; END",  # noqa: E501 - one statement
    "CREATE TRIGGER evidence_gone AFTER DELETE ON evidence BEGIN INSERT INTO message_words (message_words, rowid, body) VALUES ('delete', OLD.message_id, OLD.body); INSERT INTO evidence_changes (owner, words) VALUES (OLD.owner, 1) ON CONFLICT (owner) DO UPDATE SET words = words + 1; END",  # noqa: E501 - one statement
    "CREATE TRIGGER vector_added AFTER INSERT ON message_vectors BEGIN INSERT INTO evidence_changes (owner, vectors) VALUES (NEW.owner, 1) ON CONFLICT (owner) DO UPDATE SET vectors = vectors + 1; END",  # noqa: E501 - one statement
    "CREATE TRIGGER vector_gone AFTER DELETE ON message_vectors BEGIN INSERT INTO evidence_changes (owner, vectors) VALUES (OLD.owner, 1) ON CONFLICT (owner) DO UPDATE SET vectors = vectors + 1; END",  # noqa: E501 - one statement
)
