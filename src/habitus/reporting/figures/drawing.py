"""Drawing on pictures and axes: colours, the scene as background, arrows, boxes and text.

Pictures are RGB arrays, rows x columns x 3. Visual words are drawn as arrows of one shape, on
matplotlib axes and on pictures alike; whoever draws on pictures alone does without matplotlib.
"""

import io
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike

from habitus.arrays import Array, Image, Indices
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.files import MARK, written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL import ImageFont

# Colours are distinct for colour-blind readers too: those of Okabe and Ito, and of Paul Tol.
COLOURS = {
    Direction.UP: "#0072B2",
    Direction.LEFT: "#E69F00",
    Direction.DOWN: "#D55E00",
    Direction.RIGHT: "#009E73",
}
"""Colour of each direction of motion; none of them is the colour of a behaviour."""
EVENT = "#F0E442"
"""Colour of boxes and event marks, always drawn with a dark edge."""
HEAT = "#E0007A"
"""Colour of surprisal beyond its level: the more, the less transparent."""
FAULT = "#CC79A7"
"""Colour of documents with the camera moved, covered or frozen."""
INK, PAPER = "#1B1D21", "#FFFFFF"
"""Dark and light text."""
_BEHAVIOURS = (
    "#56B4E9",
    "#882255",
    "#B5B5AE",
    "#4B3FA8",
    "#CC79A7",
    "#7A6A2C",
    "#BFE3F7",
    "#3D4A52",
)

Rgb = tuple[int, int, int]

# What marks each kind of picture as ours, and not when it was drawn: the same figure is
# the same file.
_SAVING: dict[str, dict[str, Any]] = {
    ".png": {"metadata": {"Software": MARK}},
    ".jpg": {"pil_kwargs": {"comment": MARK}},
    ".jpeg": {"pil_kwargs": {"comment": MARK}},
    ".svg": {"metadata": {"Creator": MARK, "Date": None}},
    ".pdf": {"metadata": {"Creator": MARK, "CreationDate": None}},
}


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise InvalidInputError unless the name of a picture ends as one that can be drawn."""
    suffix = Path(path).suffix.lower()
    if suffix not in _SAVING:
        raise InvalidInputError(
            f"cannot draw {path}: expected a name that ends in {', '.join(_SAVING)}, found "
            f"{suffix or 'none'}"
        )


def save_figure(figure: "Figure", path: str | os.PathLike[str], *, dpi: int) -> None:
    """Write a figure as a picture, whole or not at all."""
    import matplotlib as mpl

    check_picture(path)
    # Identifiers that do not change from run to run.
    stable = mpl.rc_context({"svg.hashsalt": "habitus", "svg.fonttype": "path"})
    with written_whole(path) as temporary, stable:
        figure.savefig(temporary, dpi=dpi, **_SAVING[Path(path).suffix.lower()])


def page_svg(figure: "Figure", ink: str, **saving: Any) -> str:
    """Return a figure as SVG for a page: no header, `ink` in the colour of the page's text."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None}, **saving)
    svg = stream.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return re.sub(ink, "currentColor", svg, flags=re.IGNORECASE)


def as_text(title: str) -> str:
    """Return a title as Matplotlib draws it: a dollar sign starts no formula."""
    return title.replace("$", r"\$")


def behaviour_colour(behaviour: int) -> str:
    """Return the colour of a behaviour, counted from 0; colours repeat after eight."""
    return _BEHAVIOURS[behaviour % len(_BEHAVIOURS)]


def rgb(colour: str) -> Rgb:
    """Return red, green and blue of "#RRGGBB", each from 0 to 255.

    >>> rgb("#0072B2")
    (0, 114, 178)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ink_on(colour: str) -> str:
    """Return the text colour, dark or light, with the higher contrast ratio on `colour`.

    >>> ink_on("#F0E442") == INK, ink_on("#882255") == PAPER
    (True, True)
    """
    light = _luminance(colour) + 0.05
    return INK if light / (_luminance(INK) + 0.05) > 1.05 / light else PAPER


def _luminance(colour: str) -> float:
    """Return the relative luminance of the WCAG, from 0 to 1."""
    shares = [c / 255 for c in rgb(colour)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


PLAIN, EDGE = "#F4F4F2", "#C8C8C4"
"""Background of a scene without a picture, and the frame around any scene."""
TALLEST = 2.0
"""Height of a panel over its width, at most; a scene that is taller is drawn narrower."""
MOST_DRAWN = 2048
"""Pixels of a picture in each direction that are drawn in a figure, at most."""
FINER = 2
"""Arrows are drawn on a picture this many times as large, which is then reduced."""
# Share of its own colours that a pale picture keeps, and share of white over it.
COLOURED, WHITENED = 0.25, 0.58


def paled(picture: Image) -> Image:
    """Return the picture nearly grey and with half its contrast, so that arrows stand out."""
    grey = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    soft = grey[..., None] + COLOURED * (picture - grey[..., None])
    return np.asarray(255 - (255 - soft) * (1 - WHITENED)).round().astype(np.uint8)


def drawn_height(vocabulary: Vocabulary) -> float:
    """Return the height of a panel that shows the scene, as a share of its width."""
    return min(vocabulary.height / vocabulary.width, TALLEST)


def drawn_size(vocabulary: Vocabulary, width: int) -> tuple[int, int]:
    """Return width and height of a picture of the frame in a panel that is `width` pixels wide.

    >>> drawn_size(Vocabulary.of_frame(1280, 720), 720)
    (720, 405)
    >>> drawn_size(Vocabulary(rows=1000, columns=10), 720)
    (14, 1400)
    """
    aspect = vocabulary.height / vocabulary.width
    width = max(round(width * drawn_height(vocabulary) / aspect), FINER)
    return width, max(round(width * aspect), FINER)


def background(picture: Image | None, vocabulary: Vocabulary, width: int) -> Image:
    """Return the pale scene for a panel of a width; a plain colour if there is no picture."""
    width, height = drawn_size(vocabulary, width)
    if picture is None:
        return np.full((height, width, 3), rgb(PLAIN), dtype=np.uint8)
    return paled(resized(picture, width, height))


def reduced(picture: Image) -> Image:
    """Return a picture that was drawn FINER times too large at its final size."""
    return resized(picture, picture.shape[1] // FINER, picture.shape[0] // FINER)


def resized(picture: Image, width: int, height: int) -> Image:
    """Return the picture at another size: area averages if smaller, cubic if larger."""
    smaller = width < picture.shape[1]
    method = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(picture, (width, height), interpolation=method), dtype=np.uint8)


def prepare_axes(ax: "Axes", vocabulary: Vocabulary, picture: Image | None = None) -> None:
    """Give axes the coordinates of the camera's frame, in pixels, and the scene as background."""
    v = vocabulary
    ax.set(xlim=(0, v.width), ylim=(v.height, 0), xticks=[], yticks=[], facecolor=PLAIN)
    ax.set_aspect("equal")
    if picture is not None and max(picture.shape) > MOST_DRAWN:
        picture = resized(picture, *(min(n, MOST_DRAWN) for n in picture.shape[1::-1]))
    if picture is not None:
        ax.imshow(paled(picture), extent=(0, v.width, v.height, 0), zorder=0)
    for spine in ax.spines.values():
        spine.set_color(EDGE)


MASS = 0.5
"""Share of the probability that the drawn arrows sum to, as in the paper's figures."""
# Length of an arrow and its offset to the right of the cell's centre, in cells: opposite
# directions are drawn side by side.
LENGTH, OFFSET = 1.0, 0.17
# Half the width of a shaft, in cells: at strength 0, and added at strength 1.
LEAST_HALF, MORE_HALF = 0.06, 0.15
# Fractional bits of OpenCV coordinates.
SHIFT = 4


class Arrows(NamedTuple):
    """Outlines of arrows, the weakest first."""

    outlines: Array
    """Arrows x 7 corners x (x, y), in pixels of the camera's frame."""
    colours: list[str]
    """Colour of each arrow."""


def heaviest_words(probabilities: Array, mass: float = MASS) -> Indices:
    """Return the fewest words with a total probability of at least `mass`, most probable first.

    >>> heaviest_words(np.array([0.2, 0.5, 0.3]), 0.6)
    array([1, 2])
    """
    order = np.argsort(-probabilities, kind="stable")
    enough = int(np.searchsorted(np.cumsum(probabilities[order]), mass)) + 1
    return np.asarray(order[:enough])


def arrows_of(words: ArrayLike, strengths: ArrayLike, vocabulary: Vocabulary) -> Arrows:
    """Return an arrow per word; strengths are from 0 to 1: the stronger, the wider."""
    strength = np.asarray(strengths, dtype=np.float64)
    order = np.argsort(strength, kind="stable")
    places, strength = vocabulary.places(np.asarray(words)[order]), strength[order]
    directions = [Direction(d) for d in places.directions * len(Direction) // vocabulary.directions]
    ahead = _steps(vocabulary.directions)[places.directions][:, None]
    right = np.stack([-ahead[..., 1], ahead[..., 0]], axis=-1)
    centre = np.stack([places.columns + 0.5, places.rows + 0.5], axis=-1)[:, None]
    along, across = _corners(strength)
    outlines = centre + along[..., None] * ahead + (across[..., None] + OFFSET) * right
    return Arrows(outlines * vocabulary.cell_side, [COLOURS[direction] for direction in directions])


def _steps(n_directions: int) -> Array:
    """Return the unit vector of each direction, x and y; y grows downwards."""
    thirds = n_directions // len(Direction)
    angles = 2 * np.pi * (np.arange(n_directions) - thirds // 2) / n_directions
    return np.stack([-np.sin(angles), -np.cos(angles)], axis=-1).round(12)


def probable_arrows(probabilities: Array, vocabulary: Vocabulary, mass: float = MASS) -> Arrows:
    """Return arrows of the words that make up `mass` of p(word), wider if more probable.

    Slow and fast motion in the same cell and direction is one arrow.
    """
    together = probabilities.reshape(-1, vocabulary.speeds).sum(axis=1)
    words = heaviest_words(together, mass)
    return arrows_of(words, together[words] / together[words].max(), replace(vocabulary, speeds=1))


def _corners(strength: Array) -> tuple[Array, Array]:
    """Return the corners along and across an arrow, from its tail around the tip, in cells."""
    half = LEAST_HALF + MORE_HALF * strength
    barb = 1.25 * half + 0.13
    neck = LENGTH / 2 - 1.3 * barb
    tip, tail, none = (np.full_like(half, x) for x in (LENGTH / 2, -LENGTH / 2, 0.0))
    along = np.stack([tail, neck, neck, tip, neck, neck, tail], axis=-1)
    across = np.stack([-half, -half, -barb, none, barb, half, half], axis=-1)
    return along, across


def draw_on_axes(ax: "Axes", arrows: Arrows) -> None:
    """Draw arrows with a thin white edge on axes that `prepare_axes` prepared."""
    from matplotlib.collections import PolyCollection

    shapes = PolyCollection(
        list(arrows.outlines),
        facecolors=arrows.colours,
        edgecolors=PAPER,
        linewidths=0.25,
        zorder=2,
    )
    ax.add_collection(shapes, autolim=False)


def draw_on_picture(
    picture: Image, arrows: Arrows, vocabulary: Vocabulary, *, edge: str = PAPER, width: int = 1
) -> None:
    """Draw arrows with an edge of `width` pixels on a picture of the frame, of any size, in place.

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
    """Draw boxes (camera pixels) with a dark edge on a picture of the whole frame, in place.

    Lines are drawn half a cell outside, so that they do not cover what is inside.
    """
    scale = picture.shape[1] / vocabulary.width
    line = max(2, round(picture.shape[1] / 320))
    margin = round(vocabulary.cell_side * scale / 2)
    for box in np.asarray(boxes, dtype=np.float64).reshape(-1, 4):
        left, top, right, bottom = (round(float(c)) for c in box * scale)
        corners = (left - margin, top - margin), (right + margin, bottom + margin)
        for shade, thickness in ((INK, line + 4), (colour, line)):
            cv2.rectangle(picture, *corners, rgb(shade), thickness, cv2.LINE_AA)


# Excess in nats from which on a cell is hottest, and the share of HEAT there.
HOTTEST, OPACITY = 5.0, 0.6


def draw_heat(picture: Image, heat: Array, vocabulary: Vocabulary) -> None:
    """Draw surprisal beyond its level, in nats per cell, over a picture of the frame, in place.

    All pictures have the same scale, so that an unusual moment looks hotter than a usual one.
    """
    v, scale = vocabulary, picture.shape[1] / vocabulary.width
    covers = v.columns * v.cell_side, v.rows * v.cell_side
    width, height = (max(round(n * scale), 1) for n in covers)
    covered = picture[:height, :width]
    share = OPACITY * np.minimum(heat / HOTTEST, 1.0).astype(np.float32)
    smooth = cv2.resize(share, covered.shape[1::-1], interpolation=cv2.INTER_LINEAR)[..., None]
    covered[:] = (covered + smooth * (np.array(rgb(HEAT), dtype=np.float32) - covered)).round()


# Strength of the arrows of unusual words on a frame.
SLENDER = 0.25


def draw_unusual(
    picture: Image,
    vocabulary: Vocabulary,
    words: Sequence[int] | Indices,
    boxes: ArrayLike,
    heat: Array | None,
) -> None:
    """Draw heat, if any, boxes and slender arrows of what is unusual on a frame, in place."""
    if heat is not None:
        draw_heat(picture, heat, vocabulary)
    draw_boxes(picture, boxes, vocabulary, EVENT)
    arrows = arrows_of(words, np.full(len(words), SLENDER), vocabulary)
    draw_on_picture(picture, arrows, vocabulary)


def add_legend(ax_or_figure: Any, **where: Any) -> None:
    """Add a legend of the colours of the directions to axes or a figure."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[d], linewidth=3, label=d.name.lower()) for d in Direction
    ]
    ax_or_figure.legend(handles=handles, ncols=len(handles), **where)


# Baseline and foot of a line of text below its top, as shares of the size of the font.
BASELINE, FOOT = 0.95, 1.25


def text_width(text: str, size: float, *, bold: bool = False) -> int:
    """Return the width of a text in pixels, with the font at `size` pixels."""
    return int(np.ceil(_font(size, bold).getlength(text)))


def draw_text(
    picture: Image,
    text: str,
    place: tuple[int, int],
    size: float,
    *,
    colour: str = PAPER,
    bold: bool = False,
) -> int:
    """Draw a line of text on a picture, in place, and return its width in pixels.

    `place` is left and top; what lies outside is cut off. All texts of a size have one baseline.
    """
    from PIL import Image as PillowImage
    from PIL import ImageDraw

    width = text_width(text, size, bold=bold)
    x, y = place
    # One pixel more to the right: hinted glyphs may be wider than their advance.
    region = picture[y : y + round(FOOT * size), x : x + width + 1]
    if region.size:
        layer = PillowImage.fromarray(region)
        baseline = (0, round(BASELINE * size))
        font = _font(size, bold)
        ImageDraw.Draw(layer).text(baseline, text, fill=colour, font=font, anchor="ls")
        region[:] = np.asarray(layer)
    return width


@lru_cache(maxsize=64)
def _font(size: float, bold: bool) -> "ImageFont.FreeTypeFont":
    """Return DejaVu Sans, which comes with matplotlib."""
    import matplotlib as mpl
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    file = Path(mpl.get_data_path(), "fonts", "ttf", name)
    # The basic layout, as Raqm is not part of every build of Pillow.
    return ImageFont.truetype(str(file), size, layout_engine=ImageFont.Layout.BASIC)


def shortened(text: str, size: float, width: int, *, bold: bool = False) -> str:
    """Return the text, with an ellipsis for its end if it is wider than `width` pixels.

    >>> shortened("a fairly long explanation", 16, 120)
    'a fairly long…'
    """
    if text_width(text, size, bold=bold) <= width:
        return text
    while text and text_width(f"{text}…", size, bold=bold) > width:
        text = text[:-1].rstrip()
    return f"{text}…"
