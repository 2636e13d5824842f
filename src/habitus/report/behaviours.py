"""Behaviours as arrows on the grid of cells."""

import os
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from habitus.files import written_whole
from habitus.model.parameters import Array
from habitus.words import Direction, Vocabulary

# Okabe and Ito's colours, distinct to colour-blind eyes too.
COLOURS = {
    Direction.UP: "#0072B2",
    Direction.LEFT: "#E69F00",
    Direction.DOWN: "#D55E00",
    Direction.RIGHT: "#009E73",
}
STEPS = {
    Direction.UP: (0.0, -1.0),
    Direction.LEFT: (-1.0, 0.0),
    Direction.DOWN: (0.0, 1.0),
    Direction.RIGHT: (1.0, 0.0),
}
LENGTH, ASIDE = 0.85, 0.17
"""Of an arrow, in cells; opposite directions are drawn side by side, each on its right."""
MASS = 0.5
"""Share of a behaviour's probability that its arrows make up, as in the paper's figures."""


def draw_behaviours(
    path: str | os.PathLike[str],
    rows: Mapping[str, Array],
    vocabulary: Vocabulary,
    *,
    title: str,
    mass: float = MASS,
) -> None:
    """Write a picture: a row of panels for each named p(word | behaviour), a panel a behaviour."""
    n_behaviours = max(matrix.shape[1] for matrix in rows.values())
    aspect = vocabulary.rows / vocabulary.columns
    width = 2.6
    figure = Figure(
        figsize=(n_behaviours * width + 0.9, len(rows) * (width * aspect + 0.12) + 1.1),
        layout="constrained",
    )
    axes = figure.subplots(len(rows), n_behaviours, squeeze=False)
    for row, (name, matrix) in zip(axes, rows.items(), strict=True):
        for z, ax in enumerate(row):
            draw_arrows(ax, matrix[:, z], vocabulary, mass=mass)
        row[0].set_ylabel(name, fontsize=11)
    for z, ax in enumerate(axes[0]):
        ax.set_title(f"behaviour {z + 1}", fontsize=10)
    figure.suptitle(title, fontsize=12)
    handles = [
        Line2D([], [], color=colour, linewidth=3, label=direction.name.lower())
        for direction, colour in COLOURS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=150)


def draw_arrows(ax: Axes, probabilities: Array, vocabulary: Vocabulary, *, mass: float) -> None:
    """Arrows of the most probable words that make up `mass`, wider the more probable they are."""
    order = np.argsort(-probabilities, kind="stable")
    enough = int(np.searchsorted(np.cumsum(probabilities[order]), mass)) + 1
    words = order[:enough]
    places = vocabulary.places(words)
    strength = probabilities[words] / probabilities[words].max()
    for direction, colour in COLOURS.items():
        here = places.directions == direction
        if not here.any():
            continue
        dx, dy = (LENGTH * step for step in STEPS[direction])
        x = places.columns[here] - dx / 2 - ASIDE * STEPS[direction][1]
        y = places.rows[here] - dy / 2 + ASIDE * STEPS[direction][0]
        ax.quiver(
            x, y, np.full(x.shape, dx), np.full(y.shape, dy),
            color=colour, alpha=0.25 + 0.75 * strength[here],
            angles="xy", scale_units="xy", scale=1, units="x", width=0.13, headwidth=3.2,
            headlength=3, headaxislength=3,
        )  # fmt: skip
    ax.set(xlim=(-0.5, vocabulary.columns - 0.5), ylim=(vocabulary.rows - 0.5, -0.5))
    ax.set_aspect("equal")
    ax.set_facecolor("#F4F4F2")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("#C8C8C4")
