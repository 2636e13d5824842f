"""habitus detect: what is unusual in a video."""

import habitus
from habitus.cli import options
from habitus.cli.options import option
from habitus.cli.terminal import progress_bars, say, say_lines, say_notes


@options.command
def detect(
    *,
    source: str = options.SOURCE,
    model: str = options.MODEL,
    output: str | None = option(
        None,
        "Write the alarms here, as JSON Lines, with thumbnails in a folder beside it.",
        "--output",
        "-o",
    ),
    alerts: habitus.AlertSettings = options.JUDGING,
    force: bool = options.FORCE_SCENE,
    reading: habitus.ReadingSettings = options.READ_ONE,
    annotate: str | None = option(None, "Also write the video with its events drawn, as .mp4."),
    scores: str | None = option(None, "Also write the normality of every document, as CSV."),
    moments: bool = option(
        False,
        "Also write, and print as JSON, the most unusual moments that are no alarms, with "
        '"alarm": false.',
        "--moments",
    ),
    as_json: bool = options.json_option("Print the alarms as JSON Lines."),
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
            alerts=alerts,
            force=force,
            reading=reading,
            progress=progress,
        )
    say_notes(detection.notes)
    if as_json:
        say_lines(event.line() for event in (detection.moments if moments else detection.events))
        return
    for line in detection.ranking():
        say(line)
    say(detection.summary())
    if output is not None:
        say(f"wrote {output}")
