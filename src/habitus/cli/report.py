"""habitus report: one HTML page about a video."""

import habitus
from habitus.cli import options
from habitus.cli.options import option
from habitus.cli.terminal import progress_bars, say, say_notes


@options.command
def report(
    *,
    source: str = options.SOURCE,
    model: str = options.MODEL,
    output: str = option(..., "Where to write the page.", "--output", "-o"),
    judging: options.JudgingOptions,
    reading: options.ReadingOptions,
    annotate: str | None = option(
        None, "Also write the video with its events drawn, as .mp4, and link into it."
    ),
    skip: float | None = options.SKIP,
    labels: str | None = option(
        None, "What is known to have happened, as for evaluate; shown on the page."
    ),
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
            reading=options.reading_settings(reading, skip=skip),
            commands=[options.command_line()],
            progress=progress,
            **judging.parameters(),
        )
    say_notes(detection.notes)
    say(detection.summary())
    say(f"wrote {output}")
