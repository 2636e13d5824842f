"""The console as a whole: its parts, and how they start and end."""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import habitus
from habitus.errors import FileError, InvalidInputError
from habitus.files import sole_use
from habitus.web.bulletin import Bulletin
from habitus.web.database import Database, database_errors
from habitus.web.migrations import upgrade
from habitus.web.server_log import LOGGER, logged
from habitus.web.server_settings import PORT, ServerSettings
from habitus.web.vault import Vault

if TYPE_CHECKING:
    from habitus.web.delivery import Deliverer
    from habitus.web.supervisor import Supervisor

# Seconds that open requests have once the console ends.
GRACE = 5
LAST_PORT = 65_535
# Connections at once, open pages among them; further ones are refused, and tried again.
MOST_CONNECTIONS = 500


@dataclass
class Console:
    """The parts that pages, the API and the threads of the server share."""

    settings: ServerSettings
    database: Database
    vault: Vault
    bulletin: Bulletin = field(default_factory=Bulletin)
    supervisor: "Supervisor | None" = None
    deliverer: "Deliverer | None" = None
    closing: threading.Event = field(default_factory=threading.Event)
    """Set once the server ends: streams of news end too."""


def open_console(settings: ServerSettings) -> Console:
    """Return the console of a data folder, its database up to date; nothing runs yet."""
    with _file_errors(settings.data):
        _make_folders(settings.data)
        database = Database.of(settings)
        upgrade(database)
        return Console(settings, database, Vault.of_file(settings.secret_key))


def serve(
    data: str | os.PathLike[str] = "habitus-data",
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    database: str | None = None,
    demo: bool = False,
    behind_proxy: bool = False,
    public_url: str | None = None,
    started: Callable[[str], None] = lambda address: None,
    stop: threading.Event | None = None,
) -> None:
    """Run the web console until it is stopped.

    Parameters
    ----------
    data
        Folder of everything that it keeps; made where there is none.
    host, port
        Where it listens; 0 is any free port. A host that others can reach needs a password.
    database
        Address of a PostgreSQL database; SQLite in the data folder if None.
    demo
        Add three rendered junctions as cameras.
    behind_proxy
        Whether a reverse proxy on this machine says who asks, and by which scheme.
    public_url
        Address by which people reach it.
    started
        Called with the address to open once it answers.
    stop
        Ends it, once it is set.

    Raises
    ------
    InvalidInputError
        If another console runs with the same folder, it cannot listen there, or no password is set
        and others can reach it.
    FileError
        If its folder or database cannot be used.
    """
    settings = ServerSettings(
        Path(data), host, port, database, demo, behind_proxy, public_url and _checked(public_url)
    )
    from habitus.web.backup import put_in_place

    with ExitStack() as stack:
        # A database is migrated only by the console that will use it.
        stack.enter_context(_alone(settings.data))
        with _file_errors(settings.data):
            restored = "" if settings.database else put_in_place(settings)
        console = open_console(settings)
        stack.enter_context(logged(settings.data))
        LOGGER.info("habitus %s starts", habitus.__version__)
        stack.callback(LOGGER.info, "habitus ends")
        if restored:
            console.bulletin.post(restored)
        stack.enter_context(closing(console.database))
        listener = stack.enter_context(listening(settings))
        _check_password(console)
        stack.enter_context(working(console))
        run(console, listener, started, stop or threading.Event())


@contextmanager
def working(console: Console) -> Iterator[None]:
    """Run what a console does beside answering: watch cameras, send events, delete old ones."""
    from habitus.web.camera_file import apply_camera_file, check_camera_file
    from habitus.web.delivery import Deliverer
    from habitus.web.demo_cameras import Demo
    from habitus.web.retention import Retention
    from habitus.web.supervisor import Supervisor

    check_camera_file(console.settings)
    with ExitStack() as stack:
        console.supervisor = Supervisor(console)
        stack.callback(console.supervisor.stop)
        console.supervisor.start()
        apply_camera_file(console)
        console.deliverer = Deliverer(console)
        threads: list[Deliverer | Retention | Demo] = [console.deliverer, Retention(console)]
        if console.settings.demo:
            threads.append(Demo(console, console.supervisor.fork_server))
        for thread in threads:
            thread.start()
            stack.callback(thread.stop)
        yield


def set_password(
    data: str | os.PathLike[str],
    password: str,
    *,
    name: str = "admin",
    database: str | None = None,
    again: bool = True,
) -> None:
    """Set the password of a user of the console, who becomes admin.

    Parameters
    ----------
    data
        Folder of the console; made where there is none.
    password
        At least 8 characters.
    name
        Who logs in with it; made where there is none of that name.
    database
        As of `serve`.
    again
        Whether the password that was set so last is set again. A service that has the same one at
        each start does not: it would undo what its user changed since.

    Raises
    ------
    InvalidInputError
        If the password is too short.
    FileError
        If the folder or the database cannot be used.
    """
    from habitus.web.administration import give_password

    console = open_console(ServerSettings(Path(data), database=database))
    with closing(console.database):
        give_password(console, name, password, again=again)


def run(
    console: Console,
    listener: socket.socket,
    started: Callable[[str], None],
    stop: threading.Event,
) -> None:
    """Answer requests at a socket until it is stopped."""
    # Nothing of the web is loaded before the folder and the port are known to be good.
    import uvicorn

    from habitus.web.app import create_app

    class Server(uvicorn.Server):
        """Ends once `stop` is set; signals are the business of the command."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started(_address(console.settings, listener))

        async def on_tick(self, counter: int) -> bool:
            if stop.is_set():
                console.closing.set()
                console.bulletin.publish("closing")
                return True
            return await super().on_tick(counter)

    config = uvicorn.Config(
        create_app(console),
        http="h11",
        loop="asyncio",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=console.settings.behind_proxy,
        timeout_keep_alive=30,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )
    asyncio.run(Server(config).serve([listener]))


def _make_folders(data: Path) -> None:
    # The data folder may have been there before, for others to read.
    for folder in (data, data / "cameras"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Keep other consoles out of a data folder."""
    with ExitStack() as stack:
        with _file_errors(data):
            _make_folders(data)
            refusal = InvalidInputError(
                f"another console runs with {data}: stop it, or name another folder",
                parameter="data",
            )
            stack.enter_context(sole_use(data / "lock", refusal))
        yield


@contextmanager
def _file_errors(data: Path) -> Iterator[None]:
    """Say in one line that a data folder or its database cannot be used."""
    try:
        with database_errors():
            yield
    except OSError as error:
        raise FileError(
            f"cannot write to {data}: {error.strerror or error}: name another folder",
            parameter="data",
        ) from error


def _check_password(console: Console) -> None:
    """Raise if others can reach a console that has no password."""
    from habitus.web.security import has_users

    settings = console.settings
    with console.database.session() as session:
        if settings.is_exposed and not has_users(session):
            raise InvalidInputError(
                f"{settings.public_url or settings.host} can be reached by others, and no "
                "password is set: set one first",
                parameter="set_password",
            )


@contextmanager
def listening(settings: ServerSettings) -> Iterator[socket.socket]:
    """Open the socket that requests come to."""
    if not 0 <= settings.port <= LAST_PORT:
        raise InvalidInputError(
            f"port must be from 0 to {LAST_PORT}, found {settings.port}", parameter="port"
        )
    try:
        places = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = places[0]
        with socket.create_server(address[:2], family=family, backlog=256) as listener:
            # asyncio does so only for sockets of its own making: answers would wait for an
            # acknowledgement, 40 ms each.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield listener
    except OSError as error:
        unknown = isinstance(error, socket.gaierror)
        has_number = error.errno is not None and not unknown
        reason = os.strerror(error.errno or 0) if has_number else error.strerror
        message = f"cannot listen at {settings.host}, port {settings.port}: {reason}"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise InvalidInputError(f"{message}: raise the limit (ulimit -n)") from error
        raise InvalidInputError(message, parameter="host" if unknown else "port") from error


def _address(settings: ServerSettings, listener: socket.socket) -> str:
    """Return the address to open in a browser."""
    if settings.public_url is not None:
        return settings.public_url
    port = listener.getsockname()[1]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _checked(public_url: str) -> str:
    scheme, separator, rest = public_url.partition("://")
    if scheme not in ("http", "https") or not separator or not rest.strip("/"):
        raise InvalidInputError(
            f"public_url must be as https://cameras.example.org, found {public_url}",
            parameter="public_url",
        )
    return public_url.rstrip("/")
