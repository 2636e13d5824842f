"""Tasks for workers: module-level functions that processes elsewhere can import."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from habitus import Corpus
from habitus.errors import InvalidInputError
from habitus.jobs.workers import report


class Errand(NamedTuple):
    """An item with a name."""

    name: str
    value: int


def doubled(value: int) -> int:
    return 2 * value


def process_id(item: object) -> int:
    time.sleep(0.05)
    return os.getpid()


def meet(folder: Path, n: int, item: object) -> int:
    """Wait until so many processes are at it, and give back the own one."""
    (folder / f"{os.getpid()}").touch()
    end = time.monotonic() + 120
    while len(list(folder.iterdir())) < n and time.monotonic() < end:
        time.sleep(0.02)
    return os.getpid()


def killed_while(folder: Path, deaths: int, item: Errand) -> int:
    """Kill the own process as often as is wanted, leaving a mark each time; then the value."""
    marks = len(list(folder.glob(f"{item.name}-*")))
    if item.value < 0 and marks < deaths:
        (folder / f"{item.name}-{marks}").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item.value


def refused(item: Errand) -> int:
    raise InvalidInputError(f"{item.name}: refused", parameter="value")


def first_or_forever(folder: Path, item: int) -> int:
    """Give back item 0; of others, write the own process id and go on until it is ended."""
    if item == 0:
        return item
    (folder / f"{os.getpid()}").touch()
    while True:
        time.sleep(0.05)


def report_until(folder: Path, item: int) -> int:
    """Report again and again until a file is there."""
    while not (folder / "end").exists():
        report(f"at {item}")
        time.sleep(0.02)
    return 2 * item


def inverse(item: int) -> float:
    return 1 / item


class Unsendable(Exception):  # noqa: N818 - it is named in a message
    """An error that cannot be made again from its message."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def unsendable(item: int) -> int:
    raise Unsendable(item, item + 1)


def unsendable_result(item: int) -> Callable[[], int]:
    return lambda: item


class Payload:
    """Something that counts how often a process has used it."""

    def __init__(self) -> None:
        self.used = 0


def uses(payload: Payload, item: int) -> int:
    payload.used += 1
    return payload.used


def noted(folder: Path, item: int) -> int:
    """Take a moment."""
    time.sleep(0.1)
    return 2 * item


def wait_for_file(marks: Path, go: Path, item: int) -> int:
    """Leave a mark, and go on once a file is there."""
    (marks / f"{item}-{os.getpid()}").touch()
    while not go.exists():
        time.sleep(0.02)
    return 2 * item


class KeptBy(NamedTuple):
    """Which process made it, and how many it had made then."""

    process: int
    count: int


made: list[int] = []


def kept_by(token: int, corpus: object) -> KeptBy:
    """Note who makes something of a shard; counted anew for every token."""
    if made[:1] != [token]:
        made[:] = [token]
    made.append(token)
    return KeptBy(os.getpid(), len(made) - 1)


def killed_at(folder: Path, number: int, made: KeptBy, shard: int) -> float:
    """Kill the own process at one shard, once; a number that is not whole otherwise."""
    if shard == number and not (folder / str(number)).exists():
        (folder / str(number)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.1 * shard


def itself(made: KeptBy, shard: int) -> KeptBy:
    return made


def total(corpus: Corpus) -> float:
    """Add numbers that are not whole: the order tells in the last digits."""
    return float((corpus.n_tokens * 0.1).sum())
