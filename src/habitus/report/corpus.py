"""A corpus as a picture: all motion on the scene, and words per document over time."""

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from habitus.documents import Corpus
from habitus.files import written_whole
from habitus.report.behaviours import COLOURS, STEPS
from habitus.words import Direction, Vocabulary

SHORT = 20
"""Words under which a document is not judged."""
FAULT = "#CC79A7"


def draw_corpus(path: str | os.PathLike[str], corpus: Corpus, *, title: str) -> None:
    """Write a picture of what was seen: where things moved, and how much, when."""
    vocabulary = corpus.vocabulary
    aspect = vocabulary.height / vocabulary.width if vocabulary else 0.75
    figure = Figure(figsize=(9, 9 * aspect + 3.1), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[9 * aspect, 2.2])
    if vocabulary is None:
        above.set_axis_off()
    else:
        _flow(above, corpus, vocabulary)
    _timeline(below, corpus)
    figure.suptitle(title, fontsize=12)
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _flow(ax: Axes, corpus: Corpus, v: Vocabulary) -> None:
    """An arrow a word, as long as it is frequent."""
    ax.set(xlim=(0, v.width), ylim=(v.height, 0), xticks=[], yticks=[])
    ax.set_aspect("equal")
    if corpus.picture is not None:
        pale = 255 - (255 - corpus.picture.astype(float)) * 0.6
        ax.imshow(pale.astype(np.uint8), extent=(0, v.width, v.height, 0), zorder=0)
    fine = corpus.conditions == 0
    counts = np.asarray(corpus.counts[fine].sum(axis=0)).reshape(-1)
    seen = np.flatnonzero(counts > 0)
    if len(seen):
        # The square root: lanes seldom used are seen beside the busy ones.
        strength = np.sqrt(counts[seen] / np.quantile(counts[seen], 0.99)).clip(0, 1)
        worth = strength > 0.08
        _arrows(ax, seen[worth], strength[worth], v)
    ax.legend(
        handles=[
            Line2D([], [], color=COLOURS[d], linewidth=3, label=d.name.lower()) for d in Direction
        ],
        loc="lower left", ncols=4, fontsize=8, framealpha=0.85,
    )  # fmt: skip


def _arrows(ax: Axes, words: NDArray[Any], strength: NDArray[Any], v: Vocabulary) -> None:
    places, side = v.places(words), v.cell * v.scale
    for direction in Direction:
        here = places.directions == direction
        if not here.any():
            continue
        length = side * (0.35 + 0.65 * strength[here])
        dx, dy = (length * step for step in STEPS[direction])
        x = (places.columns[here] + 0.5) * side - dx / 2 - 0.14 * side * STEPS[direction][1]
        y = (places.rows[here] + 0.5) * side - dy / 2 + 0.14 * side * STEPS[direction][0]
        ax.quiver(
            x, y, dx, dy, color=COLOURS[direction], alpha=0.3 + 0.7 * strength[here],
            angles="xy", scale_units="xy", scale=1, units="x", width=side * 0.16, headwidth=3,
            headlength=2.8, headaxislength=2.8, zorder=2,
        )  # fmt: skip


def _timeline(ax: Axes, corpus: Corpus) -> None:
    """Words of each document, sequence after sequence."""
    n_tokens = corpus.n_tokens
    where = np.arange(len(corpus)) / 60 if _is_seconds(corpus) else np.arange(len(corpus))
    width = where[1] - where[0] if len(where) > 1 else 1.0
    edges = np.append(where, where[-1] + width)
    ax.stairs(n_tokens, edges, fill=True, color="#56B4E9")
    faults = corpus.conditions != 0
    if faults.any():
        top = n_tokens.max(initial=1)
        ax.stairs(
            np.where(faults, top, 0), edges, fill=True, color=FAULT, alpha=0.5,
            label="moved, covered or frozen",
        )  # fmt: skip
        ax.legend(fontsize=8, loc="upper right")
    for end in np.cumsum(corpus.lengths)[:-1]:
        ax.axvline(where[end], color="#444444", linewidth=0.8, linestyle=":")
    short = float((n_tokens < SHORT).mean())
    ax.set(xlim=(0, edges[-1]), ylim=(0, None))
    ax.set_xlabel("minutes" if _is_seconds(corpus) else "documents")
    ax.set_ylabel("words a document")
    ax.set_title(
        f"{len(corpus)} documents, {short:.0%} of them under {SHORT} words", fontsize=10, loc="left"
    )
    ax.spines[["top", "right"]].set_visible(False)


def _is_seconds(corpus: Corpus) -> bool:
    """Whether documents are a second each, and enough to count in minutes."""
    return len(corpus) >= 120 and bool(np.isclose(np.median(np.diff(corpus.times)), 1.0))
