"""habitus serve: the web console."""

import os
import sys
from pathlib import Path
from typing import Any

import typer

import habitus
from habitus.cli import options
from habitus.cli.ending import stopped_by_signals
from habitus.cli.options import option, together
from habitus.cli.terminal import say

UPKEEP = together(
    dict,
    set_password=option(
        False, "Ask for the password of the user admin, set it, and end.", "--set-password"
    ),
    password_file=option(
        None,
        "Set the password of the user admin to the first line of this file, unless it was used "
        "before, then go on; for services. The environment variable HABITUS_PASSWORD does the "
        "same.",
    ),
    backup=option(
        None,
        "Write a backup to this file, and end; the console may be running. It holds the database, "
        "keys and models: keep it safe.",
        metavar="FILE",
    ),
    restore=option(None, "Put a backup into an empty data folder, and end.", metavar="FILE"),
)
"""What is done to the data folder before, or instead of, serving."""


@options.command
def serve(
    *,
    data: str = option(
        "habitus-data",
        "Folder of everything that it keeps; made where there is none.",
        metavar="DIR",
    ),
    host: str = option(
        "127.0.0.1", "Where it listens. Any but this machine's own needs a password."
    ),
    port: int = option(8420, "Port it listens at; 0 for any free one."),
    public_url: str | None = option(
        None,
        "Address by which people reach it, such as https://cameras.example.org: for links in "
        "messages, and another name that it answers to.",
    ),
    behind_proxy: bool = option(
        False,
        "A reverse proxy on this machine says who asks (X-Forwarded-For and -Proto).",
        "--behind-proxy",
    ),
    database: str | None = option(
        None,
        "Address of a database, as postgresql+psycopg://user:password@host/name; SQLite in the "
        "data folder if not given.",
        envvar="HABITUS_DATABASE",
    ),
    demo: bool = option(False, "Add three rendered junctions as cameras.", "--demo"),
    upkeep: dict[str, Any] = UPKEEP,
) -> None:
    """Watch cameras for weeks, in a browser: a short list of what was unusual, to look through.

    Cameras are added on the page, by address or by dropping a file onto it, or in DIR/cameras.toml.
    Each is learnt from its own footage, first after five minutes. Only this machine can reach the
    console until a password is set. It ends with Ctrl-C or SIGTERM, with nothing lost.
    Example: habitus serve --demo
    """
    if message := _upkeep(upkeep, data, database):
        say(message)
        return
    with stopped_by_signals() as stop:
        habitus.serve(
            data,
            host=host,
            port=port,
            public_url=public_url,
            behind_proxy=behind_proxy,
            database=database,
            demo=demo,
            started=lambda address: say(f"habitus: the console is at {address} (Ctrl-C ends it)"),
            stop=stop,
        )


def _upkeep(upkeep: dict[str, Any], data: str, database: str | None) -> str:
    """Do what is to be done to the data folder; return what to say of it if that is all."""
    backup, restore = upkeep["backup"], upkeep["restore"]
    if backup is not None:
        habitus.back_up(data, backup, database=database)
        return f"wrote {backup}"
    if restore is not None:
        habitus.restore(restore, data, database=database)
        return f"restored to {data}"
    set_password = upkeep["set_password"]
    password = _typed_password() if set_password else _service_password(upkeep["password_file"])
    if password is not None:
        habitus.set_password(data, password, database=database, again=set_password)
    if set_password:
        return f"the password of admin is set; it is used with --data {data}"
    return ""


def _typed_password() -> str:
    """Return a password that was typed twice, or the first line of what is not a terminal."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password: str = typer.prompt("password of admin", hide_input=True, confirmation_prompt="again")
    return password


def _service_password(file: str | None) -> str | None:
    """Return the password that a service is given, if any."""
    if file is None:
        return os.environ.get("HABITUS_PASSWORD") or None
    try:
        return Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise habitus.FileError(
            f"cannot read {file}: {reason}", parameter="password_file"
        ) from error
