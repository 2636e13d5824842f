"""A console on SQLite, and one on PostgreSQL, for the tests of its parts."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings
from reference.console_pages import empty_site, look, open_site, seeded_folder, site
from reference.consoles import PostgresServer
from reference.made_once import made_once
from reference.watched_scene import fork_server, model, turn, video

__all__ = [
    "empty_site",
    "fork_server",
    "look",
    "model",
    "open_site",
    "seeded_folder",
    "site",
    "turn",
    "video",
]


@pytest.fixture(scope="session")
def first_start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a console that was opened once; migrations take half as long as a test."""

    def make(folder: Path) -> None:
        open_console(ServerSettings(folder)).database.close()

    return made_once(tmp_path_factory, "first-start", make)


@pytest.fixture
def console(tmp_path: Path, first_start: Path) -> Iterator[Console]:
    shutil.copytree(first_start, tmp_path / "data")
    opened = open_console(ServerSettings(tmp_path / "data"))
    yield opened
    opened.database.close()


@pytest.fixture
def postgres_console(tmp_path: Path, migrated_postgres: str) -> Iterator[Console]:
    opened = open_console(ServerSettings(tmp_path / "data", database=migrated_postgres))
    yield opened
    opened.database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def any_console(request: pytest.FixtureRequest) -> Console:
    """A console on either database."""
    name = "console" if request.param == "sqlite" else "postgres_console"
    found: Console = request.getfixturevalue(name)
    return found


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of PostgreSQL for all tests."""
    # Outside of pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="habitus-postgres-") as folder:
        server = PostgresServer(Path(folder))
        yield server
        with contextlib.suppress(subprocess.CalledProcessError):
            server.stop()


def new_database(server: PostgresServer, template: str = "template1") -> str:
    """Make a database of PostgreSQL, a copy of another; returns its name."""
    name = f"test_{os.urandom(6).hex()}"
    engine = create_engine(server.url(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    engine.dispose()
    return name


@pytest.fixture
def make_database(postgres_server: PostgresServer) -> Callable[[], str]:
    """A function that makes an empty database of PostgreSQL and returns its address."""
    return lambda: postgres_server.url(new_database(postgres_server))


@pytest.fixture
def postgres(make_database: Callable[[], str]) -> str:
    """Address of a new, empty database of PostgreSQL."""
    return make_database()


@pytest.fixture(scope="session")
def postgres_template(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Name of a database that a console has set up; nobody may connect to it."""
    name, folder = new_database(postgres_server), tmp_path_factory.mktemp("template")
    open_console(ServerSettings(folder, database=postgres_server.url(name))).database.close()
    return name


@pytest.fixture
def migrated_postgres(postgres_server: PostgresServer, postgres_template: str) -> str:
    """Address of a new database of PostgreSQL that a console has set up."""
    return postgres_server.url(new_database(postgres_server, postgres_template))
