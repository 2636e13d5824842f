"""habitus compare: the paper's experiment on a labelled video, beside what one would pick else."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from habitus.cli import options
from habitus.cli.inputs import check_duration, sources_of
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.lab.comparison.findings import Comparison

UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def compare(
    source: Annotated[
        str,
        typer.Argument(
            help="A labelled video, as for extract; or a corpus file that extract made of it.",
            metavar="VIDEO|CORPUS",
        ),
    ],
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            "-l",
            help="What is abnormal in it, in any form that evaluate takes: CSV with start,end "
            "(and kind, and left,top,right,bottom), boxes frame by frame, lists of frames, masks.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for the page, the Markdown file and every run's scores."
        ),
    ] = Path("comparison"),
    train: Annotated[
        str,
        typer.Option(help="Learn from the first so much of it, judge the rest: 300s, 5min, 5:00."),
    ] = "300s",
    topics: Annotated[int, typer.Option(help="Number of topics.")] = 8,
    behaviours: Annotated[int, typer.Option(help="Number of behaviours.")] = 4,
    runs: Annotated[
        int, typer.Option(help="Runs of each method from different random starts.")
    ] = 20,
    methods: Annotated[
        str,
        typer.Option(
            help="Only some, with commas between them: em, vb, gibbs (the paper's 21), blocked, "
            "ours, baselines; or a single one such as gibbs-H or lda."
        ),
    ] = "",
    label_line: Annotated[
        int | None,
        typer.Option(help="Which video of a file that labels several, one a line; from 1 on."),
    ] = None,
    clip: options.Clip = 1.0,
    cell: options.Cell = 8,
    motion: options.MotionBy = options.Motion.CELLS,
    speeds: options.Speeds = 2,
    mask: options.Mask = None,
    region: options.Region = None,
    fps: options.Fps = None,
    fast: options.Fast = False,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Rerun the paper's experiment on a labelled video, beside what one would pick instead.

    All 21 methods of its Table I under its protocol, our own measures, and LDA, an HMM, nearest
    neighbours and others, on the same documents: one table, and its figures redrawn. Cut short
    at any point, the same command goes on where it was. Example:
    habitus compare junction.mp4 --labels junction.csv --train 300s -o comparison
    """
    from habitus.cli.progress import progress_bars
    from habitus.evaluation.label_files import parse_labels
    from habitus.ingest.clips import DocumentSettings
    from habitus.lab.comparison.results_page import write_comparison
    from habitus.lab.comparison.runs import compare_methods

    seconds, known = parsed_duration(train), parse_labels(labels, line=label_line)
    (video,) = sources_of([source], fps=fps, fast=fast, timeout=timeout)
    settings = DocumentSettings(
        clip=clip, cell=cell, motion=motion.value, speeds=speeds, mask=mask, region=region
    )
    with progress_bars() as progress:
        found = compare_methods(
            video,
            known,
            output,
            settings=settings,
            train=seconds,
            methods=[name for name in re.split(r"[,\s]+", methods) if name],
            n_runs=runs,
            n_topics=topics,
            n_behaviours=behaviours,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
    page = write_comparison(
        output, found, source=video.name, command=shlex.join(["habitus", *sys.argv[1:]])
    )
    _tell(found, page, as_json)


def parsed_duration(text: str) -> float:
    """Seconds of 300, 300s, 5min, 5:00 or 1h.

    >>> [parsed_duration(text) for text in ("300", "300s", "5min", "5:00", "0.5 h")]
    [300.0, 300.0, 300.0, 300.0, 1800.0]
    """
    from habitus.evaluation.labels import parse_seconds

    found = re.fullmatch(r"([\d.:]+)\s*([a-z]*)", text.strip().lower())
    try:
        if found is None or found[2] not in UNITS:
            raise ValueError
        seconds = parse_seconds(found[1]) * UNITS[found[2]]
    except ValueError:
        raise InvalidInputError(
            f"a length of time is written as 300s, 5min or 5:00, found {text!r}"
        ) from None
    check_duration("train", seconds)
    return seconds


def _tell(found: "Comparison", page: Path, as_json: bool) -> None:
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        typer.echo(json.dumps(found.to_json(), allow_nan=False))
        return
    from habitus.lab.comparison.results_page import in_terminal

    typer.echo(in_terminal(found))
    typer.echo(f"wrote {page} and {page.with_suffix('.md')}")
