"""habitus evaluate: how good a detector is, against labels."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from rich.table import Table

import habitus
from habitus.cli import options
from habitus.cli.options import READING, argument, option, together
from habitus.cli.screen import Screen, table
from habitus.cli.terminal import progress_bars, say, say_json, say_notes
from habitus.rarity import counted

NAMES = {
    "average_precision": "average precision (1)",
    "roc_auc": "area under ROC",
    "best_accuracy": "best accuracy (2)",
    "precision": "precision",
    "recall": "recall",
}
N_TOP = 10
"""Least likely words that a place is read from, as in the paper's example."""


FRAMES = together(
    dict,
    masks=option(
        None,
        "With clip,first_frame,last_frame: a folder of CLIP/FRAME.png, frames from 0, not black "
        "where something is abnormal, for the figures per pixel.",
    ),
    smooth=option(
        0.0,
        "With clip,first_frame,last_frame: smooth the scores of frames over time by a Gaussian of "
        "this standard deviation in seconds; 0: not.",
    ),
)
"""Figures per frame and pixel, of labels with `clip,first_frame,last_frame`."""


@options.command
def evaluate(
    *,
    judge: str = argument(
        "What `habitus learn` wrote; or events that `habitus detect -o` wrote, for the figures "
        "that need no score of every document.",
        "MODEL|EVENTS",
    ),
    sources: list[str] = argument(
        "A video, as for extract; or a corpus file. Several clips are evaluated together, with "
        "one label file of clip,first_frame,last_frame.",
        "VIDEO|CORPUS",
    ),
    labels: str = option(
        ...,
        "What is known to have happened: CSV with start,end (and kind, and left,top,right,bottom) "
        "or clip,first_frame,last_frame (clip: the file without folder and suffix; frames from 0, "
        "both ends inclusive); one 0 or 1 per frame; ranges of frames; a folder of masks. All "
        "forms: docs/reference/labels.md.",
        "--labels",
        "-l",
    ),
    alerts: habitus.AlertSettings = options.JUDGING,
    force: bool = options.FORCE_SCENE,
    reading: habitus.ReadingSettings = together(
        READING,
        **options.READ_ANYWHERE,
        skip=option(None, "Skip the first N seconds: those the model was learnt from."),
    ),
    label_line: int | None = options.LABEL_LINE,
    frames: dict[str, Any] = FRAMES,
    picture: str | None = option(None, "Also draw the curves, as .png, .jpg, .svg or .pdf."),
    clip: float = option(1.0, "With events and a video: seconds per document."),
    as_json: bool = options.json_option("Print all figures as JSON."),
) -> None:
    """Measure a detector against labels: each figure beside what chance would give.

    How well documents are ranked, what the chosen threshold gives, how many events are found and
    how late at 1, 2, 6 and 30 false alarms per hour, and whether the box is right. Example:
    habitus evaluate junction.model later.mp4 --labels later.csv --picture curves.png
    """
    with progress_bars() as progress:
        assessment = habitus.evaluate(
            judge,
            sources,
            labels,
            label_line=label_line,
            picture=picture,
            alerts=alerts,
            force=force,
            clip=clip,
            reading=reading,
            progress=progress,
            **frames,
        )
    if assessment.threshold is None:
        note = "events alone have no score per document, so there are no curves"
        say_notes([f"{note} and no average precision"])
    if as_json:
        say_json(assessment.to_json())
        return
    what = Path(sources[0]).name if len(sources) == 1 else f"{len(sources)} clips"
    _show(assessment, f"{Path(judge).name} on {what}")
    if picture is not None:
        say(f"wrote {picture}")


def _show(assessment: habitus.Assessment, what: str) -> None:
    """Print all figures."""
    console = Screen()
    n, clip = assessment.n_documents, assessment.seconds / assessment.n_documents
    documents = counted(n, "document")
    console.print(
        f"{what}: {habitus.clock(assessment.seconds)} of video in {documents} of {clip:g} s; the "
        f"labels call {assessment.n_abnormal} abnormal ({assessment.n_abnormal / n:.1%}), in "
        f"{counted(len(assessment.labels), 'event')}"
    )
    if assessment.frames is not None:
        console.print(_frames(assessment.frames))
    console.print(_documents(assessment))
    console.print(_found(assessment))
    if any(assessment.kinds()):
        console.print(_kinds(assessment))
    for line in _places(assessment):
        console.print(line)
    for line in _notes(assessment):
        console.print(line, style="dim")


def _frame_notes(figures: habitus.FrameFigures) -> list[str]:
    lines = [
        "(3) a frame is found only if boxes cover 40 % of its mask; chance: random scores, boxes "
        "of other documents",
        "(4) where as large a share of the normal frames is not alarmed (Mahadevan et al. 2010)",
    ]
    smoothed = (
        f"smoothed over time by a Gaussian of {figures.smoothing:g} s"
        if figures.smoothing
        else "not smoothed over time"
    )
    share = figures.n_abnormal / figures.n_frames
    return [
        *(lines if figures.pixels is not None else []),
        f"frames: {figures.n_frames} of {figures.n_clips} clips together, {figures.n_abnormal} "
        f"abnormal ({share:.1%}); each has the score of its document, {smoothed}",
    ]


def _frames(figures: habitus.FrameFigures) -> Table:
    """Return the figures per frame and per pixel."""
    rows = table("frames", "value", "chance", "90 % interval")
    for name in ("roc_auc", "average_precision"):
        e = figures.ranking[name]
        rows.add_row(NAMES[name], *_cells(e))
    rows.add_row("equal error rate", f"{figures.equal_error_rate:.3f}", "0.500", "-")
    if figures.pixels is not None:
        where = figures.pixels
        rows.add_row(
            "area under ROC, per pixel (3)", f"{where.roc_auc:.3f}", f"{where.chance:.3f}", "-"
        )
        rows.add_row("rate of detection, per pixel (4)", f"{where.detection_rate:.3f}", "-", "-")
    return rows


def _documents(assessment: habitus.Assessment) -> Table:
    rows = table("documents", "value", "chance", "90 % interval")
    for name in NAMES:
        e = assessment.documents.get(name)
        if e is not None:
            rows.add_row(_name(name, assessment), *_cells(e))
        elif name == "precision":  # nothing was called abnormal
            share = assessment.n_abnormal / assessment.n_documents
            rows.add_row(_name(name, assessment), "-", f"{share:.3f}", "-")
    return rows


def _cells(e: habitus.Estimate) -> tuple[str, str, str]:
    """Return value, chance level and interval in words."""
    bounded = isfinite(e.low) and isfinite(e.high)  # not of a handful of documents
    return f"{e.value:.3f}", f"{e.chance:.3f}", f"{e.low:.3f} to {e.high:.3f}" if bounded else "-"


def _name(name: str, assessment: habitus.Assessment) -> str:
    if name not in ("precision", "recall"):
        return NAMES[name]
    where = "of the events" if assessment.threshold is None else f"at {assessment.threshold:.4g}"
    return f"{NAMES[name]} {where}"


def _columns(assessment: habitus.Assessment) -> list[tuple[str, habitus.FoundEvents]]:
    """What each set of found events is called."""
    chosen = "these events" if assessment.threshold is None else f"at {assessment.threshold:.4g}"
    return [*((f"{f.rate:g}/h", f) for f in assessment.at_rates), (chosen, assessment.chosen)]


def _found(assessment: habitus.Assessment) -> Table:
    allowed = "allowed" if assessment.at_rates else "alarms"
    rows = table(allowed, "events found", "share", "chance", "median delay", "false alarms")
    for name, at in _columns(assessment):
        delay = f"{at.median_delay:.1f} s" if at.found.any() else "-"
        rows.add_row(
            name,
            f"{at.found.sum()} of {len(at.found)}",
            f"{at.share:.0%}",
            f"{at.chance:.0%}",
            delay,
            str(at.n_false_alarms),
        )
    return rows


def _kinds(assessment: habitus.Assessment) -> Table:
    columns = _columns(assessment)
    rows = table("kind", "events", *(name for name, _ in columns))
    for kind, k in assessment.kinds().items():
        counts = (str(f.found[k].sum()) for _, f in columns)
        rows.add_row(kind or "(none)", str(len(k)), *counts)
    return rows


def _places(assessment: habitus.Assessment) -> list[str]:
    lines = []
    pixels = assessment.frames.pixels if assessment.frames is not None else None
    if pixels is not None and pixels.n_alarmed:
        lines.append(
            f"place: a box meets the mask in {pixels.n_met} of {pixels.n_alarmed} alarmed abnormal "
            f"frames ({pixels.n_met / pixels.n_alarmed:.0%}; boxes of other documents: "
            f"{pixels.met_chance:.0%})"
        )
    elif pixels is not None:
        lines.append(f"place: none of the {pixels.n_frames} frames with a mask is alarmed")
    if assessment.box_hits is not None:
        n, hits, chance = assessment.box_hits
        lines.append(
            f"place: a box overlaps the labelled one in {hits} of {counted(n, 'event')} found "
            f"({hits / n:.0%}; boxes at random places: {chance:.0%})"
        )
    if assessment.localisation is not None:
        where = assessment.localisation
        k = where.n_tops.index(N_TOP)
        lines.append(
            f"place: of the {N_TOP} least likely words of an abnormal document, "
            f"{where.recall[k]:.0%} of those that could be are in the labelled box (words at "
            f"random: {where.chance[k]:.0%}; {where.n_documents} documents)"
        )
    return lines


def _notes(assessment: habitus.Assessment) -> list[str]:
    lines = []
    if "average_precision" in assessment.documents:
        lines = [
            "(1) as scikit-learn's average_precision_score; chance: the share of abnormal ones",
            "(2) over all thresholds; chance: calling every document the commoner of the two",
        ]
    if assessment.frames is not None:
        lines += _frame_notes(assessment.frames)
    blind = [f"{f.rate:g}/h" for f in assessment.at_rates if f.rate * assessment.seconds < 3600.0]
    if blind:
        lines.append(
            f"{habitus.clock(assessment.seconds)} is short: {', '.join(blind)} allow no false alarm"
        )
    return [
        *lines,
        "90 % interval: bootstrap over blocks of up to 30 documents; chance of events: the same "
        "scores, shifted in time",
    ]
