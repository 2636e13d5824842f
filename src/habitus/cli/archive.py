"""habitus archive: months of recordings of many cameras."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import Screen, say

MOST_RANKED = 10
"""Moments that are listed."""
MOST_NOTES = 5
"""Lines about a camera; of further ones, the number is told."""
OF_THE_ARCHIVE = {"clip", "cell", "motion", "words", "mask", "region", "fast", "timezone"}
"""Options that an archive has once it is there."""

app = typer.Typer(
    name="archive",
    help="Months of recordings of many cameras: read what is new, learn, detect, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[str, typer.Argument(help="Folder of the archive.", metavar="DIR")]
Cameras = Annotated[
    list[str] | None,
    typer.Option("--camera", help="Only this camera; may be given several times."),
]
Settled = Annotated[
    float,
    typer.Option(help="Leave recordings that changed in the last N seconds for the next run."),
]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one per core. Never changes a result.")]


@app.command()
@options.command
def learn(
    context: typer.Context,
    documents: options.DocumentOptions,
    elsewhere: options.ClusterOptions,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            help="Where recordings are: 'recordings/{camera}/{date}/{hour}.mp4', with {camera}, "
            "{date} or {year} {month} {day}, {hour}, {time}, {minute}, {second} and *; paths, "
            "s3://... or any address of fsspec. Those of DIR if none is given.",
            metavar="PATTERN...",
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Folder of the archive.")
    ] = "archive",
    cameras: Cameras = None,
    days: Annotated[
        float | None, typer.Option(help="Learn from the last N days of each camera only.")
    ] = None,
    half_life: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Older footage counts half after this much further footage, such as 7d; 'never' "
            "if nothing is to fade.",
        ),
    ] = "14d",
    fleet: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What other cameras have in common, for cameras with little footage: the file "
            "archive.fleet of another archive, or of this one.",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="Time zone that recordings are named in, such as Europe/Berlin; this machine's "
            "if not given."
        ),
    ] = None,
    n_topics: Annotated[int, typer.Option("--topics", help="Number of topics.")] = 8,
    n_behaviours: Annotated[int, typer.Option("--behaviours", help="Number of behaviours.")] = 4,
    n_restarts: Annotated[
        int, typer.Option("--restarts", help="Independent runs per camera.")
    ] = 20,
    fast: Annotated[
        bool, typer.Option("--fast", help="Skip frames no other frame needs, and the loop filter.")
    ] = False,
    settled: Settled = 30.0,
    jobs: Jobs = -1,
    seed: Annotated[int, typer.Option(help="Same seed, same models.")] = 0,
    as_json: options.Json = False,
) -> None:
    """Learn one model per camera from recordings, of which only what is new is read.

    Documents are kept in DIR, a file per recording, so that a late or replaced recording is read
    again alone; a run that is cut short goes on where it was. Example:
    habitus archive learn 'recordings/{camera}/{date}/{hour}.mp4' -o site
    """
    own = [] if patterns else options.given_options(context, OF_THE_ARCHIVE)
    if own:
        raise habitus.InvalidInputError(
            f"{' '.join(own)}: {output} has its own; to change it, give the patterns too"
        )
    with progress_bars() as progress:
        found = habitus.learn_archive(
            patterns or (),
            output=output,
            cameras=cameras or (),
            days=days,
            half_life=None if half_life == "never" else habitus.parse_duration(half_life),
            fleet=fleet,
            timezone=timezone,
            settled=settled,
            documents=documents.settings(),
            learning=habitus.LearningSettings(
                n_topics, n_behaviours, n_restarts=n_restarts, seed=seed
            ),
            reading=options.reading_settings(elsewhere, fast=fast, jobs=jobs),
            progress=progress,
        )
    _note(found.notes)
    if as_json:
        typer.echo(json.dumps(found.overview.to_json()))
        return
    _tell(found.overview)
    say(found.reading.summary())
    say(found.learning.summary())


@app.command()
@options.command
def detect(
    folder: Folder,
    elsewhere: options.ClusterOptions,
    alerts_per_day: Annotated[
        float,
        typer.Option(
            help="The budget: alerts per day that normal footage of all cameras together may raise."
        ),
    ] = 5.0,
    cameras: Cameras = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Judge again what was judged before, with the models of now."),
    ] = False,
    settled: Settled = 30.0,
    jobs: Jobs = -1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the most unusual moments as JSON Lines.")
    ] = False,
) -> None:
    """Find what is unusual in an archive, within one budget of alerts for all cameras.

    New recordings are read first, and each is judged once. The most unusual moments of all are
    written to DIR/events.jsonl, with pictures. Each night:
    habitus archive detect site; habitus archive learn -o site; habitus archive report site
    """
    with progress_bars() as progress:
        found = habitus.detect_archive(
            folder,
            alerts_per_day=alerts_per_day,
            cameras=cameras or (),
            again=again,
            settled=settled,
            jobs=jobs,
            progress=progress,
            **elsewhere.parameters(),
        )
    _note(map(str, found.troubles))
    if as_json:
        for moment in found.moments:
            typer.echo(moment.line())
        return
    for rank, moment in enumerate(found.moments[:MOST_RANKED], start=1):
        verdict = "ALARM" if moment.event.alarm else "     "
        say(f"{rank:2}  {verdict}  {moment.in_words()}")
    say(found.summary())
    say(
        f"judged {found.n_judged} recording(s), {found.n_known} before; wrote {folder}/events.jsonl"
    )


@app.command()
@options.command
def report(
    folder: Folder,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write the page; DIR/report.html if not."),
    ] = None,
    cameras: Cameras = None,
    force: options.Force = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print everything as JSON; the page is written only with --output."
        ),
    ] = False,
) -> None:
    """Show an archive as a table and a page: hours, gaps, troubles, the most unusual moments.

    Example: habitus archive report site -o site.html
    """
    page = output or (None if as_json else f"{folder}/report.html")
    overview = habitus.report_archive(folder, output=page, cameras=cameras or (), force=force)
    if as_json:
        typer.echo(json.dumps(overview.to_json()))
        return
    _note(f"{camera.camera}: {text}" for camera in overview.in_trouble for text in camera.troubles)
    _tell(overview)
    say(overview.summary())
    say(f"wrote {page}")


def _note(notes: Iterable[str]) -> None:
    """Print notes, each of which begins with the name of a camera; not too many of each."""
    for camera, group in groupby(sorted(notes), key=lambda note: note.partition(":")[0]):
        of_camera = list(group)
        for note in of_camera[:MOST_NOTES]:
            say(f"note: {note}", err=True)
        if len(of_camera) > MOST_NOTES:
            say(f"note: {camera}: and {len(of_camera) - MOST_NOTES} more", err=True)


def _tell(overview: habitus.ArchiveOverview) -> None:
    """Print a table of the cameras: hours read, missing between recordings, learnt from."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    table.add_column("camera")
    for heading in ("hours", "missing", "unread", "learnt", "alarms"):
        table.add_column(heading, justify="right")
    table.add_column("until", no_wrap=True)
    table.add_column("frames")
    for camera in overview.cameras:
        table.add_row(
            camera.camera,
            f"{camera.hours:.1f}",
            f"{camera.gap_hours:.1f}" if camera.gaps else "-",
            str(camera.unread or "-"),
            f"{camera.learnt['seconds'] / 3600:.1f}" if camera.learnt else "-",
            str(camera.alarms) if camera.judged_hours else "-",
            _clock(camera.until) if camera.until else "-",
            ", then ".join(era["frames"] for era in camera.eras),
        )
    Screen().print(table)


def _clock(clock: str) -> str:
    day, _, time = clock.partition("T")
    return f"{day} {time[:5].replace('-', ':')}"
