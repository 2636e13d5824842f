"""What commands read: videos or corpora, with progress and notes on stderr."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from habitus.errors import InvalidInputError

if TYPE_CHECKING:
    from habitus.ingest.chunks import Extraction
    from habitus.ingest.clips import DocumentSettings
    from habitus.video import Source


def check_output(*paths: Path | None) -> None:
    """Refuse a place that cannot be written before any work is done."""
    for path in paths:
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise InvalidInputError(f"cannot write {path}: name a file in a folder that exists")


def check_duration(name: str, seconds: float | None) -> None:
    """Refuse a length of time that is none."""
    if seconds is not None and not seconds > 0:
        raise InvalidInputError(f"{name} must be above 0 seconds, found {seconds:g}")


def sources_of(addresses: list[str], **how: Any) -> "list[Source]":
    """Sources of the given addresses."""
    from habitus.video.source import Source

    return [Source(address, **how) for address in addresses]


def read_documents(
    sources: "list[Source]", settings: "DocumentSettings | None", shelf: Path | None, **how: Any
) -> "Extraction":
    """The documents of videos or corpora; parts wait beside `shelf` until `forget_parts`."""
    from habitus.cli.progress import video_progress_bar
    from habitus.pipeline import gather_documents

    with video_progress_bar("extracting") as progress:
        extraction = gather_documents(sources, settings, output=shelf, progress=progress, **how)
    for note in extraction.notes:
        typer.echo(f"note: {note}", err=True)
    return extraction


def forget_parts(shelf: Path) -> None:
    """Throw away what was kept in case the work would be cut short."""
    from habitus.ingest.chunks import ChunkCache

    ChunkCache(shelf).clear()


def make_folder(folder: Path) -> None:
    """Make a folder for results, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"cannot make the folder {folder}: {error.strerror}") from error
