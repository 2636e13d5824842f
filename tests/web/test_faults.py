"""What goes wrong within weeks, with real signals, real locks and real limits."""

import contextlib
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil
from sqlalchemy import func, select

from habitus.jobs.fork_server import ForkServer
from habitus.site.journal import file_event
from habitus.web.database import EventRow, OutboxEntry
from habitus.web.server import Console
from habitus.web.supervisor import Supervisor
from reference.consoles import START, PostgresServer, add_camera, add_playing, entry
from reference.processes import LONG, descendants, running, wait_until
from reference.telling import add_channel, receiver

Start = Callable[..., "subprocess.Popen[str]"]


def n_events(console: Console) -> int:
    with console.database.session() as session:
        return session.scalar(select(func.count()).select_from(EventRow)) or 0


@contextmanager
def supervised(console: Console, fork_server: ForkServer) -> Iterator[Supervisor]:
    supervisor = console.supervisor = Supervisor(console, fork_server)
    supervisor.start()
    try:
        yield supervisor
    finally:
        supervisor.stop()


def has_notice(console: Console, words: str) -> bool:
    return any(words in notice.text for notice in console.bulletin.notices())


def is_watching(supervisor: Supervisor) -> bool:
    judged = supervisor.latest("north").judged
    return judged is not None and judged.normality is not None


def goes_on(supervisor: Supervisor) -> None:
    """Wait until documents come that were not there before."""
    before = supervisor.latest("north").judged
    wait_until(lambda: supervisor.latest("north").judged != before, "documents go on")


def serving(console: Console, start: Start) -> "tuple[subprocess.Popen[str], str]":
    """Start the command; return its process and the address that it prints."""
    data = console.settings.data
    command = [sys.executable, "-m", "habitus", "serve", "--data", data, "--port", "0"]
    with (data / "said").open("a") as said:
        server = start(command, stdout=subprocess.PIPE, stderr=said)
    assert server.stdout is not None
    line = server.stdout.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    return server, found.group()


def test_a_killed_server_loses_and_doubles_nothing(
    console: Console, turn: Path, model: Path, start: Start
) -> None:
    add_playing(console, turn, model)
    with receiver() as hook:
        add_channel(console, "webhook", {"url": hook.url})
        server, _ = serving(console, start)
        wait_until(lambda: n_events(console) >= 2, "events")
        others = descendants(server.pid)
        server.send_signal(signal.SIGKILL)
        server.wait()
        wait_until(lambda: not any(map(running, others)), "no process is left")
        server, _ = serving(console, start)
        n = n_events(console)
        wait_until(lambda: n_events(console) > n, "all goes on by itself")
        server.send_signal(signal.SIGTERM)
        assert server.wait(LONG) == 0
        told = Counter(posted.key for posted in hook.posted)
    with console.database.session() as session:
        events = {event.id: event for event in session.scalars(select(EventRow))}
        subjects = session.scalars(select(OutboxEntry.subject)).all()
    assert all(event.end is not None for event in events.values())
    alarms = {event_id for event_id, event in events.items() if event.alarm}
    assert set(subjects) == {f"{each}/{kind}" for each in alarms for kind in ("started", "ended")}
    assert {posted.body["event"]["id"] for posted in hook.posted} <= alarms
    # What a receiver had but had not answered when the server was killed is told again.
    assert sum(told.values()) - len(told) <= 2
    assert "Traceback" not in (console.settings.data / "said").read_text()
    folder = console.settings.camera_folder("north")
    assert list((folder / "journal").glob("*.json")) == []
    for event in events.values():
        assert (folder / "events" / str(event.thumbnail)).is_file()


def test_a_database_that_is_stopped_for_a_while(
    postgres_console: Console,
    postgres_server: PostgresServer,
    fork_server: ForkServer,
    turn: Path,
    model: Path,
) -> None:
    console = postgres_console
    add_playing(console, turn, model)
    journal = console.settings.camera_folder("north") / "journal"

    def waiting() -> set[str]:
        return {path.name.split("-")[1] for path in journal.glob("*.json")}

    def are_written(ids: set[str]) -> bool:
        with console.database.session() as session:
            return ids <= set(session.scalars(select(EventRow.id)))

    with supervised(console, fork_server) as supervisor:
        wait_until(lambda: n_events(console) > 0, "an event")
        pid = supervisor.latest("north").pid
        with stopped(postgres_server):
            wait_until(lambda: has_notice(console, "database cannot be used"), "a notice")
            wait_until(waiting, "what waits in the journal")
            goes_on(supervisor)
            first = waiting()
        wait_until(lambda: are_written(first), "what waited is written")
        assert supervisor.latest("north").pid == pid
        with stopped(postgres_server):
            wait_until(waiting, "what waits in the journal")
            supervisor.stop()
            second = waiting()
    with supervised(console, fork_server):
        wait_until(lambda: are_written(second), "what waited is written after a restart")


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Have a database stopped in the block."""
    server.stop()
    try:
        yield
    finally:
        server.start()


def test_a_database_that_somebody_else_holds(
    console: Console, fork_server: ForkServer, turn: Path, model: Path
) -> None:
    add_playing(console, turn, model)
    with supervised(console, fork_server) as supervisor:
        wait_until(lambda: is_watching(supervisor), "it watches")
        with closing(sqlite3.connect(console.settings.data / "habitus.sqlite")) as other:
            other.execute("BEGIN IMMEDIATE")
            n = n_events(console)
            wait_until(lambda: has_notice(console, "locked"), "a notice")
            assert n_events(console) == n
            goes_on(supervisor)
        wait_until(lambda: n_events(console) > n, "it goes on")
        assert supervisor.latest("north").restarts == 0


def test_a_disk_that_is_full_for_a_while(
    console: Console, turn: Path, model: Path, start: Start
) -> None:
    add_playing(console, turn, model)
    server, address = serving(console, start)
    wait_until(lambda: n_events(console) > 0, "an event")
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit(server, (1000, hard))  # no file can grow beyond this: neither database nor pictures

    def told() -> bool:
        notices = httpx.get(f"{address}api/notices").json()
        said = " ".join(notice["text"] for notice in notices)
        return "database cannot be used" in said or "disk" in said

    wait_until(told, "a notice")
    assert server.poll() is None
    limit(server, before)
    n = n_events(console)
    wait_until(lambda: n_events(console) > n + 1, "it goes on")
    server.send_signal(signal.SIGTERM)
    assert server.wait(LONG) == 0
    with console.database.session() as session:
        assert session.scalars(select(EventRow).where(EventRow.end.is_(None))).all() == []


def limit(server: "subprocess.Popen[str]", size: tuple[int, int]) -> None:
    """Set the size that files of a server and all its processes may have."""
    for pid in (server.pid, *descendants(server.pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, size)


def test_a_clock_that_is_set_back(console: Console, fork_server: ForkServer) -> None:
    add_camera(console, kind="recording", state="ended")  # no process that files further ones
    journal = console.settings.camera_folder("north") / "journal"
    later = {"start": START + 3600, "peak": START + 3600, "end": START + 3601}
    file_event(journal, entry("b1", **later))
    with supervised(console, fork_server):
        wait_until(lambda: n_events(console) == 1, "the first event")
        # Its end has a time before its start; then one of an hour before comes.
        file_event(journal, entry("b1", **later | {"end": START + 7}))
        file_event(journal, entry("a1"))
        wait_until(lambda: n_events(console) == 2, "the event of an earlier time")
        wait_until(lambda: not list(journal.glob("*.json")), "nothing waits")
    with console.database.session() as session:
        for event in session.scalars(select(EventRow)):
            assert event.end is not None
            assert event.end >= event.start


def test_a_server_that_is_told_to_end_leaves_no_process(
    console: Console, turn: Path, model: Path, start: Start
) -> None:
    add_playing(console, turn, model)
    server, _ = serving(console, start)
    wait_until(lambda: n_events(console) > 0, "an event")
    others = descendants(server.pid)
    assert len(others) >= 3  # fork server, camera, decoder
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait(LONG) == 0
    assert not any(map(running, others))
