"""A model as one picture: behaviours, topics and the cycle."""

import os
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.model.chain import expected_durations, long_run_shares
from habitus.model.parameters import Array
from habitus.report.arrows import draw_on_axes, legend, probable_arrows
from habitus.report.backdrop import lay
from habitus.report.cycle import draw_cycle, in_time
from habitus.words import Vocabulary

# Inches: width of a panel, height of its title, and of the graph.
PANEL, TITLE, GRAPH = 4.4, 0.4, 5.2
COLUMNS = 4


class Group(NamedTuple):
    """Panels that belong together."""

    heading: str
    names: list[str]
    columns: Array
    """p(word | each), words x panels."""


def draw_model(
    path: str | os.PathLike[str], model: MarkovClusteringTopicModel, *, title: str
) -> None:
    """Write a picture of a model; only its cycle where nobody knows what its words mean."""
    v = model.vocabulary_
    groups = _groups(model) if v else []
    widest = min(COLUMNS, max((len(group.names) for group in groups), default=2))
    panel = PANEL * v.height / v.width + TITLE if v else 0.0
    heights = [-(-len(group.names) // widest) * panel + 0.5 for group in groups] + [GRAPH]
    size = (max(widest * PANEL, 6.4), sum(heights) + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, group in zip(parts, groups, strict=False):
        if v:
            _panels(part, group, v, widest, model.picture_)
    parts[-1].suptitle("what follows what, and how long each lasts", fontsize=13)
    draw_cycle(parts[-1].subplots(), model.parameters_.xi, model.clip_)
    figure.suptitle(title, fontsize=15, fontweight="bold")
    if v:
        legend(figure, loc="outside lower center", frameon=False, fontsize=11)
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
        Group("behaviours: the words that make up half of each", said, mixed),
        Group("topics, which behaviours are made of", topics, phi),
    ]


def _panels(part: Any, group: Group, v: Vocabulary, widest: int, picture: Any) -> None:
    part.suptitle(group.heading, fontsize=13)
    n_rows = -(-len(group.names) // widest)
    axes = part.subplots(n_rows, widest, squeeze=False).reshape(-1)
    for ax in axes[len(group.names) :]:
        ax.set_axis_off()
    for ax, name, probabilities in zip(axes, group.names, group.columns.T, strict=False):
        lay(ax, v, picture)
        draw_on_axes(ax, probable_arrows(probabilities, v))
        ax.set_title(name, fontsize=10)
