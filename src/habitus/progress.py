"""Progress of long work, as values: whoever calls decides how to show it."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far one stage of long work has come."""

    stage: str
    """What is being done, such as "extracting" or "learning"."""
    done: float
    """Units of work that are done."""
    total: float | None
    """Units of work in all; None where that is not known."""
    note: str = ""
    """The latest figure, for a person to read: a speed, an objective, a time left."""


ProgressCallback = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """Take a report of progress and do nothing with it."""


_compilation_listeners: list[Callable[[], None]] = []


def when_compiling(listener: Callable[[], None]) -> None:
    """Call a function once, as soon as kernels are compiled, in this process or for it.

    That takes many seconds on the first use and after an upgrade.

    Parameters
    ----------
    listener
        Function without arguments; it may be called in any thread.
    """
    _compilation_listeners.append(listener)


def no_longer_when_compiling(listener: Callable[[], None]) -> None:
    """Forget a listener of `when_compiling`, if it was not called yet."""
    if listener in _compilation_listeners:
        _compilation_listeners.remove(listener)


def report_compiling() -> None:
    """Call the listeners of `when_compiling` that were not called yet."""
    while _compilation_listeners:
        _compilation_listeners.pop()()


_connection_listeners: list[Callable[[str], None]] = []


def when_connected(listener: Callable[[str], None]) -> None:
    """Call a function with one line for a person whenever a cluster with a dashboard is joined.

    Parameters
    ----------
    listener
        Function of the line.
    """
    _connection_listeners.append(listener)


def report_connected(line: str) -> None:
    """Call the listeners of `when_connected`."""
    for listener in _connection_listeners:
        listener(line)
