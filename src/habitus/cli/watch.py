"""habitus watch: a live stream, as long as it lasts."""

from collections.abc import Iterable
from contextlib import closing

import typer

import habitus
from habitus.cli import options
from habitus.cli.ending import stopped_by_signals
from habitus.cli.lines import ErrorLines, OutputLines
from habitus.cli.options import READING, argument, option, together
from habitus.rarity import counted


@options.command
def watch(
    *,
    context: typer.Context,
    source: str = argument(
        "What to watch: any address that FFmpeg opens, such as rtsp://camera/stream; a file; - for "
        "standard input.",
        "SOURCE",
    ),
    model: str = options.MODEL,
    output: str | None = option(
        None,
        "Add the events to this file, as JSON Lines, with thumbnails in a folder beside it; "
        "standard output if not given.",
        "--output",
        "-o",
    ),
    alerts: habitus.AlertSettings = options.JUDGING,
    force: bool = options.FORCE_SCENE,
    reading: habitus.ReadingSettings = together(READING, **options.STREAM),
    patience: float = option(10.0, "Seconds without a frame after which to connect anew."),
) -> None:
    """Watch a live stream, and report at once what is unusual in it.

    It connects anew whenever the stream stalls or dies, runs for days, and ends with Ctrl-C or
    SIGTERM, every event written. An event is reported on stderr when it starts, and is a line of
    JSON once it is over; events that cannot be written wait. The file may be renamed at any
    time (log rotation). That nothing can be judged is a line as well. Example:
    habitus watch rtsp://camera/stream --model junction.model
    """
    with stopped_by_signals() as stop, ErrorLines() as errors:
        out = OutputLines(stop) if output is None else None
        try:
            with closing(
                habitus.watch(
                    source,
                    model,
                    output=output,
                    stop=stop,
                    patience=patience,
                    alerts=alerts,
                    force=force,
                    reading=reading,
                )
            ) as happenings:
                _show(happenings, errors, out)
        except habitus.HabitusError as error:
            errors.add(options.error_line(error, context))
            raise typer.Exit(1) from error
        unread = out.close() if out is not None else []
        for line in unread:
            errors.add(f"note: not read from standard output: {line}")
        if unread:
            lines = counted(len(unread), "line")
            errors.add(f"habitus: {lines} of standard output could not be written")
            raise typer.Exit(1)


def _show(happenings: Iterable[object], errors: ErrorLines, out: OutputLines | None) -> None:
    """Say what happens on stderr, and print the events on stdout if that is wanted."""
    for happening in happenings:
        if isinstance(happening, habitus.EventEnded):
            if out is not None:
                out.add(happening.event.line())
        elif isinstance(happening, habitus.CameraFault):
            if out is not None:
                out.add(happening.line())
            when = happening.clock or habitus.clock(happening.start)
            errors.add(f"{when}  {happening.explanation}")
        elif isinstance(happening, habitus.EventStarted):
            event = happening.event
            sentence = "; ".join(part for part in (event.explanation, event.rarity) if part)
            errors.add(f"{event.clock or habitus.clock(event.start)}  {sentence}")
        elif isinstance(happening, habitus.Notice):
            errors.add(f"note: {happening.text}")
