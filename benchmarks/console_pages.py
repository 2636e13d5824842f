"""How long the console's server takes for every page and list, with a month behind it.

    python benchmarks/console_pages.py [--events 100000] [--days 30] [--cameras 10] [--rounds 20]
        [--databases sqlite postgres]

Two consoles are seeded, one with all events and days, its peer with a hundredth of the events in
one day. Both are run by `habitus serve`, and asked in turn over loopback, one request at a time:
the time until the whole answer is there, and the processor time that the server and the database
took for it, which other work on the machine hardly changes. Cameras are off. Every page, every list
and picture of the API, and `/metrics` are asked for; lists also with filters, and far back. Exits
with 1 where a median is above 200 ms.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import psutil
from sqlalchemy import create_engine, text

from report import Cells, progress, save, table
from served import Served

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.consoles import POSTGRES, PostgresServer
from reference.seeded_console import DAY, Place, seeded_console

LIMIT = 0.2
"""Seconds that an answer may take, at the median."""
SEED = 12
PEER = 100
"""The peer has so many times fewer events."""
SLOWEST = 8
"""Pages that the documents show."""
UNASKED = ("/api/stream", "/api/openapi.json", "/api/events.csv", "/api/events.zip")
"""What the API has that never ends or never changes, and files of all events."""
FILTERS = (
    *("words=left", "words=left+moving+nothing", "words=zebra", "hours=22-6", "unusual=81"),
    *("sort=unusual", "sort=longest", "sort=oldest", "length=long", "zone=Bay", "starred=yes"),
    *("quiet=yes", "words=left&hours=22-6&unusual=31&sort=unusual"),
    "words=left+moving+nothing&unusual=31&cue=direction&sort=longest",
)
"""How events are found, one by one and together."""


class Asked(NamedTuple):
    """How long the answers to one address took."""

    path: str
    seconds: list[float]
    peer: list[float]
    processor: float
    """Seconds of the server's and the database's processor time, on average."""
    n_bytes: int

    @property
    def median(self) -> float:
        """In seconds."""
        return median(self.seconds)

    def row(self) -> Cells:
        """Return a row of the table."""
        late = (
            quantiles(self.seconds, n=20, method="inclusive")[-1]
            if len(self.seconds) > 1
            else self.seconds[0]
        )
        beside = median(self.peer)
        return {
            "page": f"`{self.path}`",
            "processor, ms": round(1e3 * self.processor, 1),
            "median, ms": round(1e3 * self.median, 1),
            "95 %, ms": round(1e3 * late, 1),
            "largest, ms": round(1e3 * max(self.seconds), 1),
            "peer's median, ms": round(1e3 * beside, 1),
        }


def places(n_cameras: int) -> tuple[Place, ...]:
    """Return cameras of one scene."""
    return tuple(
        Place(f"camera-{k}", f"Camera {k}", f"rtsp://10.0.4.{k}/main", SEED, "watching", 1900)
        for k in range(1, n_cameras + 1)
    )


def addresses(served: Served, now: float, n_days: int) -> Iterator[str]:
    """Yield everything that is asked for, of the newest events and of the oldest."""
    newest = served.json("/api/events", limit=1)["events"][0]["id"]
    oldest = served.json("/api/events", until=now - (n_days - 1) * DAY, limit=1)["events"][0]
    camera, old = oldest["camera_id"], oldest["id"]
    back = f"{oldest['start']!r}:{old}"
    middle = datetime.fromtimestamp(now - n_days * DAY / 2).strftime("%Y-%m-%d")
    yield from ("/", "/?wall", "/parts/latest", "/parts/to-review", f"/parts/tiles/{camera}")
    yield from ("/events", f"/events?before={back}", f"/events?camera={camera}")
    yield from (f"/events?cue=direction&review=none&camera={camera}", f"/events?until={middle}")
    yield from ("/events?cue=nothing", "/events?review=normal&cue=speed")
    yield from (f"/events?{found}" for found in FILTERS)
    yield from ("/calendar", "/calendar?words=left", f"/calendar?camera={camera}")
    yield from (f"/events/{newest}", f"/events/{old}")
    yield from ("/review", f"/review?camera={camera}", f"/review/{old}")
    yield from (f"/cameras/{camera}", f"/cameras/{camera}/edit", "/cameras/new", "/settings")
    yield from ("/metrics", "/healthz")
    for path in served.json("/api/openapi.json")["paths"]:
        filled = path.format(camera=camera, event=newest, number=1, user=1, token=1, channel=1)
        if path.startswith("/api") and path not in UNASKED and "/timeline" not in path:
            yield filled
    for hours in (1, 24, 24 * n_days):
        yield f"/api/cameras/{camera}/timeline?since={now - 3600 * hours:.0f}&until={now:.0f}"
    yield from (f"/api/events?before={back}&limit=500", f"/api/events?since={now - DAY:.0f}")
    yield from (f"/api/events/{old}/similar", "/api/precision?days=30", "/api/audit?limit=1000")


def ask(served: Served, path: str) -> tuple[float, int]:
    """Return the seconds that an answer took, and its bytes; none if there is no such answer."""
    start = time.perf_counter()
    answer = served.client.get(path)
    seconds = time.perf_counter() - start
    if answer.status_code >= 500:
        raise RuntimeError(f"{path}: {answer.status_code}: {answer.text[:200]}")
    return seconds, len(answer.content) if answer.is_success else 0


def measure(large: Served, small: Served, now: float, n_days: int, rounds: int) -> list[Asked]:
    """Ask both consoles in turn for everything."""
    found = []
    backends = [process.pid for process in psutil.process_iter() if process.name() == "postgres"]
    # Both have events of the same ids; the oldest of the peer is not as old.
    beside = addresses(small, now, 1)
    for path, other in zip(addresses(large, now, n_days), beside, strict=True):
        n_bytes = ask(large, path)[1]
        ask(small, other)
        if not n_bytes:  # a change, or a picture that is not there
            continue
        processor, pairs = 0.0, []
        for _ in range(rounds):
            before = processor_seconds(large.pid, *backends)
            seconds = ask(large, path)[0]
            processor += (processor_seconds(large.pid, *backends) - before) / rounds
            pairs.append((seconds, ask(small, other)[0]))
        ours, peer = map(list, zip(*pairs, strict=True))
        found.append(Asked(path, ours, peer, processor, n_bytes))
    return found


def processor_seconds(*pids: int) -> float:
    """Return the processor time that all threads of some processes have had."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):  # it has ended
                total += int(task.read_text().split()[0])
    return total / 1e9


def execute(database: str, command: str) -> None:
    """Give PostgreSQL a command that is no part of a transaction."""
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(command))
    engine.dispose()


@contextmanager
def databases(kind: str) -> Iterator[Callable[[str], str | None]]:
    """Yield a function that makes an empty database and returns its address."""
    if kind == "sqlite":
        yield lambda name: None
        return
    # Its owner must be allowed to enter the folder.
    with tempfile.TemporaryDirectory(prefix="habitus-postgres-") as folder:
        server = PostgresServer(Path(folder))

        def make(name: str) -> str:
            execute(server.url(), f"CREATE DATABASE {name}")
            return server.url(name)

        try:
            yield make
        finally:
            server.stop()


def run(kind: str, folder: Path, options: argparse.Namespace) -> list[Asked]:
    """Seed both consoles on one kind of database, and measure."""
    now = time.time()
    with ExitStack() as stack:
        make = stack.enter_context(databases(kind))
        served = []
        for name, n_events, n_days in (
            ("large", options.events, options.days),
            ("small", max(options.events // PEER, 10), 1),
        ):
            start, data, database = time.perf_counter(), folder / f"{kind}-{name}", make(name)
            console = seeded_console(
                data,
                now=now,
                n_events=n_events,
                n_days=n_days,
                places=places(options.cameras),
                pictures=not options.no_pictures,
                enabled=False,
                settings={"database": database},
            )
            console.database.close()
            if database:  # what its autovacuum does a minute after as many events
                execute(database, "VACUUM ANALYZE")
            progress(f"{kind}, {name}: seeded in {time.perf_counter() - start:.0f} s")
            served.append(stack.enter_context(Served(data, database=database)))
        return measure(served[0], served[1], now, options.days, options.rounds)


def main() -> None:
    """Measure, print the tables, and exit with 1 where a page is too slow."""
    options = _options()
    slow = []
    for kind in options.databases:
        with tempfile.TemporaryDirectory() as temporary:
            found = run(kind, Path(temporary), options)
        print(
            f"\n{kind}: {options.events:,} events, {options.days} days, {options.cameras} cameras; "
            f"{options.rounds} rounds on {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}\n"
        )
        rows = [asked.row() for asked in sorted(found, key=lambda asked: -asked.median)]
        print(table(rows))
        if options.save:
            save(f"console_pages-{kind}", rows[:SLOWEST])
        slow += [f"{kind}: {asked.path}" for asked in found if asked.median > LIMIT]
    for one in slow:
        print(f"slower than {1e3 * LIMIT:.0f} ms: {one}")
    sys.exit(1 if slow else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=10)
    kinds = ["sqlite", "postgres"] if POSTGRES else ["sqlite"]
    parser.add_argument("--databases", nargs="+", choices=["sqlite", "postgres"], default=kinds)
    parser.add_argument(
        "--no-pictures", action="store_true", help="events without pictures: quicker to seed"
    )
    parser.add_argument("--save", action="store_true", help="keep the slowest for the documents")
    return parser.parse_args()


if __name__ == "__main__":
    main()
