"""The behaviour cycle as a graph: transition probabilities and durations."""

import io
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from habitus.arrays import Array
from habitus.model import TopicModel
from habitus.model.inspection import expected_durations, long_run_shares, successors
from habitus.reporting.figures.drawing import INK, behaviour_colour, ink_on

LEAST = 0.1
"""Transitions of a lower probability are not drawn."""
# Radius of a behaviour with a share of 100 % of the time, and the least radius.
LARGEST, SMALLEST = 0.55, 0.17
# Width of the ring of behaviours divided by its height.
RING = 1.3
# Curvature of arrows, and position of the label along each: nearer the tail, where fewer cross.
BEND, LABEL = 0.16, 0.3
INK_PLACEHOLDER = "#010203"
"""Colour in the SVG that is replaced by the text colour of the page."""


def draw_cycle(ax: Axes, xi: Array, clip: float, *, ink: str = INK) -> None:
    """Draw behaviours as circles and transitions, p(next | behaviour) in columns, as arrows."""
    shares, durations = long_run_shares(xi), expected_durations(xi) * clip
    n_behaviours = len(shares)
    centres = _centres(cycle_order(xi))
    radii = np.maximum(LARGEST * np.sqrt(shares), SMALLEST)
    circles = [_Circle(z, centres[z], float(radii[z])) for z in range(n_behaviours)]
    for circle in circles:
        for following, probability in successors(xi, circle.behaviour):
            if probability >= LEAST:
                _draw_transition(ax, circle, circles[following], probability, ink)
    for circle, share, duration in zip(circles, shares, durations, strict=True):
        _draw_behaviour(ax, circle, share, ink)
        _draw_loop(ax, circle, duration_text(duration), ink)
    # Margins for the labels outside of the circles.
    ax.set(xlim=(-2.3, 2.3), ylim=(-1.75, 1.75))
    ax.set_aspect("equal")
    ax.set_axis_off()


def cycle_order(xi: Array) -> list[int]:
    """Return the behaviours along the most probable cycle, from the one of the largest share.

    >>> cycle_order(np.array([[0.8, 0.0, 0.2], [0.0, 0.9, 0.1], [0.2, 0.1, 0.7]]))
    [1, 2, 0]
    """
    order = [int(long_run_shares(xi).argmax())]
    while len(order) < len(xi):
        following = [z for z, _ in successors(xi, order[-1]) if z not in order]
        order.append(following[0] if following else min(set(range(len(xi))) - set(order)))
    return order


def duration_text(seconds: float) -> str:
    """Return a duration as text.

    >>> [duration_text(seconds) for seconds in (2.5, 75, 600, float("inf"))]
    ['2.5 s', '75 s', '10 min', 'for ever']
    """
    if not np.isfinite(seconds):
        return "for ever"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def cycle_svg(model: TopicModel) -> str:
    """Return the graph as SVG for a page: transparent, in the text colour of the page."""
    # Identifiers that do not change from run to run: the same model, the same page.
    with mpl.rc_context({"svg.hashsalt": "habitus", "svg.fonttype": "path"}):
        figure = Figure(figsize=(6, 4.6), layout="constrained")
        draw_cycle(figure.subplots(), model.parameters_.xi, model.clip_, ink=INK_PLACEHOLDER)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    begin, end = text.index("<metadata>"), text.index("</metadata>") + len("</metadata>")
    return (text[:begin] + text[end:]).replace(INK_PLACEHOLDER, "currentColor")


class _Circle(NamedTuple):
    """A behaviour in the graph."""

    behaviour: int
    """Counted from 0."""
    centre: Array
    """x and y."""
    radius: float


def _centres(order: list[int]) -> Array:
    """Return the centre of each behaviour, clockwise in this order from the top."""
    n_behaviours = len(order)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n_behaviours) / n_behaviours
    centres = np.empty((n_behaviours, 2))
    centres[order] = np.stack([RING * np.cos(angles), np.sin(angles)], axis=-1)
    return centres * (n_behaviours > 1)


def _point(place: Array) -> tuple[float, float]:
    return float(place[0]), float(place[1])


def _draw_behaviour(ax: Axes, circle: _Circle, share: float, ink: str) -> None:
    """Draw a circle with the number of the behaviour and its share of the time."""
    colour = behaviour_colour(circle.behaviour)
    x, y = _point(circle.centre)
    ax.add_patch(Circle((x, y), circle.radius, facecolor=colour, edgecolor=ink, lw=1.2))
    text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink_on(colour)}
    number = str(circle.behaviour + 1)
    ax.annotate(number, (x, y + 0.06), fontsize=13, fontweight="bold", **text)
    ax.annotate(f"{share:.0%}", (x, y - 0.08), fontsize=8, **text)


def _draw_loop(ax: Axes, circle: _Circle, text: str, ink: str) -> None:
    """Draw an arrow from a circle to itself, on its outer side, with its duration."""
    centre, radius = circle.centre, circle.radius
    out = centre / np.linalg.norm(centre) if np.any(centre) else np.array([0.0, 1.0])
    side = np.array([-out[1], out[0]])
    start, end = (_point(centre + radius * (0.8 * out + s * 0.6 * side)) for s in (1, -1))
    arrow = FancyArrowPatch(
        start,
        end,
        connectionstyle="arc3,rad=-1.25",
        arrowstyle="-|>",
        mutation_scale=9,
        color=ink,
        lw=1,
        zorder=0.9,
        shrinkA=0,
        shrinkB=1,
    )
    ax.add_patch(arrow)
    beside = centre + out * (radius * 1.55 + 0.17) + (0.12 * np.sign(round(out[0], 6)), 0)
    ax.annotate(text, _point(beside), fontsize=10, ha="center", va="center", color=ink)


def _draw_transition(ax: Axes, tail: _Circle, tip: _Circle, probability: float, ink: str) -> None:
    """Draw a curved arrow between two circles, wider if more probable, with its probability."""
    ahead = (tip.centre - tail.centre) / np.linalg.norm(tip.centre - tail.centre)
    aside = np.array([-ahead[1], ahead[0]])
    start = tail.centre + tail.radius * (ahead * 0.96 + aside * 0.28)
    end = tip.centre - tip.radius * (ahead * 0.96 - aside * 0.28)
    colour = behaviour_colour(tail.behaviour)
    arrow = FancyArrowPatch(
        _point(start),
        _point(end),
        connectionstyle=f"arc3,rad={-BEND}",
        arrowstyle="-|>",
        mutation_scale=9 + 9 * probability,
        lw=0.8 + 4.2 * probability,
        color=colour,
        zorder=0.8,
        shrinkA=0,
        shrinkB=1,
    )
    ax.add_patch(arrow)
    # The label lies on the quadratic Bézier curve that the arrow follows.
    control = (start + end) / 2 + aside * BEND * np.linalg.norm(end - start)
    on = (1 - LABEL) ** 2 * start + 2 * LABEL * (1 - LABEL) * control + LABEL**2 * end
    ax.annotate(
        f"{probability:.0%}",
        _point(on),
        fontsize=8.5,
        ha="center",
        va="center",
        color=ink_on(colour),
        zorder=3,
        bbox={"boxstyle": "round,pad=0.22", "facecolor": colour, "edgecolor": ink, "lw": 0.5},
    )
