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

from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.web.database import Base, Database

FOLDER = Path(__file__).parent


def upgrade(
    database: Database, revision: str | None = None, *, steps: ScriptDirectory | None = None
) -> None:
    """Make the tables of a new database, or bring those of an older version up to date.

    A file of SQLite with data is copied beside itself first.

    Parameters
    ----------
    database
        The database.
    revision
        Version to bring it to; the newest by default.
    steps
        The steps; those of this habitus by default.

    Raises
    ------
    InvalidInputError
        If the database is of a newer habitus, or holds the tables of another program.
    """
    steps = steps or scripts()
    known = [each.revision for each in steps.walk_revisions()]
    wanted, found = revision or known[0], revision_of(database)
    for each in (found, wanted):
        if each is not None and each not in known:
            raise InvalidInputError(
                f"the database is of a newer habitus (its version is {each!r}, this one knows up "
                f"to {known[0]!r}): upgrade habitus, or restore a backup that this one made",
                parameter="database",
            )
    if found == wanted:
        return
    with database.engine.connect() as connection:
        if found is None:
            _check_empty(connection)
        elif database.is_sqlite:
            _copy(Path(database.engine.url.database or ""), f"before-{wanted}")
        _run(connection, steps, wanted)


def revision_of(database: Database) -> str | None:
    """Return the version of a database; None if it is new."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def scripts(folder: Path = FOLDER) -> ScriptDirectory:
    """Return the steps of a folder."""
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def _check_empty(connection: Connection) -> None:
    """Raise where tables of ours are there that no step has made."""
    if foreign := set(inspect(connection).get_table_names()) & set(Base.metadata.tables):
        raise InvalidInputError(
            f"the database has a table {min(foreign)!r} that habitus did not make: choose an "
            "empty database",
            parameter="database",
        )


def _run(connection: Connection, steps: ScriptDirectory, wanted: str) -> None:
    def steps_from(found: Any, context: MigrationContext) -> list[RevisionStep]:
        return steps._upgrade_revs(wanted, found)

    with EnvironmentContext(Config(), steps, fn=steps_from) as environment:
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
        temporary.chmod(0o600)
        source.backup(copy)
