"""The word index of messages and the triggers that keep it true, as SQL for tests and for whoever compares.

Rule: whoever changes or deletes a message takes its words out of every index by that, in the same transaction.
"""

TABLE = "message_words"
"""FTS5 over `evidence.body`; the rowid is the message's id."""
TERMS = "message_terms"
"""Each occurrence of a term there: (term, doc)."""

_COUNTED = (
    "INSERT INTO evidence_changes (owner, {what}) VALUES ({row}.owner, 1) "
    "ON CONFLICT (owner) DO UPDATE SET {what} = {what} + 1"
)

CREATE = (
    (
        f"CREATE VIRTUAL TABLE {TABLE} USING fts5(body, content = 'evidence', content_rowid = 'message_id', "
        "tokenize = \"unicode61 remove_diacritics 0 tokenchars '_'''\")"
    ),
    f"CREATE VIRTUAL TABLE {TERMS} USING fts5vocab({TABLE}, instance)",
    (
        "CREATE TRIGGER message_said AFTER INSERT ON messages WHEN NOT NEW.is_ephemeral BEGIN "
        "INSERT OR IGNORE INTO evidence_queue (message_id) VALUES (NEW.id); END"
    ),
    (
        "CREATE TRIGGER message_changed AFTER UPDATE OF text, is_ephemeral, origin, session_id ON messages BEGIN "
        "DELETE FROM evidence WHERE message_id = OLD.id; "
        "INSERT OR IGNORE INTO evidence_queue (message_id) VALUES (NEW.id); END"
    ),
    (
        "CREATE TRIGGER session_moved AFTER UPDATE OF owner ON sessions BEGIN "
        "DELETE FROM evidence WHERE message_id IN (SELECT id FROM messages WHERE session_id = OLD.id); "
        "INSERT OR IGNORE INTO evidence_queue (message_id) SELECT id FROM messages WHERE session_id = OLD.id; END"
    ),
    (
        "CREATE TRIGGER evidence_added AFTER INSERT ON evidence BEGIN "
        f"INSERT INTO {TABLE} (rowid, body) VALUES (NEW.message_id, NEW.body); "
        f"{_COUNTED.format(what='words', row='NEW')}; END"
    ),
    (
        "CREATE TRIGGER evidence_gone AFTER DELETE ON evidence BEGIN "
        f"INSERT INTO {TABLE} ({TABLE}, rowid, body) VALUES ('delete', OLD.message_id, OLD.body); "
        f"{_COUNTED.format(what='words', row='OLD')}; END"
    ),
    (
        "CREATE TRIGGER vector_added AFTER INSERT ON message_vectors BEGIN "
        f"{_COUNTED.format(what='vectors', row='NEW')}; END"
    ),
    (
        "CREATE TRIGGER vector_gone AFTER DELETE ON message_vectors BEGIN "
        f"{_COUNTED.format(what='vectors', row='OLD')}; END"
    ),
)
