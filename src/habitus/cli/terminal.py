"""What is printed for a person: texts of files are shown, never obeyed by the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import UnsupportedOperation
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

import habitus

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

REDRAWN = 0.1
"""Seconds from one drawing of a bar to the next, at least."""
TERMINALS = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables that may make Rich take any file for a terminal."""


def printable(text: str) -> str:
    r"""Return a text in one line without codes that a terminal would obey.

    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def say(line: str, *, err: bool = False) -> None:
    """Print a line, on stderr where it is no result."""
    typer.echo(printable(line), err=err)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"note: {note}", err=True)


def say_json(value: Any) -> None:
    """Print a value for machines."""
    typer.echo(json.dumps(value, allow_nan=False))


def say_lines(lines: Iterable[str]) -> None:
    """Print lines for machines; without any, raise OSError where none could have been written."""
    for line in lines:
        typer.echo(line)
    with suppress(UnsupportedOperation):  # no file, but what a test or a notebook has instead
        if sys.stdout is not None:  # which was closed
            os.write(sys.stdout.fileno(), b"")


@contextmanager
def progress_bars() -> Iterator[habitus.ProgressCallback]:
    """Yield a callback that draws one bar per stage of the work, on stderr.

    Bars are drawn on a terminal only, and are gone once the work is done.
    """
    if not (sys.stderr.isatty() or any(name in os.environ for name in TERMINALS)):
        yield lambda report: None
        return
    bars: Progress | None = None
    tasks: dict[str, TaskID] = {}
    drawn = 0.0

    def show(report: habitus.Progress) -> None:
        nonlocal bars, drawn
        bars = bars or stack.enter_context(_bars())
        stage, done, total = report[:3]
        note = printable(report.note)
        now = monotonic()
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=total, note=note)
        elif done != total and now - drawn < REDRAWN:
            return
        drawn = now
        bars.update(tasks[stage], total=total, completed=done, note=note)

    with ExitStack() as stack:
        yield show


def _bars() -> Progress:
    """Return bars for a terminal: imported when the work has begun, which need not wait for it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
