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
