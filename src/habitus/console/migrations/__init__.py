"""Bringing a database of any earlier version to the tables of `database`.

`versions` holds one file a step, as Alembic has them. `scripts/console_migration.py` writes the
first one anew from the tables; once a version of the console is released, it writes a further one.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from habitus.console.database import Base, Database
from habitus.errors import InvalidInputError
from habitus.files import written_whole

FOLDER = Path(__file__).parent


def upgrade(database: Database) -> None:
    """Make the tables of a new database, or bring those of an older version up to date.

    A file of SQLite with data is copied beside itself first.

    Raises
    ------
    InvalidInputError
        If the database is of a newer habitus, or holds the tables of another program.
    """
    steps = scripts()
    head = steps.get_current_head()
    with database.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
        _check(connection, found, [each.revision for each in steps.walk_revisions()])
    if found == head:
        return
    if found is not None and database.is_sqlite:
        _copy(Path(database.engine.url.database or ""), f"before-{head}")
    with database.engine.connect() as connection:
        _run(connection, steps)


def scripts() -> ScriptDirectory:
    """Return the steps."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def _check(connection: Connection, found: str | None, known: list[str]) -> None:
    if found is not None and found not in known:
        raise InvalidInputError(
            f"the database is of a newer habitus (its version is {found!r}, this one knows up to "
            f"{known[0]!r}): upgrade habitus, or restore a backup that this one made",
            parameter="database",
        )
    if found is None and (foreign := set(inspect(connection).get_table_names()) & _tables()):
        raise InvalidInputError(
            f"the database has a table {min(foreign)!r} that habitus did not make: choose an "
            "empty database",
            parameter="database",
        )


def _tables() -> set[str]:
    return set(Base.metadata.tables)


def _run(connection: Connection, steps: ScriptDirectory) -> None:
    def to_head(found: Any, context: MigrationContext) -> list[RevisionStep]:
        return steps._upgrade_revs("head", found)

    with EnvironmentContext(Config(), steps, fn=to_head) as environment:
        environment.configure(
            connection=connection, target_metadata=Base.metadata, render_as_batch=True
        )
        with environment.begin_transaction():
            environment.run_migrations()
    connection.commit()


def _copy(path: Path, name: str) -> None:
    """Copy a database that may be in use to a file beside it."""
    with (
        written_whole(path.with_name(f"{path.name}.{name}")) as temporary,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(temporary)) as copy,
    ):
        source.backup(copy)
