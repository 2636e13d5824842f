"""Colours, distinct to colour-blind eyes too: Okabe and Ito's, and a few of Paul Tol's.

The scene as a ground to draw on: pale and nearly grey, so that colours mean arrows only.

Visual words as arrows: one shape, drawn on matplotlib's axes and on pictures alike.
"""

from typing import Any, NamedTuple

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Array, Image
from habitus.corpus.vocabulary import Direction, Vocabulary

COLOURS = {
    Direction.UP: "#0072B2",
    Direction.LEFT: "#E69F00",
    Direction.DOWN: "#D55E00",
    Direction.RIGHT: "#009E73",
}
"""Of motion; behaviours have others, so that the two are never taken for each other."""
EVENT = "#F0E442"
"""Of boxes and of marks of events, always with a dark edge."""
FAULT = "#CC79A7"
INK, PAPER = "#1B1D21", "#FFFFFF"
_BEHAVIOURS = (
    "#56B4E9", "#882255", "#B5B5AE", "#4B3FA8", "#CC79A7", "#7A6A2C", "#BFE3F7", "#3D4A52",
)  # fmt: skip

Rgb = tuple[int, int, int]


def behaviour_colour(behaviour: int) -> str:
    """The colour of a behaviour, counted from 0; beyond eight they repeat, beside a number."""
    return _BEHAVIOURS[behaviour % len(_BEHAVIOURS)]


def rgb(colour: str) -> Rgb:
    """Red, green and blue of "#RRGGBB"."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Relative luminance, from 0 to 1, as the contrast ratio of the WCAG takes it."""
    shares = [c / 255 for c in rgb(colour)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ink_on(colour: str) -> str:
    """Dark or light letters, whichever is read more easily on a colour."""
    light = luminance(colour) + 0.05
    return INK if light / (luminance(INK) + 0.05) > 1.05 / light else PAPER


PLAIN, EDGE = "#F4F4F2", "#C8C8C4"
# Arrows are drawn this many times as large, then reduced: their edges are finer than a pixel.
FINER = 2
# Shares of the picture's own colours, and of white over it.
COLOURED, WHITENED = 0.25, 0.58


def paled(picture: Image) -> Image:
    """The picture with most of its colours and half of its contrast gone."""
    grey = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    soft = grey[..., None] + COLOURED * (picture - grey[..., None])
    return np.asarray(255 - (255 - soft) * (1 - WHITENED)).round().astype(np.uint8)


def ground(picture: Image | None, vocabulary: Vocabulary, width: int) -> Image:
    """The whole frame, paled, `width` pixels wide; plain where the scene is not known."""
    height = round(width * vocabulary.height / vocabulary.width)
    if picture is None:
        return np.full((height, width, 3), rgb(PLAIN), dtype=np.uint8)
    return paled(resized(picture, width, height))


def reduced(picture: Image) -> Image:
    """The picture at the size that it was meant for."""
    return resized(picture, picture.shape[1] // FINER, picture.shape[0] // FINER)


def resized(picture: Image, width: int, height: int) -> Image:
    """The picture at another size, smooth both ways."""
    smaller = width < picture.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(picture, (width, height), interpolation=way), dtype=np.uint8)


def lay(ax: Axes, vocabulary: Vocabulary, picture: Image | None = None) -> None:
    """Make axes the camera's frame, in its pixels, with the scene on them."""
    v = vocabulary
    ax.set(xlim=(0, v.width), ylim=(v.height, 0), xticks=[], yticks=[], facecolor=PLAIN)
    ax.set_aspect("equal")
    if picture is not None:
        ax.imshow(paled(picture), extent=(0, v.width, v.height, 0), zorder=0)
    for spine in ax.spines.values():
        spine.set_color(EDGE)


MASS = 0.5
"""Share of the probability that arrows make up, as in the paper's figures."""
STEPS = {
    Direction.UP: (0.0, -1.0),
    Direction.LEFT: (-1.0, 0.0),
    Direction.DOWN: (0.0, 1.0),
    Direction.RIGHT: (1.0, 0.0),
}
# In cells. Opposite directions are drawn side by side, each on its right.
LENGTH, ASIDE = 1.0, 0.17
# Half the width of a shaft: of the least arrow, and what the most probable has beyond it.
LEAST_HALF, MORE_HALF = 0.06, 0.15
# Bits of a fraction of a pixel that OpenCV takes.
SHIFT = 4


class Arrows(NamedTuple):
    """Outlines of arrows, the weakest first."""

    outlines: Array
    """arrows x 7 corners x (x, y), in pixels of the camera's frame."""
    colours: list[str]


def heaviest_words(probabilities: Array, mass: float = MASS) -> NDArray[np.int64]:
    """The fewest words that make up `mass` of the probability, most probable first."""
    order = np.argsort(-probabilities, kind="stable")
    enough = int(np.searchsorted(np.cumsum(probabilities[order]), mass)) + 1
    return np.asarray(order[:enough])


def arrows_of(words: ArrayLike, strengths: ArrayLike, vocabulary: Vocabulary) -> Arrows:
    """An arrow a word, the wider the stronger; the strongest has strength 1."""
    strength = np.asarray(strengths, dtype=np.float64)
    order = np.argsort(strength, kind="stable")
    places, strength = vocabulary.places(np.asarray(words)[order]), strength[order]
    ahead = np.array([STEPS[Direction(d)] for d in places.directions]).reshape(-1, 1, 2)
    right = np.stack([-ahead[..., 1], ahead[..., 0]], axis=-1)
    middle = np.stack([places.columns + 0.5, places.rows + 0.5], axis=-1)[:, None]
    along, across = _shape(strength)
    outlines = middle + along[..., None] * ahead + (across[..., None] + ASIDE) * right
    return Arrows(
        outlines * vocabulary.cell * vocabulary.scale,
        [COLOURS[Direction(d)] for d in places.directions],
    )


def probable_arrows(probabilities: Array, vocabulary: Vocabulary, mass: float = MASS) -> Arrows:
    """Arrows of the words that make up `mass` of p(word), wider the more probable they are.

    Slow and fast motion in a cell and direction is one arrow.
    """
    together = probabilities.reshape(-1, vocabulary.speeds).sum(axis=1)
    words = heaviest_words(together, mass)
    return arrows_of(words, together[words] / together[words].max(), vocabulary.paper)


def _shape(strength: Array) -> tuple[Array, Array]:
    """Corners along and across an arrow, from its tail around the tip, in cells."""
    half = LEAST_HALF + MORE_HALF * strength
    barb = 1.25 * half + 0.13
    neck = LENGTH / 2 - 1.3 * barb
    tip, tail, none = (np.full_like(half, x) for x in (LENGTH / 2, -LENGTH / 2, 0.0))
    along = np.stack([tail, neck, neck, tip, neck, neck, tail], axis=-1)
    across = np.stack([-half, -half, -barb, none, barb, half, half], axis=-1)
    return along, across


def draw_on_axes(ax: Axes, arrows: Arrows) -> None:
    """Draw arrows on axes in pixels of the camera's frame, with a thin white edge."""
    ax.add_collection(
        PolyCollection(
            list(arrows.outlines), facecolors=arrows.colours, edgecolors=PAPER, linewidths=0.25,
            zorder=2,
        ),
        autolim=False,
    )  # fmt: skip


def draw_on_picture(
    picture: Image, arrows: Arrows, vocabulary: Vocabulary, *, edge: str = PAPER, width: int = 1
) -> None:
    """Draw arrows on a picture of the whole frame, of any size; `width` is the edge's, in pixels.

    >>> picture = np.zeros((80, 80, 3), np.uint8)
    >>> grid = Vocabulary(1, 1)
    >>> draw_on_picture(picture, arrows_of([Direction.RIGHT], [1.0], grid), grid)
    >>> bool((picture == rgb(COLOURS[Direction.RIGHT])).all(axis=2).any())
    True
    """
    scale = np.array([picture.shape[1] / vocabulary.width, picture.shape[0] / vocabulary.height])
    corners = np.round((arrows.outlines * scale - 0.5) * 2**SHIFT).astype(np.int32)
    for outline, colour in zip(corners, arrows.colours, strict=True):
        if width:
            cv2.polylines(picture, [outline], True, rgb(edge), 2 * width, cv2.LINE_AA, SHIFT)
        cv2.fillPoly(picture, [outline], rgb(colour), cv2.LINE_AA, SHIFT)


def draw_boxes(picture: Image, boxes: ArrayLike, vocabulary: Vocabulary, colour: str) -> None:
    """Draw boxes, in pixels of the camera's frame, with a dark edge that shows on any ground.

    They are drawn half a cell outside: what is in them stays in sight.
    """
    scale = picture.shape[1] / vocabulary.width
    line = max(2, round(picture.shape[1] / 320))
    aside = round(vocabulary.cell * vocabulary.scale * scale / 2)
    for box in np.asarray(boxes, dtype=np.float64).reshape(-1, 4):
        left, top, right, bottom = (round(float(c)) for c in box * scale)
        corners = (left - aside, top - aside), (right + aside, bottom + aside)
        for shade, thickness in ((INK, line + 4), (colour, line)):
            cv2.rectangle(picture, *corners, rgb(shade), thickness, cv2.LINE_AA)


def legend(ax_or_figure: Any, **where: Any) -> None:
    """Say which colour is which direction."""
    handles = [
        Line2D([], [], color=COLOURS[d], linewidth=3, label=d.name.lower()) for d in Direction
    ]
    ax_or_figure.legend(handles=handles, ncols=len(handles), **where)
