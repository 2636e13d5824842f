"""Progress of long work, on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    what: str, total: int, *, show: Callable[[float], str] | None = None
) -> Iterator[Callable[[int, float], None]]:
    """A callback for `fit` that moves a bar; `show` puts the latest objective into words."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total, note="")

        def advance(iteration: int, objective: float) -> None:
            bar.update(task, advance=1, note=show(objective) if show else "")

        yield advance
