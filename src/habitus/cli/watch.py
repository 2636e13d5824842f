"""habitus watch: a live stream, as long as it lasts."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from habitus.arrays import Image
from habitus.cli import options
from habitus.cli.detection import load_detector
from habitus.cli.inputs import check_duration, check_output, sources_of
from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.anomaly.events import Event
    from habitus.corpus.vocabulary import Vocabulary


def watch(
    source: Annotated[
        str,
        typer.Argument(
            help="What to watch: any address that FFmpeg opens, such as rtsp://camera/stream; a "
            "file; - for standard input.",
            metavar="SOURCE",
        ),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="What `habitus learn` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Add the events to this file, as JSON Lines, with thumbnails "
            "in a folder beside it; standard output if not given.",
        ),
    ] = None,
    alerts_per_day: options.AlertsPerDay = None,
    share: options.Share = None,
    threshold: options.Threshold = None,
    measure: options.MeasureBy = options.Measure.TAIL,
    approximation: options.ApproximateBy = options.Approximation.PLUG_IN,
    samples: options.Samples = None,
    seed: Annotated[int, typer.Option(help="Of vb's posterior samples.")] = 0,
    patience: Annotated[
        float, typer.Option(help="Seconds without a frame after which to connect anew.")
    ] = 10.0,
    fps: options.Fps = None,
    fast: options.Fast = False,
) -> None:
    """Watch a live stream, and tell at once what is not usual in it.

    It connects anew whenever the stream stalls or dies, runs for days, and ends with Ctrl-C or
    SIGTERM, every event written. An event is told on stderr when it begins, and written as a line
    of JSON once it is over. Example: habitus watch rtsp://camera/stream --model junction.model
    """
    from habitus.anomaly.watching import EventEnded, EventStarted, watch_events
    from habitus.pipeline import settings_of

    check_output(output)
    check_duration("patience", patience)
    detector = load_detector(
        model, measure=measure.value, approximation=approximation.value, n_samples=samples,
        threshold=threshold, share=share, alerts_per_day=alerts_per_day, seed=seed,
    )  # fmt: skip
    (camera,) = sources_of([source], fps=fps, fast=fast, timeout=patience)
    settings, vocabulary = settings_of(detector.model), detector.model.vocabulary_
    with _ends_on_signals() as stop, _opened(output) as file:
        for told in watch_events(detector, camera, settings, stop=stop, patience=patience):
            if isinstance(told, EventEnded):
                event = told.event
                if output is not None and told.still is not None and vocabulary is not None:
                    event = _with_thumbnail(event, told.still, vocabulary, output)
                file.write(f"{event.line()}\n")
                file.flush()
            elif isinstance(told, EventStarted):
                typer.echo(f"{told.event.clock}  {told.event.explanation}", err=True)
            else:
                typer.echo(f"note: {told.text}", err=True)


@contextmanager
def _ends_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        with output.open("a", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise InvalidInputError(f"cannot write {output}: {error.strerror}") from error


def _with_thumbnail(
    event: "Event", still: "Image", vocabulary: "Vocabulary", output: Path
) -> "Event":
    """Write the picture of an event beside the events, and say where it is."""
    from habitus.files import written_whole
    from habitus.report.figures.moments import still_thumbnail

    folder = output.with_name(f"{output.stem}-thumbnails")
    folder.mkdir(exist_ok=True)
    name = f"{(event.clock or '').replace(':', '')}.jpg"
    with written_whole(folder / name) as temporary:
        temporary.write_bytes(still_thumbnail(event, still, vocabulary))
    return replace(event, thumbnail=f"{folder.name}/{name}")
