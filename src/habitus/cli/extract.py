"""habitus extract: documents from video."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habitus.cli import options
from habitus.cli.inputs import (
    check_duration,
    check_output,
    forget_parts,
    read_documents,
    sources_of,
)

if TYPE_CHECKING:
    from habitus.corpus.documents import Corpus


def extract(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Videos; or a folder or pattern of images (with --fps); or any address that "
            "FFmpeg opens, such as rtsp://camera/stream; - for standard input.",
            metavar="VIDEO...",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the corpus.")],
    continued: options.Continued = False,
    clip: options.Clip = 1.0,
    cell: options.Cell = 8,
    motion: options.MotionBy = options.Motion.CELLS,
    speeds: options.Speeds = 2,
    mask: options.Mask = None,
    region: options.Region = None,
    fps: options.Fps = None,
    fast: options.Fast = False,
    duration: Annotated[
        float | None,
        typer.Option(help="Stop after so many seconds of video; Ctrl-C ends a live source too."),
    ] = None,
    timeout: options.Timeout = 10.0,
    jobs: options.Jobs = -1,
    preview: Annotated[
        Path | None, typer.Option(help="Also write the footage with its words as arrows, as .mp4.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Turn footage of a fixed camera into documents of visual words.

    A run that was cut short goes on where it was when the same command is given again.
    Example: habitus extract junction.mp4 -o junction.corpus, then: habitus show junction.corpus
    """
    from habitus.cli.progress import video_progress_bar
    from habitus.errors import InvalidInputError
    from habitus.ingest.clips import DocumentSettings

    check_output(output, preview)
    check_duration("duration", duration)
    settings = DocumentSettings(
        clip=clip, cell=cell, motion=motion.value, speeds=speeds, mask=mask, region=region
    )
    found = sources_of(sources, fps=fps, fast=fast, timeout=timeout)
    if preview is not None and found[0].is_live:
        raise InvalidInputError(f"a preview needs a file; {found[0].name} can be read only once")
    started = time.monotonic()
    corpus, notes = read_documents(
        found, settings, output, continued=continued, jobs=jobs, duration=duration
    )
    corpus.save(output)
    forget_parts(output)
    seconds = time.monotonic() - started
    if preview is not None:
        from habitus.report.film.annotation import write_preview

        with video_progress_bar("preview") as progress:
            write_preview(preview, found[0], settings, progress=progress)
    summary = _summary(corpus, seconds) | {"output": str(output), "notes": notes}
    if as_json:
        typer.echo(json.dumps(summary))
        return
    v = corpus.vocabulary
    grid = f", {v.rows} x {v.columns} cells of {v.cell * v.scale} pixels" if v else ""
    video = len(corpus) * clip
    typer.echo(
        f"{len(corpus)} documents ({summary['words']} words{grid}; {summary['short']:.0%} under 20 "
        f"words) from {video:.0f} s of video in {seconds:.1f} s: {video / seconds:.0f} times real "
        "time"
    )
    typer.echo(f"wrote {output}; look at it with: habitus show {output}")


def _summary(corpus: "Corpus", seconds: float) -> dict[str, Any]:
    n_tokens = corpus.n_tokens
    return {
        "documents": len(corpus),
        "sequences": len(corpus.lengths),
        "words": int(n_tokens.sum()),
        "short": float((n_tokens < 20).mean()),
        "seconds": seconds,
        "faults": int((corpus.conditions != 0).sum()),
    }
