"""Behaviours and topics as arrows on the scene.

The behaviour cycle as a graph: which follows which, how likely, and how long each lasts.

A corpus as a picture: all motion on the scene, and words per document over time.

A model as one picture: behaviours, topics and the cycle.

A model in words and numbers.
"""

import io
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from habitus.arrays import Array, Image
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.model.inspection import expected_durations, long_run_shares, successors
from habitus.report.figures.drawing import (
    FAULT,
    FINER,
    INK,
    MASS,
    arrows_of,
    behaviour_colour,
    draw_on_axes,
    draw_on_picture,
    ground,
    ink_on,
    lay,
    legend,
    probable_arrows,
    reduced,
)


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
    aspect = vocabulary.height / vocabulary.width
    width = 2.6
    figure = Figure(
        figsize=(n_behaviours * width + 0.9, len(rows) * (width * aspect + 0.12) + 1.1),
        layout="constrained",
    )
    axes = figure.subplots(len(rows), n_behaviours, squeeze=False)
    for row, (name, matrix) in zip(axes, rows.items(), strict=True):
        for z, ax in enumerate(row):
            lay(ax, vocabulary)
            draw_on_axes(ax, probable_arrows(matrix[:, z], vocabulary, mass))
        row[0].set_ylabel(name, fontsize=11)
    for z, ax in enumerate(axes[0]):
        ax.set_title(f"behaviour {z + 1}", fontsize=10)
    figure.suptitle(title, fontsize=12)
    legend(figure, loc="outside lower center", frameon=False)
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=150)


def behaviour_pictures(model: MarkovClusteringTopicModel, *, width: int) -> list[Image]:
    """Each behaviour as a picture so many pixels wide; none if nobody knows what words mean."""
    return _pictures(model, model.parameters_.word_given_behaviour, width)


def topic_pictures(model: MarkovClusteringTopicModel, *, width: int) -> list[Image]:
    """Each topic likewise."""
    return _pictures(model, model.parameters_.phi, width)


def _pictures(model: MarkovClusteringTopicModel, columns: Array, width: int) -> list[Image]:
    v = model.vocabulary_
    if v is None:
        return []
    plain = ground(model.picture_, v, FINER * width)
    pictures = [plain.copy() for _ in columns.T]
    for picture, probabilities in zip(pictures, columns.T, strict=True):
        draw_on_picture(picture, probable_arrows(probabilities, v), v)
    return [reduced(picture) for picture in pictures]


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


SHORT = 20
"""Words under which a document is not judged."""


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
    """An arrow a word, as wide as it is frequent."""
    lay(ax, v, corpus.picture)
    fine = corpus.conditions == 0
    counts = np.asarray(corpus.counts[fine].sum(axis=0)).reshape(-1, v.speeds).sum(axis=1)
    seen = np.flatnonzero(counts > 0)
    if len(seen):
        # The square root: lanes seldom used are seen beside the busy ones.
        strength = np.sqrt(counts[seen] / np.quantile(counts[seen], 0.99)).clip(0, 1)
        worth = strength > 0.08
        draw_on_axes(ax, arrows_of(seen[worth], strength[worth], v.paper))
    legend(ax, loc="lower left", fontsize=8, framealpha=0.85)


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


# Inches: width of the picture, height of a panel's title, and of the graph.
WIDTH, TITLE, GRAPH = 15.0, 0.45, 5.6


class Group(NamedTuple):
    """Panels that belong together."""

    heading: str
    names: list[str]
    words: Array
    """p(word | each), words x panels."""
    columns: int

    def height(self, v: Vocabulary) -> float:
        """Of all panels, in inches."""
        rows = -(-len(self.names) // self.columns)
        return rows * (WIDTH / self.columns * v.height / v.width + TITLE) + 0.5


def draw_model(
    path: str | os.PathLike[str], model: MarkovClusteringTopicModel, *, title: str
) -> None:
    """Write a picture of a model; only its cycle where nobody knows what its words mean."""
    v = model.vocabulary_
    groups = _groups(model) if v else []
    heights = [group.height(v) for group in groups if v] + [GRAPH]
    figure = Figure(figsize=(WIDTH if v else 7.0, sum(heights) + 0.9), layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, group in zip(parts, groups, strict=False):
        if v:
            _panels(part, group, v, model.picture_)
    parts[-1].suptitle("what follows what, and how long each lasts", fontsize=14)
    draw_cycle(parts[-1].subplots(), model.parameters_.xi, model.clip_)
    figure.suptitle(title, fontsize=17, fontweight="bold")
    if v:
        legend(figure, loc="outside lower center", frameon=False, fontsize=13)
    with written_whole(path) as temporary:
        figure.savefig(temporary, dpi=110)


def captions(model: MarkovClusteringTopicModel) -> list[str]:
    """Share of time and duration of each behaviour, in words."""
    xi = model.parameters_.xi
    return [
        f"{share:.0%} of the time, {in_time(duration * model.clip_)} at a time"
        for share, duration in zip(long_run_shares(xi), expected_durations(xi), strict=True)
    ]


def _groups(model: MarkovClusteringTopicModel) -> list[Group]:
    mixed, phi = model.parameters_.word_given_behaviour, model.parameters_.phi
    said = [f"behaviour {z + 1}: {text}" for z, text in enumerate(captions(model))]
    topics = [f"topic {y + 1}" for y in range(phi.shape[1])]
    return [
        Group("behaviours: the words that make up half of each", said, mixed,
              2 if len(said) <= 4 else 3),
        Group("topics, which behaviours are made of", topics, phi, min(4, max(len(topics), 2))),
    ]  # fmt: skip


def _panels(part: Any, group: Group, v: Vocabulary, picture: Any) -> None:
    part.suptitle(group.heading, fontsize=14)
    n_rows = -(-len(group.names) // group.columns)
    axes = part.subplots(n_rows, group.columns, squeeze=False).reshape(-1)
    for ax in axes[len(group.names) :]:
        ax.set_axis_off()
    for ax, name, probabilities in zip(axes, group.names, group.words.T, strict=False):
        lay(ax, v, picture)
        draw_on_axes(ax, probable_arrows(probabilities, v))
        ax.set_title(name, fontsize=12)
