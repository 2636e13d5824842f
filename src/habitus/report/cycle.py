"""The behaviour cycle as a graph: which follows which, how likely, and how long each lasts."""

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from habitus.model import MarkovClusteringTopicModel
from habitus.model.chain import expected_durations, long_run_shares, successors
from habitus.model.parameters import Array
from habitus.report.palette import INK, behaviour_colour, ink_on

LEAST = 0.1
"""Transitions that are rarer are left out."""
# Radius of a behaviour that takes all the time, and the least.
LARGEST, SMALLEST = 0.55, 0.17
# Width of the round to its height.
RING = 1.3
# How far arrows bend aside, and how far along each its label is: nearer its tail, where it is
# farther from those that cross it.
BEND, LABEL = 0.16, 0.3
MARK = "#010203"
"""Stands in a drawing for whatever colour the letters around it will have."""


def draw_cycle(ax: Axes, xi: Array, clip: float, *, ink: str = INK) -> None:
    """Circles for behaviours, as large as their shares of time; arrows for what follows."""
    shares, durations = long_run_shares(xi), expected_durations(xi) * clip
    order = round_order(xi)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / len(order)
    places = np.empty((len(order), 2))
    places[order] = np.stack([RING * np.cos(angles), np.sin(angles)], axis=-1) * (len(order) > 1)
    radii = np.maximum(LARGEST * np.sqrt(shares), SMALLEST)
    for z in range(len(order)):
        for following, probability in successors(xi, z):
            if probability >= LEAST:
                _edge(ax, places, radii, (z, following), probability, ink)
    for z in range(len(order)):
        _node(ax, z, places[z], radii[z], shares[z], ink)
        _loop(ax, places[z], radii[z], in_time(durations[z]), ink)
    # Above and below as at the sides, and room for what stands outside of the circles.
    ax.set(xlim=(-2.3, 2.3), ylim=(-1.75, 1.75))
    ax.set_aspect("equal")
    ax.set_axis_off()


def round_order(xi: Array) -> list[int]:
    """Behaviours in the order of the most probable round, from the one that takes most time."""
    order = [int(long_run_shares(xi).argmax())]
    while len(order) < len(xi):
        following = [z for z, _ in successors(xi, order[-1]) if z not in order]
        order.append(following[0] if following else min(set(range(len(xi))) - set(order)))
    return order


def in_time(seconds: float) -> str:
    """A duration as people say it."""
    if not np.isfinite(seconds):
        return "for ever"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def cycle_svg(model: MarkovClusteringTopicModel) -> str:
    """The graph as SVG to put into a page: no ground, letters in the page's own colour."""
    # Identifiers that do not change from run to run: the same model, the same page.
    with mpl.rc_context({"svg.hashsalt": "habitus", "svg.fonttype": "path"}):
        figure = Figure(figsize=(6, 4.6), layout="constrained")
        draw_cycle(figure.subplots(), model.parameters_.xi, model.clip_, ink=MARK)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    begin, end = text.index("<metadata>"), text.index("</metadata>") + len("</metadata>")
    return (text[:begin] + text[end:]).replace(MARK, "currentColor")


def _node(ax: Axes, z: int, place: Array, radius: float, share: float, ink: str) -> None:
    colour = behaviour_colour(z)
    ax.add_patch(mpl.patches.Circle(_point(place), radius, facecolor=colour, edgecolor=ink, lw=1.2))
    text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink_on(colour)}
    ax.annotate(str(z + 1), (place[0], place[1] + 0.06), fontsize=13, fontweight="bold", **text)
    ax.annotate(f"{share:.0%}", (place[0], place[1] - 0.08), fontsize=8, **text)


def _point(place: Array) -> tuple[float, float]:
    return float(place[0]), float(place[1])


def _loop(ax: Axes, place: Array, radius: float, text: str, ink: str) -> None:
    """An arrow from a circle to itself, on its outer side, with how long it lasts."""
    out = place / np.linalg.norm(place) if np.any(place) else np.array([0.0, 1.0])
    side = np.array([-out[1], out[0]])
    start, end = (_point(place + radius * (0.8 * out + s * 0.6 * side)) for s in (1, -1))
    beside = place + out * (radius * 1.55 + 0.17) + (0.12 * np.sign(round(out[0], 6)), 0)
    ax.add_patch(
        FancyArrowPatch(
            start, end, connectionstyle="arc3,rad=-1.25", arrowstyle="-|>", mutation_scale=9,
            color=ink, lw=1, zorder=0.9, shrinkA=0, shrinkB=1,
        )
    )  # fmt: skip
    ax.annotate(text, _point(beside), fontsize=10, ha="center", va="center", color=ink)


def _edge(
    ax: Axes, places: Array, radii: Array, pair: tuple[int, int], probability: float, ink: str
) -> None:
    """A bent arrow between two circles, as wide as it is probable, with its probability."""
    start, end = places[pair[0]], places[pair[1]]
    ahead = (end - start) / np.linalg.norm(end - start)
    aside = np.array([-ahead[1], ahead[0]])
    a = start + radii[pair[0]] * (ahead * 0.96 + aside * 0.28)
    b = end - radii[pair[1]] * (ahead * 0.96 - aside * 0.28)
    colour = behaviour_colour(pair[0])
    ax.add_patch(
        FancyArrowPatch(
            _point(a), _point(b), connectionstyle=f"arc3,rad={-BEND}", arrowstyle="-|>",
            mutation_scale=9 + 9 * probability, lw=0.8 + 4.2 * probability, color=colour,
            zorder=0.8, shrinkA=0, shrinkB=1,
        )
    )  # fmt: skip
    bend = (a + b) / 2 + aside * BEND * np.linalg.norm(b - a)
    on = (1 - LABEL) ** 2 * a + 2 * LABEL * (1 - LABEL) * bend + LABEL**2 * b
    ax.annotate(
        f"{probability:.0%}", _point(on), fontsize=8.5, ha="center", va="center",
        color=ink_on(colour), zorder=3,
        bbox={"boxstyle": "round,pad=0.22", "facecolor": colour, "edgecolor": ink, "lw": 0.5},
    )  # fmt: skip
