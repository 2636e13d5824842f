"""habitus detect: what is unusual in a video."""

from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import say


@options.command
def detect(
    source: options.OneSource,
    model: options.ModelFile,
    judging: options.JudgingOptions,
    reading: options.ReadingOptions,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the alarms here, as JSON Lines."),
    ] = None,
    annotate: Annotated[
        str | None, typer.Option(help="Also write the video with its events drawn, as .mp4.")
    ] = None,
    scores: Annotated[
        str | None, typer.Option(help="Also write the normality of every document, as CSV.")
    ] = None,
    skip: options.Skip = None,
    moments: Annotated[
        bool,
        typer.Option(
            help="Also write, and print as JSON, the most unusual moments that are no alarms, with "
            '"alarm": false.'
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the alarms as JSON Lines.")
    ] = False,
) -> None:
    """Find what is unusual in a video: when, where and why.

    The ten most unusual moments are ranked, whatever the budget, with how rare each is in normal
    footage and whether it is an alarm. Example:
    habitus detect later.mp4 --model junction.model -o events.jsonl
    """
    with progress_bars() as progress:
        detection = habitus.detect(
            source,
            model,
            output=output,
            annotate=annotate,
            scores=scores,
            moments=moments,
            alerts=judging.settings(),
            force=judging.force,
            reading=options.reading_settings(reading, skip=skip),
            progress=progress,
        )
    for note in detection.notes:
        say(f"note: {note}", err=True)
    if as_json:
        for event in detection.moments if moments else detection.events:
            typer.echo(event.line())
        return
    for line in detection.ranking():
        say(line)
    say(detection.summary())
    if output is not None:
        say(f"wrote {output}")
