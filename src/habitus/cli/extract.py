"""habitus extract: documents from video."""

import time
from typing import Any

import habitus
from habitus.cli import options
from habitus.cli.options import READING, argument, option, together
from habitus.cli.terminal import progress_bars, say, say_json, say_notes
from habitus.rarity import counted


@options.command
def extract(
    *,
    sources: list[str] = argument(
        "Videos; or a folder or pattern of images (with --fps); or any address that FFmpeg opens, "
        "such as rtsp://camera/stream; - for standard input.",
        "VIDEO",
    ),
    output: str = option(..., "Where to write the corpus.", "--output", "-o"),
    documents: Any = options.DOCUMENTS,
    reading: habitus.ReadingSettings = together(
        READING,
        continued=options.CONTINUED,
        **options.READ_ANYWHERE,
        duration=option(None, "Stop after N seconds of video; Ctrl-C ends a live source too."),
    ),
    start: str | None = option(
        None,
        "Local date and time at which the footage begins, such as '2026-11-16 13:00', for habits "
        "of the hour.",
    ),
    preview: str | None = option(None, "Also write the footage with its words as arrows, as .mp4."),
    force: bool = options.FORCE,
    as_json: bool = options.json_option("Print the result as JSON."),
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
            documents=documents,
            reading=reading,
            progress=progress,
        )
    seconds = time.monotonic() - started
    say_notes(notes)
    summary = habitus.summarise_corpus(corpus)
    if as_json:
        say_json({**summary.to_json(), "seconds": seconds, "output": output, "notes": notes})
        return
    v, video = corpus.vocabulary, len(corpus) * corpus.clip
    grid = f", {v.rows} x {v.columns} cells of {v.cell_side} pixels" if v else ""
    say(
        f"{counted(summary.documents, 'document')} ({summary.words:.10g} words{grid}; "
        f"{summary.short:.0%} under 20 words) from {video:.0f} s of video in {seconds:.1f} s: "
        f"{video / seconds:.0f} times real time"
    )
    say(f"wrote {output}; look at it with: habitus show {output}")
