"""Curves of an assessment in one figure, each with its chance level."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from habitus.corpus.vocabulary import Direction
from habitus.evaluation.assessment import Assessment
from habitus.evaluation.matching import RATES
from habitus.evaluation.metrics import Curve
from habitus.rarity import counted
from habitus.reporting.figures.drawing import COLOURS, EVENT, INK, PAPER, as_text, save_figure

CURVE, CHANCE, GRID = COLOURS[Direction.UP], "#8A8F98", "#E4E6EA"


def draw_curves(path: str | os.PathLike[str], assessment: Assessment, *, title: str) -> None:
    """Write a figure of all curves of an assessment of a model, as .png, .jpg, .svg or .pdf."""
    panels = [_draw_precision_recall, _draw_roc, _draw_events]
    if assessment.localisation is not None:
        panels.append(_draw_localisation)
    figure = Figure(figsize=(11, 9.6), layout="constrained")
    axes = figure.subplots(2, 2).reshape(-1)
    for ax, panel in zip(axes, panels, strict=False):
        _prepare(ax)
        panel(ax, assessment)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    figure.suptitle(f"{as_text(title)}\n", fontsize=15, fontweight="bold", color=INK)
    figure.text(0.5, 0.955, _lead(assessment), ha="center", fontsize=10, color=INK)
    save_figure(figure, path, dpi=130)


def _lead(assessment: Assessment) -> str:
    documents = counted(assessment.n_documents, "document")
    events = counted(len(assessment.labels), "labelled event")
    return f"{documents}, {assessment.n_abnormal} of them abnormal, {events}; dashed: chance level"


def _prepare(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_ylim(-0.02, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.tick_params(colors=INK, labelsize=9)


def _percent_x(ax: Axes, label: str) -> None:
    ax.set(xlim=(-0.02, 1.02), xlabel=label)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _log_x(ax: Axes, label: str, ticks: Sequence[float]) -> None:
    ax.set(xscale="log", xlabel=label)
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(NullLocator())


def _draw_heading(ax: Axes, heading: str, text: str) -> None:
    """Draw a heading and a smaller line below it."""
    ax.set_title(f"{heading}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    offset: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    ax.annotate(text, (0, 1), (0, 6), fontsize=9, color=INK, **offset)


def _figure_text(assessment: Assessment, name: str, text: str) -> str:
    """Return a figure of the documents with its 90 % interval and its chance level."""
    value, chance, low, high = assessment.documents[name]
    interval = f" (90 % interval: {low:.3f} to {high:.3f})" if np.isfinite(low) else ""
    return f"{text} {value:.3f}{interval}, chance {chance:.3f}"


def _draw_operating_point(ax: Axes, x: float, y: float) -> None:
    """Mark the threshold of the detector."""
    ax.plot(
        [x],
        [y],
        "o",
        markersize=9,
        markerfacecolor=EVENT,
        markeredgecolor=INK,
        zorder=5,
        label="threshold in use",
        clip_on=False,
    )
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best", numpoints=1)


def _draw_precision_recall(ax: Axes, assessment: Assessment) -> None:
    curve = assessment.precision_recall or _no_curve()
    share = assessment.n_abnormal / assessment.n_documents
    ax.axhline(share, color=CHANCE, linestyle="--", linewidth=1.4)
    # Steps, as average precision sums them: no interpolation, and no point made up at recall 0.
    recall, precision = curve.x[::-1][1:], curve.y[::-1][1:]
    recall, precision = np.append(0.0, recall), np.append(precision[:1], precision)
    ax.step(recall, precision, where="pre", color=CURVE, linewidth=2)
    ax.fill_between(recall, precision, step="pre", color=CURVE, alpha=0.1, linewidth=0)
    if "precision" in assessment.documents:
        at = assessment.documents
        _draw_operating_point(ax, at["recall"].value, at["precision"].value)
    _percent_x(ax, "recall: share of abnormal documents detected")
    ax.set_ylabel("precision: share of detections that are abnormal")
    text = _figure_text(assessment, "average_precision", "average precision")
    _draw_heading(ax, "Precision and recall", text)


def _draw_roc(ax: Axes, assessment: Assessment) -> None:
    curve = assessment.roc or _no_curve()
    ax.plot([0, 1], [0, 1], color=CHANCE, linestyle="--", linewidth=1.4)
    ax.plot(curve.x, curve.y, color=CURVE, linewidth=2)
    # The chance level of recall is the share of documents detected.
    recall, detected = assessment.documents["recall"][:2]
    n_normal = assessment.n_documents - assessment.n_abnormal
    false_positives = detected * assessment.n_documents - recall * assessment.n_abnormal
    _draw_operating_point(ax, false_positives / n_normal, recall)
    _percent_x(ax, "false positive rate: share of normal documents detected")
    ax.set_ylabel("true positive rate: recall of documents")
    _draw_heading(ax, "ROC", _figure_text(assessment, "roc_auc", "area under the curve"))


def _draw_events(ax: Axes, assessment: Assessment) -> None:
    curve, chance = assessment.events or _no_curve(), assessment.events_chance or _no_curve()
    ax.plot(chance.x, chance.y, color=CHANCE, linestyle="--", linewidth=1.4)
    ax.step(curve.x, curve.y, where="post", color=CURVE, linewidth=2)
    for at in assessment.at_rates:
        ax.plot([at.rate], [at.share], "o", color=CURVE, markersize=5)
        ax.annotate(
            f"{at.found.sum()} of {len(at.found)}",
            (at.rate, at.share),
            (0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=INK,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
        )
    rate = assessment.chosen.rate
    _draw_operating_point(ax, min(max(rate, curve.x[0]), curve.x[-1]), assessment.chosen.share)
    _log_x(ax, "false alarms per hour", sorted((0.5, *RATES, 10, 60)))
    ax.set(xlim=(0.47, 64), ylabel="share of labelled events detected")
    text = f"{rate:.3g} false alarms per hour at the threshold in use"
    _draw_heading(ax, "Events detected", text)


def _draw_localisation(ax: Axes, assessment: Assessment) -> None:
    where = assessment.localisation
    if where is None:
        return
    n_top = np.array(where.n_tops)
    ax.plot(n_top, where.chance, color=CHANCE, linestyle="--", linewidth=1.4)
    recall: dict[str, Any] = {"color": CURVE, "marker": "o", "markersize": 4}
    label = "recall: share of min(N_top, abnormal words)"
    ax.plot(n_top, where.recall, linewidth=2, label=label, **recall)
    label = "reach: largest share that N_top words can hold"
    ax.plot(n_top, where.reach, linewidth=2, label=label, color=COLOURS[Direction.LEFT])
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best")
    _log_x(ax, "N_top: least likely words of a document", [1, 3, 10, 30, 100, 300])
    ax.set_ylabel("share of abnormal words")
    text = f"as in the paper, mean over {where.n_documents} documents"
    _draw_heading(ax, "Localisation recall", text)


def _no_curve() -> Curve:
    return Curve(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
