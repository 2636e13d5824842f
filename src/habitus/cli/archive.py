"""habitus archive: months of recordings of many cameras."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import typer

import habitus
from habitus.cli import options
from habitus.cli.options import ALERTS, LEARNING, READING, USUAL, argument, option, together
from habitus.cli.screen import Screen, table
from habitus.cli.terminal import progress_bars, say, say_json, say_lines, say_notes
from habitus.rarity import counted

MOST_RANKED = 10
"""Moments that are listed."""
MOST_NOTES = 5
"""Lines about a camera; of further ones, the number is given."""
OF_THE_ARCHIVE = {"clip", "cell", "motion", "words", "mask", "region", "fast", "timezone"}
"""Options that an archive has once it is there."""
FOLDER = argument("Folder of the archive.", "DIR")
CAMERAS = option(None, "Only this camera; may be given several times.", "--camera")
SETTLED = option(30.0, "Leave recordings that changed in the last N seconds for the next run.")
MODELS = together(
    LEARNING,
    **options.SIZES,
    n_restarts=option(USUAL, "Independent runs per camera.", "--restarts"),
    seed=option(USUAL, "Same seed, same models."),
)


def _history(days: float | None, half_life: str) -> dict[str, Any]:
    """Return how older footage counts, as the library takes it."""
    seconds = None
    if half_life != "never":
        seconds = habitus.parse_duration(half_life, parameter="half_life")
    return {"days": days, "half_life": seconds}


HISTORY = together(
    _history,
    days=option(None, "Learn from the last N days of each camera only."),
    half_life=option(
        "14d",
        "Older footage counts half after this much further footage, such as 7d; 'never' if "
        "nothing is to fade.",
        metavar="TIME",
    ),
)

app = typer.Typer(
    name="archive",
    help="Months of recordings of many cameras: read what is new, learn, detect, report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
@options.command
def learn(
    *,
    context: typer.Context,
    documents: Any = options.DOCUMENTS,
    reading: habitus.ReadingSettings = together(
        READING, cluster=options.CLUSTER, jobs=options.JOBS, fast=options.FAST
    ),
    settled: float = SETTLED,
    models: habitus.LearningSettings = MODELS,
    patterns: list[str] | None = argument(
        "Where recordings are: 'recordings/{camera}/{date}/{hour}.mp4', with {camera}, {date} or "
        "{year} {month} {day}, {hour}, {time}, {minute}, {second} and *; paths, s3://... or any "
        "address of fsspec. Those of DIR if none is given.",
        "PATTERN",
        default=None,
    ),
    output: str = option("archive", "Folder of the archive.", "--output", "-o", metavar="DIR"),
    cameras: list[str] | None = CAMERAS,
    history: dict[str, Any] = HISTORY,
    fleet: str | None = option(
        None,
        "What other cameras have in common, for cameras with little footage: the file "
        "archive.fleet of another archive, or of this one.",
        metavar="FILE",
    ),
    timezone: str | None = option(
        None,
        "Time zone that recordings are named in, such as Europe/Berlin; this machine's if not "
        "given.",
    ),
    as_json: bool = options.json_option("Print the result as JSON."),
) -> None:
    """Learn one model per camera from recordings, of which only what is new is read.

    Documents are kept in DIR, a file per recording, so that a late or replaced recording is read
    again alone; a run that is cut short goes on where it was. Example:
    habitus archive learn 'recordings/{camera}/{date}/{hour}.mp4' -o site
    """
    refused = [] if patterns else options.given_options(context, OF_THE_ARCHIVE)
    if refused:
        raise habitus.InvalidInputError(
            f"{' '.join(refused)}: {output} has its own; to change it, give the patterns too"
        )
    with progress_bars() as progress:
        archive = habitus.learn_archive(
            patterns or (),
            output=output,
            cameras=cameras or (),
            fleet=fleet,
            timezone=timezone,
            settled=settled,
            documents=documents,
            learning=models,
            reading=reading,
            progress=progress,
            **history,
        )
    _note(archive.notes)
    if as_json:
        say_json(archive.overview.to_json())
        return
    _show(archive.overview)
    say(archive.reading.summary())
    say(archive.learning.summary())


@app.command()
@options.command
def detect(
    *,
    folder: str = FOLDER,
    cluster: str | None = options.CLUSTER,
    settled: float = SETTLED,
    jobs: int = options.JOBS,
    alerts_per_day: float = option(
        ALERTS.BUDGET,
        "The budget: alerts per day that normal footage of all cameras together may raise.",
    ),
    cameras: list[str] | None = CAMERAS,
    again: bool = option(
        False, "Judge again what was judged before, with the models of now.", "--again"
    ),
    as_json: bool = options.json_option("Print the most unusual moments as JSON Lines."),
) -> None:
    """Find what is unusual in an archive, within one budget of alerts for all cameras.

    New recordings are read first, and each is judged once. The most unusual moments of all are
    written to DIR/events.jsonl, with pictures. Each night:
    habitus archive detect site; habitus archive learn -o site; habitus archive report site
    """
    with progress_bars() as progress:
        detection = habitus.detect_archive(
            folder,
            alerts_per_day=alerts_per_day,
            cameras=cameras or (),
            again=again,
            settled=settled,
            cluster=cluster,
            jobs=jobs,
            progress=progress,
        )
    _note(detection.troubles)
    _note(detection.notes)
    if as_json:
        say_lines(moment.line() for moment in detection.moments)
        return
    for rank, moment in enumerate(detection.moments[:MOST_RANKED], start=1):
        verdict = "ALARM" if moment.alarm else "     "
        say(f"{rank:2}  {verdict}  {moment.in_words()}")
    say(detection.summary())
    counts = f"judged {counted(detection.n_judged, 'recording')}, {detection.n_known} before"
    say(f"{counts}; wrote {folder}/events.jsonl")


@app.command()
@options.command
def report(
    *,
    folder: str = FOLDER,
    output: str | None = option(
        None, "Where to write the page; DIR/report.html if not.", "--output", "-o"
    ),
    cameras: list[str] | None = CAMERAS,
    force: bool = options.FORCE,
    as_json: bool = options.json_option(
        "Print everything as JSON; the page is written only with --output."
    ),
) -> None:
    """Show an archive as a table and a page: hours, gaps, troubles, the most unusual moments.

    Example: habitus archive report site -o site.html
    """
    page = output or (None if as_json else f"{folder}/report.html")
    overview = habitus.report_archive(folder, output=page, cameras=cameras or (), force=force)
    if as_json:
        say_json(overview.to_json())
        return
    _note(f"{camera.camera}: {text}" for camera in overview.in_trouble for text in camera.troubles)
    _show(overview)
    say(overview.summary())
    say(f"wrote {page}")


def _note(notes: Iterable[str]) -> None:
    """Print notes, each of which begins with the name of a camera; not too many of each."""
    for camera, group in groupby(sorted(notes), key=lambda note: note.partition(":")[0]):
        of_camera = list(group)
        say_notes(of_camera[:MOST_NOTES])
        if len(of_camera) > MOST_NOTES:
            say_notes([f"{camera}: and {len(of_camera) - MOST_NOTES} more"])


def _show(overview: habitus.ArchiveOverview) -> None:
    """Print a table of the cameras: hours read, missing between recordings, learnt from."""
    headings = ("camera", "hours", "missing", "unread", "learnt", "alarms", "until", "frames")
    narrow = {"pad_edge": False, "show_edge": False, "collapse_padding": True}
    rows = table(*headings, left=(0, 6, 7), **narrow)
    rows.columns[6].no_wrap = True
    for camera in overview.cameras:
        rows.add_row(
            camera.camera,
            f"{camera.hours:.1f}",
            f"{camera.gap_hours:.1f}" if camera.gaps else "-",
            str(camera.unread or "-"),
            f"{camera.learnt['seconds'] / 3600:.1f}" if camera.learnt else "-",
            str(camera.alarms) if camera.judged_hours else "-",
            camera.ends,
            ", then ".join(era["frames"] for era in camera.eras),
        )
    Screen().print(rows)
