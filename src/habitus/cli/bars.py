"""Progress of long work, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import habitus
from habitus.cli.terminal import printable

REDRAWN = 0.1
"""Seconds from one drawing of a bar to the next, at least."""


@contextmanager
def progress_bars() -> Iterator[habitus.ProgressCallback]:
    """Yield a callback that draws one bar per stage of the work.

    Bars are drawn on a terminal only, and are gone once the work is done.
    """
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    tasks: dict[str, TaskID] = {}
    drawn = 0.0

    def show(report: habitus.Progress) -> None:
        nonlocal drawn
        stage, done, total = report[:3]
        note = printable(report.note)
        now = monotonic()
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note=note)
        elif done != total and now - drawn < REDRAWN:
            return
        drawn = now
        bars.update(tasks[stage], total=total, completed=done, note=note)

    with bars:
        yield show
