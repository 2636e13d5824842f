"""Progress of long work, on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from habitus.progress import Progress as VideoProgress

if TYPE_CHECKING:
    from habitus.progress import Progress as StageProgress
    from habitus.progress import ProgressCallback


@contextmanager
def progress_bar(
    what: str, total: int, *, show: Callable[[float], str] | None = None
) -> Iterator[Callable[[int, float], None]]:
    """A callback for `fit` that moves a bar; `show` puts the latest objective into words."""
    bar = _bar(MofNCompleteColumn(), TimeRemainingColumn(), _note())
    with bar:
        task = bar.add_task(what, total=total, note="")

        done, drawn = count(1), 0.0

        def advance(iteration: int, objective: float) -> None:
            nonlocal drawn
            n, now = next(done), monotonic()
            if now - drawn > 0.1 or n == total:
                drawn = now
                bar.update(task, completed=n, note=show(objective) if show else "")

        yield advance


@contextmanager
def video_progress_bar(what: str) -> Iterator[Callable[[VideoProgress], None]]:
    """Show a bar over seconds of video, with the latest speed and the time left."""
    bar = _bar(_note(), TimeElapsedColumn(), TimeRemainingColumn())
    with bar:
        task = bar.add_task(what, total=None, note="")

        def show(progress: VideoProgress) -> None:
            note = ", ".join(filter(None, [f"{progress.done:.0f} s of video", progress.note]))
            bar.update(task, total=progress.total, completed=progress.done, note=note)

        yield show


def _bar(*columns: ProgressColumn) -> Progress:
    """A bar on a terminal, gone once it is full; none where the output is not one."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _note() -> TextColumn:
    return TextColumn("{task.fields[note]}")


@contextmanager
def progress_bars() -> "Iterator[ProgressCallback]":
    """Yield a callback that draws one bar per stage of the work."""
    bar = _bar(TimeElapsedColumn(), TimeRemainingColumn(), _note())
    tasks: dict[str, TaskID] = {}
    drawn = 0.0
    with bar:

        def show(progress: "StageProgress") -> None:
            nonlocal drawn
            now = monotonic()
            if progress.stage in tasks and progress.done != progress.total and now - drawn < 0.1:
                return
            drawn = now
            if progress.stage not in tasks:
                tasks[progress.stage] = bar.add_task(progress.stage, total=None, note="")
            bar.update(
                tasks[progress.stage],
                total=progress.total,
                completed=progress.done,
                note=progress.note,
            )

        yield show
