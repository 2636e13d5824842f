"""What is printed for a person: texts of files are shown, never obeyed by the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

import habitus

REDRAWN = 0.1
"""Seconds from one drawing of a bar to the next, at least."""


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


class Screen(Console):
    """Console for tables and lines; what looks like markup in them is text."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text as it is printed; every text of a table or a line passes here."""
        lines = "\n".join(map(printable, text.split("\n")))
        return super().render_str(lines, **options)


def table(*headings: str, left: Iterable[int] = (0,), **style: Any) -> Table:
    """Return a table of numbers, with texts in the columns that are aligned to the left."""
    columns, made = set(left), Table(box=SIMPLE_HEAD, **style)
    for k, heading in enumerate(headings):
        made.add_column(heading, justify="left" if k in columns else "right")
    return made


@contextmanager
def progress_bars() -> Iterator[habitus.ProgressCallback]:
    """Yield a callback that draws one bar per stage of the work, on stderr.

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
