"""The paper's figures, drawn from a comparison."""

import io
import re
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from habitus.arrays import Array
from habitus.evaluation.metrics import precision_recall
from habitus.lab.comparison.findings import LEARNERS, Comparison, MethodFigures
from habitus.lab.comparison.protocol import PAPER_LOCALISATION, SHORT_NAMES
from habitus.lab.comparison.scoring import N_TOP, SHARES
from habitus.rarity import counted
from habitus.reporting.figures.drawing import INK, page_svg

PALE = "#9A9A94"
"""Colour of lines behind others; on a page INK becomes the colour of its text."""
COLOURS = {
    "em": "#0072B2",
    "vb": "#D55E00",
    "gibbs": "#009E73",
    "blocked": "#6FBF9F",
    "ours": "#CC79A7",
    "baselines": "#8A8A85",
}
DASHES = {"em": "-", "vb": "--", "gibbs": "-.", "ours": ":"}
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "savefig.facecolor": "none",
}


class Plot(NamedTuple):
    """A drawn figure with its texts."""

    name: str
    """Name of its file."""
    title: str
    caption: str
    svg: str
    """For a page, in the colour of its text."""
    png: bytes


def pictures_of(comparison: Comparison) -> list[Plot]:
    """Return all figures that the methods of a comparison allow."""
    pictures = []
    with mpl.rc_context(STYLE):
        for draw in (_average_precisions, _sensitivity, _best_and_worst, _localisation):
            picture = draw(comparison)
            if picture is not None:
                pictures.append(picture)
    return pictures


def _average_precisions(comparison: Comparison) -> Plot:
    rows = comparison.rows
    figure = Figure((8.4, 0.9 + 0.245 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        colour = COLOURS[row.group]
        axes.barh(place, row.mean, height=0.62, color=colour, alpha=0.55, linewidth=0)
        shifts = (
            np.linspace(-0.2, 0.2, len(row.average_precisions))
            if len(row.average_precisions) > 1
            else np.zeros(1)
        )
        axes.plot(row.average_precisions, place + shifts, ".", color=INK, markersize=2.6)
    axes.axvline(comparison.chance, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        "chance",
        (comparison.chance, -0.9),
        (3, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
    )
    axes.set_yticks(range(len(rows)), [row.method.name for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) - 0.4, -1.4)
    axes.set_xlim(0, None)
    axes.set_xlabel("average precision")
    caption = (
        "Bars: means over runs; dots: runs (the paper's figure of mean results). EM, VB, GS: its "
        "three learning algorithms with its priors; p: plug-in, mc: Monte Carlo."
    )
    return _picture(figure, "areas", "Mean average precision of every method", caption)


def _sensitivity(comparison: Comparison) -> Plot | None:
    names = ("VB 1 p", "VB H p", "EM 1 p", "EM H p")
    rows = [row for name in names if (row := comparison.row(name))]
    if not rows:
        return None
    n_rows = (len(rows) + 1) // 2
    figure = Figure((8.4, 3.3 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, 2, sharex=True, sharey=True, squeeze=False)
    for axes, row in zip(panels.flat, rows, strict=False):
        for scores in row.abnormality:
            _draw(axes, scores, comparison, color=PALE, linewidth=0.7, alpha=0.8)
        _extremes(axes, row, comparison)
        axes.set_title(
            f"{row.method.name}, {counted(len(row.average_precisions), 'run')}",
            loc="left",
            fontsize=10.5,
        )
    for axes in panels.flat[len(rows) :]:
        axes.set_visible(False)
    _label(panels)
    caption = (
        "Precision-recall curves of all runs; in colour those with the largest and the smallest "
        "average precision (the paper's figure of hyperparameter sensitivity)."
    )
    return _picture(figure, "sensitivity", "Sensitivity to the prior", caption)


def _extremes(axes: Axes, row: MethodFigures, comparison: Comparison) -> None:
    for place, colour, dashes, word in (
        (int(row.average_precisions.argmax()), "#0072B2", "-", "best"),
        (int(row.average_precisions.argmin()), "#D55E00", "--", "worst"),
    ):
        style: Any = {"color": colour, "linestyle": dashes, "linewidth": 1.7}
        label = f"{word}, {row.average_precisions[place]:.3f}"
        _draw(axes, row.abnormality[place], comparison, label=label, **style)
    axes.legend(loc="upper right", fontsize=9)


def _best_and_worst(comparison: Comparison) -> Plot | None:
    groups = [group for group in (*LEARNERS, "ours") if comparison.group(group)]
    if len(groups) < 2:
        return None
    figure = Figure((8.4, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True, squeeze=False)
    for axes, word, pick in zip(panels.flat, ("best", "worst"), (max, min), strict=True):
        for group in groups:
            runs = [
                (value, row, k)
                for row in comparison.group(group)
                for k, value in enumerate(row.average_precisions)
            ]
            value, row, k = pick(runs, key=lambda run: run[0])
            name = "habitus" if group == "ours" else SHORT_NAMES[group]
            label = f"{name}, {value:.3f}"
            _draw(axes, row.abnormality[k], comparison, label=label, **_line(group))
        axes.set_title(f"{word} run of each", loc="left", fontsize=10.5)
        axes.legend(loc="upper right", fontsize=9)
    _label(panels)
    caption = (
        "The runs with the largest and the smallest average precision over all priors and "
        "approximations (the paper's figure of best and worst curves); habitus: over its measures."
    )
    return _picture(figure, "best-and-worst", "Best and worst runs", caption)


def _localisation(comparison: Comparison) -> Plot | None:
    names = ("EM H+1 p", "VB H p", "GS H p", "habitus")
    rows = [row for name in names if (row := comparison.row(name)) and row.recall]
    chance = comparison.chance_localisation
    if not rows or chance is None:
        return None
    figure = Figure((8.4, 3.6), layout="constrained")
    (panels,) = figure.subplots(1, 2, sharey=True, squeeze=False)
    for axes, x, which in zip(
        panels, (100 * np.array(SHARES), np.array(N_TOP)), (1, 0), strict=True
    ):
        for row in rows:
            if row.recall is not None:
                axes.plot(x, row.recall[which], label=row.method.name, **_line(row.group))
        axes.plot(x, chance[which], color=PALE, linewidth=1.2, label="words in random order")
        axes.set_ylim(0, 1.02)
    panels[0].plot(
        100 * PAPER_LOCALISATION[0],
        PAPER_LOCALISATION[1],
        "x",
        color=INK,
        label="paper, other videos",
    )
    panels[0].set_xlabel("share of the abnormal words that N_top words can hold, %")
    panels[1].set_xlabel("N_top, number of least likely words")
    panels[0].set_ylabel("recall")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    caption = (
        f"Localisation recall, mean over {comparison.n_localised} documents with labelled boxes: "
        "abnormal words among the N_top least likely ones, over the largest number possible."
    )
    return _picture(figure, "localisation", "Localisation", caption)


def _line(group: str) -> dict[str, Any]:
    return {"color": COLOURS[group], "linestyle": DASHES[group], "linewidth": 1.7}


def _draw(axes: Axes, abnormality: Array, comparison: Comparison, **how: Any) -> None:
    curve = precision_recall(abnormality, comparison.abnormal)
    # Recall falls from 1 to 0. The last point of scikit-learn, precision 1 at recall 0, belongs to
    # no document: the step before it is extended to the edge.
    axes.step(curve.x, np.append(curve.y[:-1], curve.y[-2]), where="post", **how)


def _label(panels: Any) -> None:
    for axes in panels[-1]:
        axes.set_xlabel("recall")
    for axes in panels[:, 0]:
        axes.set_ylabel("precision")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, 1)


def _picture(figure: Figure, name: str, title: str, caption: str) -> Plot:
    # A salt per figure: the elements of two figures on one page must not share names.
    with mpl.rc_context({"svg.hashsalt": f"habitus {name}"}):
        svg = page_svg(figure, INK)
    for side in ("width", "height"):  # scalable
        svg = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
    painted = io.BytesIO()
    figure.savefig(painted, format="png", dpi=150, facecolor="white", metadata={"Software": None})
    return Plot(name, title, caption, svg, painted.getvalue())
