"""Tasks for workers: module-level functions that processes elsewhere can import."""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from habitus.errors import InvalidInputError


class Errand(NamedTuple):
    """An item with a name."""

    name: str
    value: int


def doubled(value: int) -> int:
    return 2 * value


def process_id(item: object) -> int:
    time.sleep(0.05)
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


class Payload:
    """Something that counts how often a process has used it."""

    def __init__(self) -> None:
        self.used = 0


def uses(payload: Payload, item: int) -> int:
    payload.used += 1
    return payload.used
