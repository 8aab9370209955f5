"""Alembic's entry: runs migrations on the connection that memory/storage/migrate.py hands over, and on no other.

A new one is begun with `python -m memory.storage.migrate "what changes"`.
"""

from alembic import context
from sqlalchemy.engine import Connection

from memory.storage.tables import metadata

connection = context.config.attributes["connection"]
assert isinstance(connection, Connection)
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transaction_per_migration=False,
)
context.run_migrations()  # inside the caller's transaction: all of an upgrade, or nothing
