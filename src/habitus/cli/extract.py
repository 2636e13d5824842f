"""habitus extract: documents from video."""

import json
import time
from typing import Annotated, Any

import typer

import habitus
from habitus.cli import options
from habitus.cli.bars import progress_bars
from habitus.cli.terminal import say


@options.command
def extract(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Videos; or a folder or pattern of images (with --fps); or any address that "
            "FFmpeg opens, such as rtsp://camera/stream; - for standard input.",
            metavar="VIDEO...",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write the corpus.")],
    sequence: options.SequenceOptions,
    documents: options.DocumentOptions,
    reading: options.ReadingOptions,
    elsewhere: options.ClusterOptions,
    duration: Annotated[
        float | None,
        typer.Option(help="Stop after N seconds of video; Ctrl-C ends a live source too."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Local date and time at which the footage begins, such as '2026-11-16 13:00', for "
            "habits of the hour."
        ),
    ] = None,
    preview: Annotated[
        str | None, typer.Option(help="Also write the footage with its words as arrows, as .mp4.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Turn footage of a fixed camera into documents of visual words.

    A run that was cut short goes on where it was when the same command is given again.
    Example: habitus extract junction.mp4 -o junction.corpus, then: habitus show junction.corpus
    """
    started = time.monotonic()
    with progress_bars() as progress:
        corpus, notes = habitus.extract(
            sources,
            output=output,
            preview=preview,
            force=force,
            start=start,
            documents=documents.settings(),
            reading=options.reading_settings(sequence, reading, elsewhere, duration=duration),
            progress=progress,
        )
    seconds = time.monotonic() - started
    for note in notes:
        say(f"note: {note}", err=True)
    summary = habitus.summarise_corpus(corpus)
    if as_json:
        told: dict[str, Any] = {"seconds": seconds, "output": output, "notes": notes}
        typer.echo(json.dumps(summary.to_json() | told))
        return
    v, video = corpus.vocabulary, len(corpus) * corpus.clip
    grid = f", {v.rows} x {v.columns} cells of {v.cell_side} pixels" if v else ""
    say(
        f"{summary.documents} documents ({summary.words:.10g} words{grid}; {summary.short:.0%} "
        f"under 20 words) from {video:.0f} s of video in {seconds:.1f} s: {video / seconds:.0f} "
        "times real time"
    )
    say(f"wrote {output}; look at it with: habitus show {output}")
