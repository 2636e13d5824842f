"""Stretches of documents on their way into a corpus, kept on disk: nothing is done twice."""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from habitus.documents.clips import Document, Settings
from habitus.errors import FileError, InvalidInputError
from habitus.files import read_tensors, write_tensors
from habitus.video import Source
from habitus.video.frames import Image
from habitus.video.mask import is_file

VERSION = 1


class Part(NamedTuple):
    """Some documents one after the other, as arrays."""

    numbers: NDArray[np.int64]
    n_frames: NDArray[np.int64]
    changes: NDArray[np.float64]
    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    thumbnails: Image
    stills: Image
    """Stills x height x width x 3."""

    @property
    def documents(self) -> list[Document]:
        """The same documents, without their stills."""
        return [
            Document(
                int(self.numbers[i]), 0.0,
                self.words[self.indptr[i] : self.indptr[i + 1]].astype(np.int64),
                self.counts[self.indptr[i] : self.indptr[i + 1]].astype(np.int64),
                int(self.n_frames[i]), float(self.changes[i]), self.thumbnails[i], None,
            )
            for i in range(len(self.numbers))
        ]  # fmt: skip


def part_of(documents: Iterable[Document]) -> Part:
    """Documents as arrays."""
    found = list(documents)
    stills = [document.still for document in found if document.still is not None]
    return Part(
        np.array([d.number for d in found], dtype=np.int64),
        np.array([d.n_frames for d in found], dtype=np.int64),
        np.array([d.change for d in found], dtype=np.float64),
        np.cumsum([0, *(len(d.words) for d in found)]).astype(np.int64),
        np.concatenate([np.empty(0), *(d.words for d in found)]).astype(np.int32),
        np.concatenate([np.empty(0), *(d.counts for d in found)]).astype(np.int32),
        np.array([d.thumbnail for d in found], dtype=np.uint8),
        np.array(stills, dtype=np.uint8),
    )


class Shelf:
    """A folder beside the corpus to be, with the parts that are done."""

    def __init__(self, output: Path) -> None:
        self.folder = output.with_name(f".{output.name}.parts")

    def path(self, source: Source, settings: Settings, start: int, stop: int | None) -> Path:
        """Where a part of a source is kept; another video, another place.

        `stop` is given where the part was asked to end early.
        """
        identity = [source.address, source.fps, source.fast, asdict(settings), version("habitus")]
        file = Path(source.address)
        if file.exists():
            identity += [file.stat().st_size, file.stat().st_mtime_ns]
        for given in (settings.mask, settings.region):
            if given and is_file(given):
                identity.append(Path(given).stat().st_mtime_ns)
        digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=8).hexdigest()
        end = "" if stop is None else f"-{stop}"
        return self.folder / f"{digest}-{start:09d}{end}.safetensors"

    def put(self, path: Path, part: Part) -> None:
        """Keep a part, whole or not at all: a disk may be full."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot write {self.folder}: {error.strerror}") from error
        try:
            write_tensors(path, kind="part", version=VERSION, header={}, tensors=part._asdict())
        except InvalidInputError:
            with suppress(OSError):  # others are in it
                self.folder.rmdir()
            raise

    def has(self, path: Path) -> bool:
        """Whether a part was kept, whole; one that is damaged is thrown away."""
        try:
            self.get(path)
        except FileError:
            path.unlink(missing_ok=True)
            return False
        return True

    def get(self, path: Path) -> Part:
        """A part that was kept."""
        return Part(**read_tensors(path, kind="part", version=VERSION).tensors)

    def clear(self) -> None:
        """Forget all parts."""
        if self.folder.is_dir():
            for path in self.folder.glob("*.safetensors"):
                path.unlink()
            self.folder.rmdir()
