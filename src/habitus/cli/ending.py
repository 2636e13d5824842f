"""How commands end: when they are asked to, or for want of what the machine does not give."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from habitus import HabitusError
from habitus.cli.terminal import printable

try:
    import resource as _resource

    resource: Any = _resource
except ImportError:  # a system without limits
    resource = None

LEAST_ADDRESSES = 1280 << 20
"""Bytes of address space that a command needs: with fewer, libraries crash or never return."""
MOST_SAID = 200
"""Characters of what a library says for want of something."""


def check_surroundings() -> None:
    """Raise if a command cannot work here at all: in no folder, or in too little memory."""
    try:
        Path.cwd()
    except OSError as error:
        raise HabitusError(
            "the current folder was deleted, expected one that exists: change to another"
        ) from error
    limit = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < LEAST_ADDRESSES:
        raise HabitusError(
            f"the address space is limited to {limit >> 20} MB, expected at least "
            f"{LEAST_ADDRESSES >> 20} MB: raise the limit (ulimit -v)"
        )


def lack(error: BaseException) -> str | None:
    """Return in one line what the machine does not give; None for any other error.

    >>> lack(OSError(28, "No space left on device"))
    'cannot go on: No space left on device'
    >>> lack(MemoryError())
    'this needs more memory than there is'
    """
    if isinstance(error, MemoryError):
        return "this needs more memory than there is"
    if isinstance(error, RuntimeError):
        return "cannot start a thread" if "new thread" in str(error) else None
    while isinstance(error, ImportError) and isinstance(error.__cause__, ImportError | OSError):
        error = error.__cause__  # libraries explain at length what a library of theirs lacked
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename}" if error.filename else ""
        return f"cannot go on:{where}{':' if where else ''} {error.strerror}"
    return f"cannot go on: {printable(str(error))[:MOST_SAID]}"


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set; SIGHUP, from log rotation, ends nothing."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    def go_on(number: int, frame: FrameType | None) -> None:
        """What is written to is opened anew each time as it is."""

    handlers = {signal.SIGINT: end, signal.SIGTERM: end}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = go_on
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
