"""habitus watch: a live stream, as long as it lasts."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Annotated

import typer

import habitus
from habitus.cli import options


@options.command
def watch(
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
    of JSON once it is over. Example: habitus watch rtsp://camera/stream --model junction.model
    """
    with (
        _stopped_by_signals() as stop,
        closing(
            habitus.watch(
                source,
                model,
                output=output,
                stop=stop,
                patience=patience,
                **judging.parameters(),
                **stream.parameters(),
            )
        ) as happenings,
    ):
        for happening in happenings:
            if isinstance(happening, habitus.EventEnded):
                if output is None:
                    typer.echo(happening.event.line())
            elif isinstance(happening, habitus.EventStarted):
                event = happening.event
                told = "; ".join(part for part in (event.explanation, event.rarity) if part)
                typer.echo(f"{event.clock}  {told}", err=True)
            else:
                typer.echo(f"note: {happening.text}", err=True)


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
