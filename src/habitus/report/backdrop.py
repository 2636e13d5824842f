"""The scene as a ground to draw on: pale and nearly grey, so that colours mean arrows only."""

import cv2
import numpy as np
from matplotlib.axes import Axes

from habitus.report.arrows import Picture
from habitus.report.palette import rgb
from habitus.words import Vocabulary

PLAIN, EDGE = "#F4F4F2", "#C8C8C4"
# Arrows are drawn this many times as large, then reduced: their edges are finer than a pixel.
FINER = 2
# Shares of the picture's own colours, and of white over it.
COLOURED, WHITENED = 0.25, 0.58


def paled(picture: Picture) -> Picture:
    """The picture with most of its colours and half of its contrast gone."""
    grey = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    soft = grey[..., None] + COLOURED * (picture - grey[..., None])
    return np.asarray(255 - (255 - soft) * (1 - WHITENED)).round().astype(np.uint8)


def ground(picture: Picture | None, vocabulary: Vocabulary, width: int) -> Picture:
    """The whole frame, paled, `width` pixels wide; plain where the scene is not known."""
    height = round(width * vocabulary.height / vocabulary.width)
    if picture is None:
        return np.full((height, width, 3), rgb(PLAIN), dtype=np.uint8)
    return paled(resized(picture, width, height))


def reduced(picture: Picture) -> Picture:
    """The picture at the size that it was meant for."""
    return resized(picture, picture.shape[1] // FINER, picture.shape[0] // FINER)


def resized(picture: Picture, width: int, height: int) -> Picture:
    """The picture at another size, smooth both ways."""
    smaller = width < picture.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(picture, (width, height), interpolation=way), dtype=np.uint8)


def lay(ax: Axes, vocabulary: Vocabulary, picture: Picture | None = None) -> None:
    """Make axes the camera's frame, in its pixels, with the scene on them."""
    v = vocabulary
    ax.set(xlim=(0, v.width), ylim=(v.height, 0), xticks=[], yticks=[], facecolor=PLAIN)
    ax.set_aspect("equal")
    if picture is not None:
        ax.imshow(paled(picture), extent=(0, v.width, v.height, 0), zorder=0)
    for spine in ax.spines.values():
        spine.set_color(EDGE)
