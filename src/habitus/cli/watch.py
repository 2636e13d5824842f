"""habitus watch: a live stream, as long as it lasts."""

from collections.abc import Iterable
from contextlib import closing
from typing import Annotated

import typer

import habitus
from habitus.cli import options
from habitus.cli.ending import stopped_by_signals
from habitus.cli.telling import Output, Teller


@options.command
def watch(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="What to watch: any address that FFmpeg opens, such as rtsp://camera/stream; a "
            "file; - for standard input.",
            metavar="SOURCE",
        ),
    ],
    model: options.ModelFile,
    judging: options.JudgingOptions,
    stream: options.StreamOptions,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Add the events to this file, as JSON Lines, with thumbnails "
            "in a folder beside it; standard output if not given.",
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option(help="Seconds without a frame after which to connect anew.")
    ] = 10.0,
) -> None:
    """Watch a live stream, and tell at once what is unusual in it.

    It connects anew whenever the stream stalls or dies, runs for days, and ends with Ctrl-C or
    SIGTERM, every event written. An event is told on stderr when it starts, and written as a line
    of JSON once it is over; events that cannot be written wait. The file may be renamed at any
    time (log rotation). That nothing can be judged is a line as well. Example:
    habitus watch rtsp://camera/stream --model junction.model
    """
    with stopped_by_signals() as stop, Teller() as teller:
        out = Output(stop) if output is None else None
        try:
            with closing(
                habitus.watch(
                    source,
                    model,
                    output=output,
                    stop=stop,
                    patience=patience,
                    alerts=judging.settings(),
                    force=judging.force,
                    reading=options.reading_settings(stream),
                )
            ) as happenings:
                _tell(happenings, teller, out)
        except habitus.HabitusError as error:
            teller.tell(options.error_line(error, context))
            raise typer.Exit(1) from error
        unread = out.close() if out is not None else []
        for line in unread:
            teller.tell(f"note: not read from standard output: {line}")
        if unread:
            raise typer.Exit(1)


def _tell(happenings: Iterable[object], teller: Teller, out: Output | None) -> None:
    """Tell what happens on stderr, and the events on stdout if that is wanted."""
    for happening in happenings:
        if isinstance(happening, habitus.EventEnded):
            if out is not None:
                out.add(happening.event.line())
        elif isinstance(happening, habitus.CameraFault):
            if out is not None:
                out.add(happening.line())
            teller.tell(f"{happening.clock}  {happening.explanation}")
        elif isinstance(happening, habitus.EventStarted):
            event = happening.event
            told = "; ".join(part for part in (event.explanation, event.rarity) if part)
            teller.tell(f"{event.clock}  {told}")
        elif isinstance(happening, habitus.Notice):
            teller.tell(f"note: {happening.text}")
