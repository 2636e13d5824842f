"""Cells to examine: masks exclude parts of the frame, regions select parts of it."""

from pathlib import Path

import numpy as np

from habitus.arrays import Array, Flags, Image
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.schema import MOST_PIXELS, check_polygon, shortened
from habitus.video.source import redacted


def watched_cells(
    vocabulary: Vocabulary, *, mask: str | None = None, region: str | None = None
) -> Flags:
    """Return the cells that lie outside a mask and mostly inside a region.

    Parameters
    ----------
    vocabulary
        The grid of cells.
    mask, region
        An image file of the camera's frame size, whose pixels that are not black are meant; or
        polygons as text: `x,y x,y x,y` in pixels of the camera's frame, separated by `;`.

    Returns
    -------
    array of bool
        Rows x columns.

    Raises
    ------
    InvalidInputError
        If a mask or region cannot be read, or no cell is left.

    Examples
    --------
    >>> grid = Vocabulary(2, 3)
    >>> watched_cells(grid, mask="0,0 7,0 7,7 0,7").astype(int)
    array([[0, 1, 1],
           [1, 1, 1]])
    """
    watched = np.ones((vocabulary.rows, vocabulary.columns), dtype=np.bool_)
    if mask is not None:
        watched &= covered_shares(mask, vocabulary, "mask") == 0
    if region is not None:
        watched &= covered_shares(region, vocabulary, "region") >= 0.5
    if not watched.any():
        raise InvalidInputError("mask and region leave no cell to examine")
    return watched


def region_of(watched: Flags, vocabulary: Vocabulary) -> str | None:
    """Return the region, as polygons, that selects exactly these cells; None for all of them.

    Examples
    --------
    >>> region_of(np.array([[False, True, True]]), Vocabulary(1, 3))
    '8,0 23,0 23,7 8,7'
    """
    if watched.all():
        return None
    side = vocabulary.cell_side
    polygons = []
    for row, cells in enumerate(watched):
        edges = np.flatnonzero(np.diff(cells, prepend=False, append=False)) * side
        top, bottom = row * side, (row + 1) * side - 1
        for left, right in edges.reshape(-1, 2) - [0, 1]:
            polygons.append(f"{left},{top} {right},{top} {right},{bottom} {left},{bottom}")
    return "; ".join(polygons)


def covered_shares(given: str, vocabulary: Vocabulary, name: str) -> Array:
    """Return the fraction of each cell that the image or the polygons cover."""
    is_text = "," in given and not is_file(given)
    area = _polygons(given, vocabulary, name) if is_text else _image(given, vocabulary, name)
    side = vocabulary.cell_side
    rows, columns = vocabulary.rows, vocabulary.columns
    cells = area[: rows * side, : columns * side].reshape(rows, side, columns, side)
    return np.asarray(cells.mean(axis=(1, 3)))


def is_file(given: str) -> bool:
    """Return whether a text is the name of a file; a text too long for a name is not."""
    try:
        return Path(given).is_file()
    except (OSError, ValueError):
        return False


def read_grey(path: Path) -> Image | None:
    """Return the brightness of an image file's pixels; None if it cannot be read as an image."""
    import cv2

    try:
        data = np.fromfile(path, np.uint8)
        picture = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE) if len(data) else None
    except (OSError, cv2.error):  # such as more pixels than OpenCV wants
        return None
    return None if picture is None else np.asarray(picture, dtype=np.uint8)


def _image(path: str, vocabulary: Vocabulary, name: str) -> Flags:
    """Return the pixels of an image file that are not black."""
    if not is_file(path):
        raise InvalidInputError(
            f"{name} must be an image file or polygons (x,y x,y x,y), found no file "
            f"{shortened(repr(redacted(path)))}",
            parameter=name,
        )
    picture = read_grey(Path(path))
    if picture is None:
        raise InvalidInputError(f"{name} {path}: not an image that can be read", parameter=name)
    if picture.shape != (vocabulary.height, vocabulary.width):
        raise InvalidInputError(
            f"{name} {path} has {picture.shape[1]}x{picture.shape[0]} pixels, the video "
            f"{vocabulary.width}x{vocabulary.height}",
            parameter=name,
        )
    return np.asarray(picture > 0)


def _polygons(text: str, vocabulary: Vocabulary, name: str) -> Flags:
    """Return the pixels inside polygons."""
    import cv2

    area = np.zeros((vocabulary.height, vocabulary.width), dtype=np.uint8)
    for polygon in filter(str.strip, text.split(";")):
        try:
            corners = np.array([[float(n) for n in pair.split(",")] for pair in polygon.split()])
        except ValueError:
            corners = np.empty((0, 2))
        fits = corners.ndim == 2 and corners.shape[1:] == (2,) and len(corners) >= 3
        if not fits or not (np.abs(corners) <= MOST_PIXELS).all():
            raise InvalidInputError(
                f"{name} must be polygons of at least three corners such as "
                f'"0,0 100,0 100,50", within {MOST_PIXELS} pixels, found '
                f"{shortened(repr(polygon.strip()))}",
                parameter=name,
            )
        check_polygon(corners.tolist(), vocabulary.width, vocabulary.height, name)
        cv2.fillPoly(area, [np.round(corners).astype(np.int32)], 255)
    return area > 0
