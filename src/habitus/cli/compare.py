"""habitus compare: the paper's experiment on a labelled video, beside what one would pick else."""

import re
from pathlib import Path
from typing import Any

import habitus
from habitus.cli import options
from habitus.cli.options import LEARNING, READING, USUAL, argument, option, together
from habitus.cli.terminal import progress_bars, say, say_json, say_notes


@options.command
def compare(
    *,
    source: str = argument(
        "A labelled video, as for extract; or a corpus file that extract wrote.", "VIDEO|CORPUS"
    ),
    labels: str = option(
        ...,
        "What is abnormal in it, in any form that evaluate takes: CSV with start,end (and kind, "
        "and left,top,right,bottom), boxes frame by frame, lists of frames, masks.",
        "--labels",
        "-l",
    ),
    documents: Any = options.DOCUMENTS,
    reading: habitus.ReadingSettings = together(READING, **options.READ_ANYWHERE),
    output: str = option(
        "comparison",
        "Folder for the page, the Markdown file and every run's scores.",
        "--output",
        "-o",
    ),
    train: str = option(
        "300s", "Learn from this much of its beginning, judge the rest: 300s, 5min, 5:00."
    ),
    learning: habitus.LearningSettings = together(
        LEARNING, **options.SIZES, seed=option(USUAL, "Same seed, same figures.")
    ),
    runs: int = option(20, "Runs of each method from different random starts."),
    methods: str = option(
        "",
        "Only some, separated by commas: em, vb, gibbs (the paper's 21), blocked, ours, "
        "baselines; or a single one such as gibbs-H or lda.",
    ),
    label_line: int | None = options.LABEL_LINE,
    as_json: bool = options.json_option("Print all figures as JSON."),
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
            train=habitus.parse_duration(train, parameter="train"),
            runs=runs,
            methods=[name for name in re.split(r"[,\s]+", methods) if name],
            label_line=label_line,
            documents=documents,
            learning=learning,
            reading=reading,
            command=options.command_line(),
            progress=progress,
        )
    if as_json:
        say_json(comparison.to_json())
        return
    for line in habitus.comparison_table(comparison).splitlines():
        say(line)
    say_notes(comparison.notes)
    page = Path(output, "comparison.html")
    say(f"wrote {page} and {page.with_suffix('.md')}")
