"""habitus compare: the paper's experiment on a labelled video, beside what one would pick else."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import say


@options.command
def compare(
    source: Annotated[
        str,
        typer.Argument(
            help="A labelled video, as for extract; or a corpus file that extract wrote.",
            metavar="VIDEO|CORPUS",
        ),
    ],
    labels: Annotated[
        str,
        typer.Option(
            "--labels",
            "-l",
            help="What is abnormal in it, in any form that evaluate takes: CSV with start,end "
            "(and kind, and left,top,right,bottom), boxes frame by frame, lists of frames, masks.",
        ),
    ],
    documents: options.DocumentOptions,
    reading: options.ReadingOptions,
    elsewhere: options.ClusterOptions,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Folder for the page, the Markdown file and every run's scores."
        ),
    ] = "comparison",
    train: Annotated[
        str,
        typer.Option(
            help="Learn from this much of its beginning, judge the rest: 300s, 5min, 5:00."
        ),
    ] = "300s",
    n_topics: Annotated[int, typer.Option("--topics", help="Number of topics.")] = 8,
    n_behaviours: Annotated[int, typer.Option("--behaviours", help="Number of behaviours.")] = 4,
    runs: Annotated[
        int, typer.Option(help="Runs of each method from different random starts.")
    ] = 20,
    methods: Annotated[
        str,
        typer.Option(
            help="Only some, separated by commas: em, vb, gibbs (the paper's 21), blocked, "
            "ours, baselines; or a single one such as gibbs-H or lda."
        ),
    ] = "",
    label_line: options.LabelLine = None,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Rerun the paper's experiment on a labelled video, beside what one would pick instead.

    All 21 methods of its Table I under its protocol, our own measures, and LDA, an HMM, nearest
    neighbours and others, on the same documents: one table, and its figures redrawn. Cut short
    at any point, the same command goes on where it was. Example:
    habitus compare junction.mp4 --labels junction.csv --train 300s -o comparison
    """
    with progress_bars() as progress:
        comparison = habitus.compare(
            source,
            labels,
            output=output,
            train=habitus.parse_duration(train),
            runs=runs,
            methods=[name for name in re.split(r"[,\s]+", methods) if name],
            label_line=label_line,
            documents=documents.settings(),
            learning=habitus.LearningSettings(n_topics, n_behaviours, seed=seed),
            reading=options.reading_settings(reading, elsewhere),
            command=options.command_line(),
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(comparison.to_json(), allow_nan=False))
        return
    for line in habitus.comparison_table(comparison).splitlines():
        say(line)
    for note in comparison.notes:
        say(f"note: {note}", err=True)
    page = Path(output, "comparison.html")
    say(f"wrote {page} and {page.with_suffix('.md')}")
