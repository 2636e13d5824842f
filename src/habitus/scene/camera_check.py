"""Whether footage shows the scene that a model was learnt from: one of the looks of it."""

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from habitus.arrays import Image
from habitus.corpus import Corpus
from habitus.corpus.looks import LEAST_LIKENESS, Edges, best_likeness, edges_of, look_of
from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.model import TopicModel


@dataclass(frozen=True)
class CameraCheck:
    """The looks of a model's scene, and how to say that footage is of another."""

    picture: Image
    """The scene as it is shown to people."""
    looks: Image
    """What footage is compared with; looks x rows x columns."""
    model: str
    """Name of the model, for messages."""
    beside: Path | None = None
    """Output beside which two pictures that differ are written; a temporary folder without one."""

    @classmethod
    def of(cls, model: TopicModel, name: str, beside: Path | None = None) -> "CameraCheck | None":
        """Return the check for a model; None if it has no picture."""
        return None if model.picture_ is None else cls(model.picture_, model.looks_, name, beside)

    @cached_property
    def _edges(self) -> list[Edges]:
        """What looks are compared by."""
        return [edges_of(look) for look in self.looks]

    def likeness(self, *seen: Image) -> float:
        """Return how alike pictures of footage are to any look, at best; NaN if it is unknown."""
        return best_likeness(self._edges, (edges_of(look_of(picture)) for picture in seen))

    def refuses(self, *seen: Image) -> bool:
        """Return whether pictures of footage show another scene; False where it is unknown."""
        return self.likeness(*seen) < LEAST_LIKENESS

    def check(self, corpus: Corpus, source: str) -> None:
        """Raise InvalidInputError if documents of a source show another scene."""
        if corpus.picture is not None and self.refuses(*corpus.looks):
            raise self.error(corpus.picture, source)

    def error(self, seen: Image, source: str) -> InvalidInputError:
        """Write both pictures and return the error that names them."""
        folder = Path(tempfile.mkdtemp(prefix="habitus-")) if self.beside is None else None
        stem = self.beside.with_suffix("") if self.beside is not None else Path("habitus")
        known, found = (
            (folder or stem.parent) / f"{stem.name}-scene-of-{whose}.png"
            for whose in ("model", "video")
        )
        _write(known, self.picture)
        _write(found, seen)
        n = len(self.looks)
        return InvalidInputError(
            f"{source} does not show the scene that {self.model} was learnt from: likeness to "
            f"{'its look' if n == 1 else f'the nearest of its {n} looks'} "
            f"{self.likeness(seen):.1f}, expected at least {LEAST_LIKENESS:g}. Compare "
            f"{known} with {found}, and learn this camera anew, or go on by force",
            parameter="force",
        )


def _write(path: Path, picture: Image) -> None:
    import cv2

    _, encoded = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    with written_whole(path) as temporary:
        temporary.write_bytes(encoded.tobytes())
