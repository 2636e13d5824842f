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
    alerts: habitus.AlertSettings = options.JUDGING,
    force: bool = options.FORCE_SCENE,
    reading: habitus.ReadingSettings = options.READ_ONE,
    annotate: str | None = option(
        None, "Also write the video with its events drawn, as .mp4, and link into it."
    ),
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
            alerts=alerts,
            force=force,
            reading=reading,
            commands=[options.command_line()],
            progress=progress,
        )
    say_notes(detection.notes)
    say(detection.summary())
    say(f"wrote {output}")
