"""The documents of a comparison, kept in its folder: a video is read once."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from habitus.cli.inputs import forget_parts, read_documents
from habitus.errors import FileError, InvalidInputError

if TYPE_CHECKING:
    from habitus.corpus.documents import Corpus
    from habitus.ingest.clips import DocumentSettings
    from habitus.video import Source


def compared_documents(source: "Source", folder: Path, *, jobs: int, **how: Any) -> "Corpus":
    """The documents of a video, which are kept in the folder, or of a corpus file."""
    from habitus.corpus.documents import Corpus
    from habitus.files import kind_of, written_whole
    from habitus.ingest.clips import DocumentSettings

    if source.is_live:
        raise InvalidInputError(f"{source.name} is live: a comparison needs a video with an end")
    if kind_of(source.address) == "corpus":
        return Corpus.load(source.address)
    settings = DocumentSettings(**how)
    kept, origin = folder / "documents.corpus", folder / "documents.origin"
    identity = _identity(source, settings)
    if origin.exists():
        _check(origin, identity, source)
        try:
            return Corpus.load(kept)
        except FileError:  # damaged, or gone: read the video again
            origin.unlink()
    corpus, _ = read_documents([source], settings, kept, jobs=jobs)
    corpus.save(kept)
    with written_whole(origin) as temporary:
        temporary.write_text(identity, encoding="utf-8")
    forget_parts(kept)
    return corpus


def _check(origin: Path, identity: str, source: "Source") -> None:
    """Refuse another video before it is read."""
    if origin.read_text(encoding="utf-8", errors="replace") != identity:
        raise InvalidInputError(
            f"{origin.parent} holds a comparison on another video than {source.name}, or it was "
            "changed or read in another way since: name another --output, or delete it"
        )


def _identity(source: "Source", settings: "DocumentSettings") -> str:
    """The same if and only if the video and how it is read are the same."""
    from importlib.metadata import version

    what = [source.address, source.fps, source.fast, asdict(settings), version("habitus")]
    for file in filter(None, (source.address, settings.mask, settings.region)):
        if Path(file).exists():
            what += [Path(file).stat().st_size, Path(file).stat().st_mtime_ns]
    return hashlib.blake2b(json.dumps(what).encode(), digest_size=16).hexdigest()
