"""habitus report: one HTML page about a video."""

from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import say


@options.command
def report(
    source: options.OneSource,
    model: options.ModelFile,
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write the page.")],
    judging: options.JudgingOptions,
    reading: options.ReadingOptions,
    annotate: Annotated[
        str | None,
        typer.Option(help="Also write the video with its events drawn, as .mp4, and link into it."),
    ] = None,
    skip: options.Skip = None,
    labels: Annotated[
        str | None,
        typer.Option(help="What is known to have happened, as for evaluate; shown on the page."),
    ] = None,
) -> None:
    """Write a page about a video: the scene, its behaviours, and what was unusual.

    One file that needs nothing else. Example:
    habitus report later.mp4 --model junction.model -o report.html --annotate annotated.mp4
    """
    with progress_bars() as progress:
        detection = habitus.report(
            source,
            model,
            output,
            annotate=annotate,
            labels=labels,
            alerts=judging.settings(),
            force=judging.force,
            reading=options.reading_settings(reading, skip=skip),
            commands=[options.command_line()],
            progress=progress,
        )
    for note in detection.notes:
        say(f"note: {note}", err=True)
    say(detection.summary())
    say(f"wrote {output}")
