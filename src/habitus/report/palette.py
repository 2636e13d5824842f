"""Colours, distinct to colour-blind eyes too: Okabe and Ito's, and a few of Paul Tol's."""

from habitus.words import Direction

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
