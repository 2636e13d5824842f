"""Whether footage shows the scene that a model was learnt from, by their still pictures.

The pictures are compared by the directions of their edges (normalised gradient fields; E. Haber and
J. Modersitzki, "Intensity gradient based registration and fusion of multi-modal images", 2006),
which do not depend on the light, at the best of a few small shifts. What moves covers little of a
picture. The limit was measured: see docs/concepts/detection.md.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from habitus.arrays import Array, Image
from habitus.errors import InvalidInputError
from habitus.files import written_whole

LEAST_LIKENESS = 0.4
"""Pictures of one scene are at least as alike."""
GRID = (120, 160)
"""Rows and columns that pictures are compared at."""
REACH = 4
"""Largest shift of the camera, in pixels of the grid, each way."""
# Brightness per pixel, of 256, that counts as noise beside the usual gradient of a picture.
NOISE = 0.5
# Share of pixels with an edge below which a picture is too plain to tell one scene from another.
LEAST_DETAIL = 0.1


def likeness(one: Image, other: Image) -> float:
    """Return how alike the edges of two pictures are: 1 for one picture, about 0 for two scenes.

    Parameters
    ----------
    one, other
        Pictures of any size, rows x columns x 3 or rows x columns.

    Returns
    -------
    float
        Largest correlation over shifts; NaN if a picture is too plain or dark to tell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> street, other = rng.integers(0, 256, (2, 30, 40, 3), dtype=np.uint8)
    >>> round(likeness(street, street // 2), 1), round(likeness(street, other), 1)
    (1.0, 0.0)
    """
    a, b = _edges(one), _edges(other)
    if min(_detail(a), _detail(b)) < LEAST_DETAIL:
        return float("nan")
    (rows, columns), reach = GRID, REACH
    centre = a[:, reach : rows - reach, reach : columns - reach]
    best = -1.0
    for dy in range(2 * reach + 1):
        for dx in range(2 * reach + 1):
            moved = b[:, dy : dy + rows - 2 * reach, dx : dx + columns - 2 * reach]
            norm = np.sqrt((centre**2).sum() * (moved**2).sum())
            best = max(best, float((centre * moved).sum() / max(norm, 1e-9)))
    return best


def _edges(picture: Image) -> Array:
    """Return the gradient of each pixel over its length and the picture's usual one, 2 x grid."""
    import cv2

    grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, GRID[::-1], interpolation=cv2.INTER_AREA).astype(np.float64)
    smooth = cv2.GaussianBlur(small, (0, 0), 1.0)
    slopes = [cv2.Sobel(smooth, cv2.CV_64F, *axis, scale=1 / 8) for axis in ((1, 0), (0, 1))]
    gradient = np.array(slopes, dtype=np.float64)
    length = np.sqrt((gradient**2).sum(axis=0))
    return np.asarray(gradient / np.sqrt(length**2 + (np.median(length) + NOISE) ** 2))


def _detail(edges: Array) -> float:
    """Return the share of pixels with an edge."""
    return float(((edges**2).sum(axis=0) > 0.5).mean())


@dataclass(frozen=True)
class CameraCheck:
    """The picture of a model's scene, and how to say that footage is of another."""

    picture: Image
    model: str
    """Name of the model, for messages."""
    beside: Path | None = None
    """Output beside which two pictures that differ are written; a temporary folder without one."""

    def refuses(self, seen: Image) -> bool:
        """Return whether a picture shows another scene; False where it cannot be told."""
        return likeness(self.picture, seen) < LEAST_LIKENESS

    def check(self, seen: Image | None, source: str) -> None:
        """Raise InvalidInputError if the picture of a source shows another scene."""
        if seen is not None and self.refuses(seen):
            raise self.error(seen, source)

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
        return InvalidInputError(
            f"{source} does not show the scene that {self.model} was learnt from: likeness "
            f"{likeness(self.picture, seen):.2f}, expected at least {LEAST_LIKENESS:g}. Compare "
            f"{known} with {found}, and learn this camera anew, or go on by force",
            parameter="force",
        )


def _write(path: Path, picture: Image) -> None:
    import cv2

    _, encoded = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    with written_whole(path) as temporary:
        temporary.write_bytes(encoded.tobytes())
