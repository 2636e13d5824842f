"""Figures of a model (behaviours, topics, cycle) and of a corpus (motion, words over time)."""

import os
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from habitus.arrays import Array, Image
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.model import TopicModel
from habitus.model.inspection import expected_durations, long_run_shares, successors
from habitus.rarity import counted
from habitus.reporting.figures.drawing import (
    FAULT,
    FINER,
    INK,
    add_legend,
    arrows_of,
    as_text,
    background,
    behaviour_colour,
    draw_on_axes,
    draw_on_picture,
    drawn_height,
    ink_on,
    page_svg,
    prepare_axes,
    probable_arrows,
    reduced,
    save_figure,
)
from habitus.reporting.summaries import SHORT

# Inches: width of the figure of a model, height of the title of a panel, height of the cycle.
WIDTH, TITLE, GRAPH = 15.0, 0.45, 5.6
MOST_PANELS = 40
"""Behaviours, and topics, that are drawn at most."""
LEAST_SHARE = 0.005
"""Of documents in the long run, of a topic that is drawn."""


class PanelGroup(NamedTuple):
    """Panels of a figure under one heading."""

    heading: str
    names: list[str]
    """Title of each panel."""
    words: Array
    """p(word) of each panel, words x panels."""
    columns: int
    """Panels side by side."""

    @property
    def rows(self) -> int:
        """Rows of panels."""
        return -(-len(self.names) // self.columns)

    def height(self, v: Vocabulary) -> float:
        """Return the height of all panels in inches."""
        return self.rows * (WIDTH / self.columns * drawn_height(v) + TITLE) + 0.5


def draw_model(path: str | os.PathLike[str], model: TopicModel, *, title: str) -> None:
    """Write a figure of a model: its behaviours and topics as arrows on the scene, its cycle.

    The name ends in .png, .jpg, .svg or .pdf. Without a vocabulary, only the cycle is drawn.
    """
    v = model.vocabulary_
    groups = _panel_groups(model) if v else []
    heights = [group.height(v) for group in groups if v] + [GRAPH]
    figure = Figure(figsize=(WIDTH if v else 7.0, sum(heights) + 0.9), layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, group in zip(parts, groups, strict=False):
        if v:
            _draw_panels(part, group, v, model.picture_)
    parts[-1].suptitle("Transitions between behaviours, and their durations", fontsize=14)
    draw_cycle(parts[-1].subplots(), model.parameters_.xi, model.clip_)
    figure.suptitle(as_text(title), fontsize=17, fontweight="bold")
    if v:
        add_legend(figure, loc="outside lower center", frameon=False, fontsize=13)
    save_figure(figure, path, dpi=110)


def _panel_groups(model: TopicModel) -> list[PanelGroup]:
    captions = [f"behaviour {z + 1}: {text}" for z, text in enumerate(behaviour_captions(model))]
    phi, theta, _, xi = model.parameters_
    shares = theta @ long_run_shares(xi)
    used = (shares >= min(LEAST_SHARE, shares.max())).nonzero()[0]  # others are of all words alike
    topics = [f"topic {y + 1}" for y in used]
    n_unused = len(shares) - len(used)
    unused = f" ({n_unused} more are not used)" if n_unused else ""
    return [
        PanelGroup(
            f"{_first('Behaviours', captions)}: words that make up half of p(word | behaviour)",
            captions[:MOST_PANELS],
            model.parameters_.word_given_behaviour,
            2 if len(captions) <= 4 else 3,
        ),
        PanelGroup(
            f"{_first('Topics', topics)}{unused}: words that make up half of p(word | topic)",
            topics[:MOST_PANELS],
            phi[:, used],
            min(4, max(len(topics), 2)),
        ),
    ]


def _first(heading: str, names: list[str]) -> str:
    """Return a heading that says how many are drawn, where not all are."""
    few = len(names) <= MOST_PANELS
    return heading if few else f"{heading}, the first {MOST_PANELS} of {len(names)}"


def _draw_panels(part: Any, group: PanelGroup, v: Vocabulary, picture: Image | None) -> None:
    part.suptitle(group.heading, fontsize=14)
    axes = part.subplots(group.rows, group.columns, squeeze=False).reshape(-1)
    for ax in axes[len(group.names) :]:
        ax.set_axis_off()
    for ax, name, probabilities in zip(axes, group.names, group.words.T, strict=False):
        prepare_axes(ax, v, picture)
        draw_on_axes(ax, probable_arrows(probabilities, v))
        ax.set_title(name, fontsize=12)


def behaviour_captions(model: TopicModel) -> list[str]:
    """Return the share of the time and the mean duration of each behaviour, as text."""
    xi = model.parameters_.xi
    return [
        f"{share:.0%} of the time, mean duration {duration_text(duration * model.clip_)}"
        for share, duration in zip(long_run_shares(xi), expected_durations(xi), strict=True)
    ]


def behaviour_pictures(model: TopicModel, *, width: int) -> list[Image]:
    """Return each behaviour as arrows on the scene; none if the model has no vocabulary."""
    v = model.vocabulary_
    if v is None:
        return []
    plain = background(model.picture_, v, FINER * width)
    pictures = []
    for probabilities in model.parameters_.word_given_behaviour.T:
        picture = plain.copy()
        draw_on_picture(picture, probable_arrows(probabilities, v), v)
        pictures.append(reduced(picture))
    return pictures


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
        return page_svg(figure, INK_PLACEHOLDER, transparent=True)


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
    start, end = (centre + radius * (0.8 * out + s * 0.6 * side) for s in (1, -1))
    _draw_arrow(ax, start, end, -1.25, mutation_scale=9, color=ink, lw=1, zorder=0.9)
    beside = centre + out * (radius * 1.55 + 0.17) + (0.12 * np.sign(round(out[0], 6)), 0)
    ax.annotate(text, _point(beside), fontsize=10, ha="center", va="center", color=ink)


def _draw_transition(ax: Axes, tail: _Circle, tip: _Circle, probability: float, ink: str) -> None:
    """Draw a curved arrow between two circles, wider if more probable, with its probability."""
    ahead = (tip.centre - tail.centre) / np.linalg.norm(tip.centre - tail.centre)
    aside = np.array([-ahead[1], ahead[0]])
    start = tail.centre + tail.radius * (ahead * 0.96 + aside * 0.28)
    end = tip.centre - tip.radius * (ahead * 0.96 - aside * 0.28)
    colour = behaviour_colour(tail.behaviour)
    size, width = 9 + 9 * probability, 0.8 + 4.2 * probability
    _draw_arrow(ax, start, end, -BEND, mutation_scale=size, lw=width, color=colour, zorder=0.8)
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


def _draw_arrow(ax: Axes, start: Array, end: Array, bend: float, **style: Any) -> None:
    """Draw a bent arrow between two points."""
    style |= {"connectionstyle": f"arc3,rad={bend}", "arrowstyle": "-|>"}
    ax.add_patch(FancyArrowPatch(_point(start), _point(end), shrinkA=0, shrinkB=1, **style))


def draw_corpus(path: str | os.PathLike[str], corpus: Corpus, *, title: str) -> None:
    """Write a figure of a corpus: all motion on the scene, and words per document over time.

    The name ends in .png, .jpg, .svg or .pdf. Without a vocabulary, only the latter are drawn.
    """
    vocabulary = corpus.vocabulary
    aspect = drawn_height(vocabulary) if vocabulary else 0.75
    figure = Figure(figsize=(9, 9 * aspect + 3.1), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[9 * aspect, 2.2])
    if vocabulary is None:
        above.set_axis_off()
    else:
        _draw_motion(above, corpus, vocabulary)
    _draw_word_counts(below, corpus)
    figure.suptitle(as_text(title), fontsize=12)
    save_figure(figure, path, dpi=130)


def _draw_motion(ax: Axes, corpus: Corpus, v: Vocabulary) -> None:
    """Draw an arrow per word, wider if more frequent."""
    prepare_axes(ax, v, corpus.picture)
    used = corpus.take(np.flatnonzero(corpus.conditions == 0)).paper.entries
    counts = np.bincount(used.indices, weights=used.data, minlength=used.n_words)
    words = np.flatnonzero(counts > 0)
    if len(words):
        # The square root keeps rarely used lanes visible beside busy ones.
        strength = np.sqrt(counts[words] / np.quantile(counts[words], 0.99)).clip(0, 1)
        visible = strength > 0.08
        draw_on_axes(ax, arrows_of(words[visible], strength[visible], v.paper))
    add_legend(ax, loc="lower left", fontsize=8, framealpha=0.85)


def _draw_word_counts(ax: Axes, corpus: Corpus) -> None:
    """Draw the number of words per document, one sequence after another."""
    n_tokens, seconds = corpus.n_tokens, np.diff(corpus.times)
    # Documents of a second each, if they are enough.
    in_minutes = len(corpus) >= 120 and bool(np.isclose(np.median(seconds), 1.0))
    x = np.arange(len(corpus)) / (60 if in_minutes else 1)
    width = x[1] - x[0] if len(x) > 1 else 1.0
    edges = np.append(x, x[-1] + width)
    ax.stairs(n_tokens, edges, fill=True, color="#56B4E9")
    faults = corpus.conditions != 0
    if faults.any():
        height = np.where(faults, n_tokens.max(initial=1), 0)
        label = "camera moved, covered or frozen"
        ax.stairs(height, edges, fill=True, color=FAULT, alpha=0.5, label=label)
        ax.legend(fontsize=8, loc="upper right")
    for end in np.cumsum(corpus.lengths)[:-1]:
        ax.axvline(x[end], color="#444444", linewidth=0.8, linestyle=":")
    ax.set(xlim=(0, edges[-1]), ylim=(0, None), ylabel="words per document")
    ax.set_xlabel("minutes" if in_minutes else "documents")
    short = float((n_tokens < SHORT).mean())
    text = f"{counted(len(corpus), 'document')}, {short:.0%} with fewer than {SHORT} words"
    ax.set_title(text, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
