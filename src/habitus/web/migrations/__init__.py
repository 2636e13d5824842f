"""Bringing a database of any earlier version to the tables of `database`.

`versions` holds one file a step, as Alembic has them: the first one makes the tables, and each
change of them is a further step.
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
    """Bring the tables of a database to a version, the newest by default; make them if it is new.

    A file of SQLite with data is copied beside itself first. A database of a newer habitus, or
    with tables of another program, is refused.
    """
    steps = steps or scripts()
    versions = [step.revision for step in steps.walk_revisions()]
    wanted, present = revision or versions[0], revision_of(database)
    for version in (present, wanted):
        if version is not None and version not in versions:
            raise InvalidInputError(
                f"the database is of a newer habitus (its version is {version!r}, this one knows "
                f"up to {versions[0]!r}): upgrade habitus, or restore a backup that this one made",
                parameter="database",
            )
    if present == wanted:
        return
    with database.engine.connect() as connection:
        if present is None:
            _check_empty(connection)
        elif database.is_sqlite:
            path = Path(database.engine.url.database or "")
            copy_database(path, path.with_name(f"{path.name}.before-{wanted}"))
        _run(connection, steps, wanted)


def revision_of(database: Database) -> str | None:
    """Return the version of a database; None if it is new."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest() -> str:
    """Return the version that databases are brought to."""
    return str(scripts().get_current_head())


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
    def steps_from(present: Any, context: MigrationContext) -> list[RevisionStep]:
        return steps._upgrade_revs(wanted, present)

    with EnvironmentContext(Config(), steps, fn=steps_from) as environment:
        environment.configure(
            connection=connection, target_metadata=Base.metadata, render_as_batch=True
        )
        with environment.begin_transaction():
            environment.run_migrations()
    connection.commit()


def copy_database(path: Path, target: Path) -> None:
    """Copy a file of SQLite that may be in use."""
    with (
        written_whole(target) as temporary,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(temporary)) as copy,
    ):
        temporary.chmod(0o600)
        source.backup(copy)
