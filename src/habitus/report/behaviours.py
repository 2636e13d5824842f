"""Behaviours and topics as arrows on the scene."""

import os
from collections.abc import Mapping

from matplotlib.figure import Figure

from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.model.parameters import Array
from habitus.report.arrows import (
    MASS,
    Picture,
    draw_on_axes,
    draw_on_picture,
    legend,
    probable_arrows,
)
from habitus.report.backdrop import FINER, ground, lay, reduced
from habitus.words import Vocabulary


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


def behaviour_pictures(model: MarkovClusteringTopicModel, *, width: int) -> list[Picture]:
    """Each behaviour as a picture so many pixels wide; none if nobody knows what words mean."""
    return _pictures(model, model.parameters_.word_given_behaviour, width)


def topic_pictures(model: MarkovClusteringTopicModel, *, width: int) -> list[Picture]:
    """Each topic likewise."""
    return _pictures(model, model.parameters_.phi, width)


def _pictures(model: MarkovClusteringTopicModel, columns: Array, width: int) -> list[Picture]:
    v = model.vocabulary_
    if v is None:
        return []
    plain = ground(model.picture_, v, FINER * width)
    pictures = [plain.copy() for _ in columns.T]
    for picture, probabilities in zip(pictures, columns.T, strict=True):
        draw_on_picture(picture, probable_arrows(probabilities, v), v)
    return [reduced(picture) for picture in pictures]
