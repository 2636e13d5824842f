"""habitus demo: the whole story, on a rendered junction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import Screen


@options.command
def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder for what it makes.")
    ] = "demo",
    seed: Annotated[int, typer.Option(help="Same seed, same demo.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print what it found as JSON.")] = False,
) -> None:
    """Render a junction, learn its first five minutes, and find what is abnormal in the rest.

    Everything is made here: the video, the model, the events, a page about them. Given again, it
    goes on from the video that is there.
    """
    with progress_bars() as progress:
        found = habitus.demo(output, seed=seed, progress=progress)
    if as_json:
        typer.echo(json.dumps(found.to_json()))
    else:
        _tell(found, Path(output))


def _tell(found: habitus.Demonstration, output: Path) -> None:
    clock, detection = habitus.clock, found.detection
    table = Table("when", "what happened", "rank", "what habitus says", box=SIMPLE_HEAD)
    for anomaly, k in zip(found.truth, found.ranked.found_by, strict=True):
        when = f"{clock(anomaly.start)}-{clock(anomaly.end)}"
        rank, said = "-", f"not among the {len(detection.moments)} most unusual moments"
        if k is not None:
            event = detection.moments[k]
            rank, said = str(k + 1), f"{'' if event.alarm else 'no alarm; '}{event.explanation}"
        table.add_row(when, anomaly.kind, rank, said)
    console = Screen()
    console.print(
        f"learnt from {clock(found.learnt_seconds)} of a junction, then judged "
        f"{clock(found.judged_seconds)} of it; {found.alerts_per_day / 24:g} false alarms per hour "
        "are allowed"
    )
    console.print(table)
    for k in found.match.false_alarms:
        console.print(f"false alarm: {detection.events[k].in_words()}")
    for note in detection.notes:
        console.print(f"note: {note}")
    console.print(
        f"{found.match.n_found} of {len(found.truth)} raised an alarm, "
        f"{len(found.match.false_alarms)} false alarm(s)\n\n"
        f"open     {output / 'report.html'}\n"
        f"watch    {output / 'annotated.mp4'}\n"
        f"look     habitus show {output / 'junction.model'}\n"
        "yours    habitus learn normal.mp4 -o my.model\n"
        "         habitus report later.mp4 --model my.model -o report.html "
        f"--alerts-per-day {found.alerts_per_day:g}"
    )
