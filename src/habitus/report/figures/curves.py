"""The curves of an assessment as one picture, each beside what chance gives."""

import os
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from habitus.corpus.vocabulary import Direction
from habitus.errors import InvalidInputError
from habitus.evaluation.assessment import Assessment
from habitus.evaluation.matching import RATES
from habitus.evaluation.metrics import Curve
from habitus.files import written_whole
from habitus.report.figures.drawing import COLOURS, EVENT, INK, PAPER

SUFFIXES = (".png", ".svg", ".pdf")
CURVE, CHANCE, GRID = COLOURS[Direction.UP], "#8A8F98", "#E4E6EA"


def check_picture(path: str | os.PathLike[str]) -> None:
    """Refuse a picture of another kind."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInputError(
            f"cannot draw {path}: expected a name that ends in {', '.join(SUFFIXES)}, found "
            f"{suffix or 'none'}"
        )


def draw_curves(path: str | os.PathLike[str], found: Assessment, *, title: str) -> None:
    """Write a picture of all curves that the assessment has."""
    check_picture(path)
    panels = [_precision_recall, _roc, _events]
    if found.localisation is not None:
        panels.append(_localisation)
    # Identifiers that do not change from run to run: the same figures, the same picture.
    with mpl.rc_context({"svg.hashsalt": "habitus", "svg.fonttype": "path"}):
        figure = Figure(figsize=(11, 9.6), layout="constrained")
        axes = figure.subplots(2, 2).reshape(-1)
        for ax, panel in zip(axes, panels, strict=False):
            _dress(ax)
            panel(ax, found)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        figure.suptitle(f"{title}\n", fontsize=15, fontweight="bold", color=INK)
        figure.text(0.5, 0.955, _lead(found), ha="center", fontsize=10, color=INK)
        with written_whole(path) as temporary:
            figure.savefig(temporary, dpi=130, metadata=_metadata(Path(path)))


def _metadata(path: Path) -> dict[str, Any]:
    return {} if path.suffix.lower() == ".png" else {
        "Date" if path.suffix.lower() == ".svg" else "CreationDate": None
    }  # fmt: skip


def _lead(found: Assessment) -> str:
    n = len(found.labels)
    return (
        f"{found.n_documents} documents, {found.n_abnormal} of them abnormal, {n} labelled "
        f"event{'' if n == 1 else 's'}; dashed: chance"
    )


def _dress(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_ylim(-0.02, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.tick_params(colors=INK, labelsize=9)


def _head(ax: Axes, text: str, under: str) -> None:
    ax.set_title(f"{text}\n", loc="left", fontsize=12, fontweight="bold", color=INK)
    ax.annotate(under, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points",
                fontsize=9, color=INK)  # fmt: skip


def _interval(found: Assessment, name: str) -> str:
    value, chance, low, high = found.documents[name]
    interval = f" (9 times in 10: {low:.3f} to {high:.3f})" if np.isfinite(low) else ""
    return f"area {value:.3f}{interval}, chance {chance:.3f}"


def _chosen(ax: Axes, x: float, y: float) -> None:
    ax.plot([x], [y], "o", markersize=9, markerfacecolor=EVENT, markeredgecolor=INK, zorder=5,
            label="the chosen threshold", clip_on=False)  # fmt: skip
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best", numpoints=1)


def _precision_recall(ax: Axes, found: Assessment) -> None:
    curve = found.precision_recall or _nothing()
    share = found.n_abnormal / found.n_documents
    ax.axhline(share, color=CHANCE, linestyle="--", linewidth=1.4)
    # As scikit-learn adds the area up: no slopes between points, and none made up at recall 0.
    recall, precision = curve.x[::-1][1:], curve.y[::-1][1:]
    recall, precision = np.append(0.0, recall), np.append(precision[:1], precision)
    ax.step(recall, precision, where="pre", color=CURVE, linewidth=2)
    ax.fill_between(recall, precision, step="pre", color=CURVE, alpha=0.1, linewidth=0)
    if "precision" in found.documents:
        _chosen(ax, found.documents["recall"].value, found.documents["precision"].value)
    ax.set(xlim=(-0.02, 1.02), xlabel="recall: abnormal documents that are found",
           ylabel="precision: found documents that are abnormal")  # fmt: skip
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _head(ax, "precision and recall", f"{_interval(found, 'average_precision')}; average precision")


def _roc(ax: Axes, found: Assessment) -> None:
    curve = found.roc or _nothing()
    ax.plot([0, 1], [0, 1], color=CHANCE, linestyle="--", linewidth=1.4)
    ax.plot(curve.x, curve.y, color=CURVE, linewidth=2)
    recall, called = found.documents["recall"][:2]
    n_normal = found.n_documents - found.n_abnormal
    false = (called * found.n_documents - recall * found.n_abnormal) / n_normal
    _chosen(ax, false, recall)
    ax.set(xlim=(-0.02, 1.02), xlabel="normal documents called abnormal",
           ylabel="abnormal documents that are found")  # fmt: skip
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _head(ax, "ROC", _interval(found, "roc_auc"))


def _events(ax: Axes, found: Assessment) -> None:
    curve, chance = found.events or _nothing(), found.events_chance or _nothing()
    ax.plot(chance.x, chance.y, color=CHANCE, linestyle="--", linewidth=1.4)
    ax.step(curve.x, curve.y, where="post", color=CURVE, linewidth=2)
    for at in found.at_rates:
        ax.plot([at.rate], [at.share], "o", color=CURVE, markersize=5)
        ax.annotate(f"{at.found.sum()} of {len(at.found)}", (at.rate, at.share), (0, 7),
                    textcoords="offset points", ha="center", fontsize=9, color=INK,
                    bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5})  # fmt: skip
    rate = found.chosen.rate
    _chosen(ax, min(max(rate, curve.x[0]), curve.x[-1]), found.chosen.share)
    ax.set(xscale="log", xlim=(0.47, 64), xlabel="false alarms an hour",
           ylabel="labelled events that are found")  # fmt: skip
    ticks = (0.5, *RATES, 10, 60)
    ax.xaxis.set_major_locator(FixedLocator(sorted(ticks)))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    _head(ax, "events found", f"chosen: {rate:.3g} false alarms an hour in this footage")


def _localisation(ax: Axes, found: Assessment) -> None:
    where = found.localisation
    if where is None:
        return
    n = np.array(where.n_tops)
    ax.plot(n, where.chance, color=CHANCE, linestyle="--", linewidth=1.4)
    ax.plot(n, where.recall, color=CURVE, linewidth=2, marker="o", markersize=4,
            label="recall: found, of those that could be")  # fmt: skip
    ax.plot(n, where.reach, color=COLOURS[Direction.LEFT], linewidth=2,
            label="reach: that N_top words can hold")  # fmt: skip
    ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="best")
    ax.set(xscale="log", xlabel="N_top: least likely words of an abnormal document",
           ylabel="share of abnormal words")  # fmt: skip
    ax.xaxis.set_major_locator(FixedLocator([1, 3, 10, 30, 100, 300]))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    _head(ax, "localisation recall", f"the paper's, mean over {where.n_documents} documents")


def _nothing() -> Curve:
    return Curve(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
