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
