"""A console on SQLite, and one on PostgreSQL, for the tests of its parts."""

import contextlib
import os
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


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    opened = open_console(ServerSettings(tmp_path / "data"))
    yield opened
    opened.database.close()


@pytest.fixture
def postgres_console(tmp_path: Path, postgres: str) -> Iterator[Console]:
    opened = open_console(ServerSettings(tmp_path / "data", database=postgres))
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


@pytest.fixture
def make_database(postgres_server: PostgresServer) -> Callable[[], str]:
    """A function that makes an empty database of PostgreSQL and returns its address."""

    def make() -> str:
        name = f"test_{os.urandom(6).hex()}"
        engine = create_engine(postgres_server.url(), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return postgres_server.url(name)

    return make


@pytest.fixture
def postgres(make_database: Callable[[], str]) -> str:
    """Address of a new, empty database of PostgreSQL."""
    return make_database()
