"""What of the frame is watched: masks for what moves and does not matter, regions for what does."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError


def watched_cells(
    vocabulary: Vocabulary, *, mask: str | None = None, region: str | None = None
) -> NDArray[np.bool_]:
    """Cells to watch, rows x columns: outside the mask and mostly inside the region.

    Either is a PNG of the camera's frame size, where what is not black is meant, or polygons as
    text: `x,y x,y x,y` in the camera's pixels, several apart by `;`.
    """
    watched = np.ones((vocabulary.rows, vocabulary.columns), dtype=np.bool_)
    if mask is not None:
        watched &= _share(mask, vocabulary, "mask") == 0
    if region is not None:
        watched &= _share(region, vocabulary, "region") >= 0.5
    if not watched.any():
        raise InvalidInputError("mask and region leave no cell to watch")
    return watched


def region_of(watched: NDArray[np.bool_], vocabulary: Vocabulary) -> str | None:
    """The region, as polygons, that gives just these cells; None for all of them."""
    if watched.all():
        return None
    side = vocabulary.cell * vocabulary.scale
    polygons = []
    for row, cells in enumerate(watched):
        edges = np.flatnonzero(np.diff(cells, prepend=False, append=False)) * side
        top, bottom = row * side, (row + 1) * side - 1
        for left, right in edges.reshape(-1, 2) - [0, 1]:
            polygons.append(f"{left},{top} {right},{top} {right},{bottom} {left},{bottom}")
    return "; ".join(polygons)


def _share(given: str, vocabulary: Vocabulary, name: str) -> NDArray[np.float64]:
    """Share of each cell that the picture or the polygons cover."""
    is_text = "," in given and not is_file(given)
    area = _polygons(given, vocabulary, name) if is_text else _picture(given, vocabulary, name)
    side = vocabulary.cell * vocabulary.scale
    rows, columns = vocabulary.rows, vocabulary.columns
    cells = area[: rows * side, : columns * side].reshape(rows, side, columns, side)
    return np.asarray(cells.mean(axis=(1, 3)))


def is_file(given: str) -> bool:
    """Whether a text names a file; one too long to be a name does not."""
    try:
        return Path(given).is_file()
    except OSError:
        return False


def _picture(path: str, vocabulary: Vocabulary, name: str) -> NDArray[np.bool_]:
    import cv2

    if not is_file(path):
        raise InvalidInputError(
            f"{name} must be a picture or polygons (x,y x,y x,y), found no file {path!r}"
        )
    picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
    if picture is None:
        raise InvalidInputError(f"{name} {path}: not a picture that can be read")
    if picture.shape != (vocabulary.height, vocabulary.width):
        raise InvalidInputError(
            f"{name} {path} has {picture.shape[1]}x{picture.shape[0]} pixels, the video "
            f"{vocabulary.width}x{vocabulary.height}"
        )
    return np.asarray(picture > 0)


def _polygons(text: str, vocabulary: Vocabulary, name: str) -> NDArray[np.bool_]:
    import cv2

    area = np.zeros((vocabulary.height, vocabulary.width), dtype=np.uint8)
    for polygon in filter(str.strip, text.split(";")):
        try:
            corners = np.array([[float(n) for n in pair.split(",")] for pair in polygon.split()])
        except ValueError:
            corners = np.empty((0, 2))
        if corners.ndim != 2 or corners.shape[1:] != (2,) or len(corners) < 3:
            raise InvalidInputError(
                f"{name} must be polygons of at least three corners such as "
                f'"0,0 100,0 100,50", found {polygon.strip()!r}'
            )
        cv2.fillPoly(area, [np.round(corners).astype(np.int32)], 255)
    return area > 0
