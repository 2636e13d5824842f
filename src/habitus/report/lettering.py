"""Letters on pictures: matplotlib's own font, smooth, in any script it has."""

from functools import lru_cache

import numpy as np
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray

from habitus.report.arrows import Picture
from habitus.report.palette import PAPER, rgb

FAMILY = "DejaVu Sans"  # comes with matplotlib


@lru_cache(maxsize=256)
def lettering(text: str, size: float, bold: bool = False) -> NDArray[np.float32]:
    """How much each pixel is covered by the text, from 0 to 1; `size` is the font's, in pixels.

    All texts of a size have the same height and base line.
    """
    font = get_font(findfont(FontProperties(family=FAMILY, weight="bold" if bold else "normal")))
    font.set_size(size, 72)
    font.set_text(text or " ", 0.0)
    font.draw_glyphs_to_bitmap(antialiased=True)
    glyphs = np.asarray(font.get_image(), dtype=np.float32) / 255
    above, below = round(0.95 * size), round(0.3 * size)
    top = above - (len(glyphs) - round(font.get_descent() / 64))
    line = np.zeros((above + below, glyphs.shape[1]), dtype=np.float32)
    seen = glyphs[max(-top, 0) :][: len(line) - max(top, 0)]
    line[max(top, 0) : max(top, 0) + len(seen)] = seen
    return line


def write(
    picture: Picture, text: str, place: tuple[int, int], size: float,
    *, colour: str = PAPER, bold: bool = False,
) -> int:  # fmt: skip
    """Write a text with its upper left corner at (x, y), cut off at the edge; gives its width."""
    cover = lettering(text, size, bold)
    x, y = place
    part = picture[y : y + cover.shape[0], x : x + cover.shape[1]]
    share = cover[: part.shape[0], : part.shape[1], None]
    part[:] = np.round(part + share * (np.array(rgb(colour)) - part)).astype(np.uint8)
    return int(cover.shape[1])


def fitted(text: str, size: float, width: int, *, bold: bool = False) -> str:
    """The text, its end left out for dots where it is wider than `width` pixels.

    >>> fitted("a fairly long explanation", 16, 120)
    'a fairly long…'
    """
    if lettering(text, size, bold).shape[1] <= width:
        return text
    shorter = text
    while shorter and lettering(f"{shorter}…", size, bold).shape[1] > width:
        shorter = shorter[:-1].rstrip()
    return f"{shorter}…"
