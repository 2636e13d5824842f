"""habitus extract: documents from video."""

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Motion(StrEnum):
    """How motion is seen."""

    CELLS = "cells"
    DIS = "dis"


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
    continued: Annotated[
        bool,
        typer.Option("--continue", help="Several videos are one, cut into files: one sequence."),
    ] = False,
    clip: Annotated[float, typer.Option(help="Seconds of video to a document.")] = 1.0,
    cell: Annotated[
        int,
        typer.Option(
            help="Side of a cell, in pixels of the analysed frame (large frames are halved)."
        ),
    ] = 8,
    motion: Annotated[
        Motion, typer.Option(help="cells: our own kernel, fast. dis: OpenCV's dense flow, slow.")
    ] = Motion.CELLS,
    mask: Annotated[
        str | None,
        typer.Option(
            help="What not to watch (clocks, trees, screens): a PNG of the frame's size, not black "
            "there, or polygons: '0,0 90,0 90,20; 300,10 ...'."
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Watch only this: a PNG or polygons, as for --mask.")
    ] = None,
    fps: Annotated[
        float | None, typer.Option(help="Frames a second of images, or of streams without times.")
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Skip frames no other frame needs, and the loop filter.")
    ] = False,
    duration: Annotated[
        float | None,
        typer.Option(help="Stop after so many seconds of video; Ctrl-C ends a live source too."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that an address may take to answer.")
    ] = 10.0,
    jobs: Annotated[
        int, typer.Option(help="Processes; -1 for one a core. Never changes the result.")
    ] = -1,
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
    from habitus.documents.clips import Settings
    from habitus.documents.extraction import extract as extract_documents
    from habitus.documents.parts import Shelf
    from habitus.errors import InvalidInputError
    from habitus.video import Source

    for path in (output, preview):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise InvalidInputError(f"cannot write {path}: name a file in a folder that exists")
    if duration is not None and not duration > 0:
        raise InvalidInputError(f"duration must be above 0 seconds, found {duration:g}")
    settings = Settings(clip=clip, cell=cell, motion=motion.value, mask=mask, region=region)
    found = [Source(address, fps=fps, fast=fast, timeout=timeout) for address in sources]
    if preview is not None and found[0].is_live:
        raise InvalidInputError(f"a preview needs a file; {found[0].address} can be read only once")
    started = time.monotonic()
    with video_progress_bar("extracting") as progress:
        corpus, notes = extract_documents(
            found, settings, output=output, continued=continued, jobs=jobs, duration=duration,
            progress=progress,
        )  # fmt: skip
    corpus.save(output)
    Shelf(output).clear()
    seconds = time.monotonic() - started
    if preview is not None:
        from habitus.report.preview import write_preview

        with video_progress_bar("preview") as progress:
            write_preview(preview, found[0], settings, progress=progress)
    n_tokens = corpus.n_tokens
    short = float((n_tokens < 20).mean())
    summary = {
        "output": str(output), "documents": len(corpus), "sequences": len(corpus.lengths),
        "words": int(n_tokens.sum()), "short": short, "seconds": seconds,
        "faults": int((corpus.conditions != 0).sum()), "notes": notes,
    }  # fmt: skip
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        typer.echo(json.dumps(summary))
        return
    v = corpus.vocabulary
    grid = f", {v.rows} x {v.columns} cells of {v.cell * v.scale} pixels" if v else ""
    video = len(corpus) * clip
    typer.echo(
        f"{len(corpus)} documents ({n_tokens.sum():.0f} words{grid}; {short:.0%} under 20 words) "
        f"from {video:.0f} s of video in {seconds:.1f} s: {video / seconds:.0f} times real time"
    )
    typer.echo(f"wrote {output}; look at it with: habitus show {output}")
