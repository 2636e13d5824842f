"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer


class Motion(StrEnum):
    """How motion is seen."""

    CELLS = "cells"
    DIS = "dis"
    FLOW = "flow"


class Measure(StrEnum):
    """How the normality of a document is measured."""

    TAIL = "tail"
    MEAN = "mean"


class Approximation(StrEnum):
    """How the unknown parameters are dealt with."""

    PLUG_IN = "plug-in"
    MONTE_CARLO = "monte-carlo"


# Video to documents.
Continued = Annotated[
    bool, typer.Option("--continue", help="Several videos are one, cut into files: one sequence.")
]
Clip = Annotated[float, typer.Option(help="Seconds of video to a document.")]
Cell = Annotated[
    int,
    typer.Option(help="Side of a cell, in pixels of the analysed frame (large frames are halved)."),
]
MotionBy = Annotated[
    Motion,
    typer.Option(
        help="cells: our own kernel, fast. dis: OpenCV's dense flow where the picture changes, "
        "slow. flow: the same everywhere, as in the paper."
    ),
]
Speeds = Annotated[
    int,
    typer.Option(min=1, max=2, help="2: words tell slow from fast motion. 1: the paper's words."),
]
Mask = Annotated[
    str | None,
    typer.Option(
        help="What not to watch (clocks, trees, screens): a PNG of the frame's size, not black "
        "there, or polygons: '0,0 90,0 90,20; 300,10 ...'."
    ),
]
Region = Annotated[
    str | None, typer.Option(help="Watch only this: a PNG or polygons, as for --mask.")
]
Fps = Annotated[
    float | None, typer.Option(help="Frames a second of images, or of streams without times.")
]
Fast = Annotated[
    bool, typer.Option("--fast", help="Skip frames no other frame needs, and the loop filter.")
]
Timeout = Annotated[float, typer.Option(help="Seconds that an address may take to answer.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core. Never changes the result.")]

# Documents to events.
AlertsPerDay = Annotated[
    float | None,
    typer.Option(
        help="The budget: alerts a day that normal footage may cause (5 unless told otherwise)."
    ),
]
Share = Annotated[
    float | None,
    typer.Option(help="Instead of a budget: this share of the documents is abnormal (0.02)."),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Instead of a budget: documents of lower normality are abnormal."),
]
MeasureBy = Annotated[
    Measure,
    typer.Option(
        help="tail: single words that surprise, for small things in busy scenes. mean: the "
        "paper's, all words together."
    ),
]
ApproximateBy = Annotated[
    Approximation,
    typer.Option(help="plug-in: one estimate. monte-carlo: posterior samples (vb, gibbs)."),
]
Samples = Annotated[
    int | None, typer.Option(help="Posterior samples of monte-carlo (vb: 100; gibbs: all kept).")
]
