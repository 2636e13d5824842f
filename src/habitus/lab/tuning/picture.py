"""Figure of the evidence for a choice of a model."""

import os
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from habitus.lab.tuning.advice import Tuning
from habitus.lab.tuning.recall import RecallEstimate
from habitus.lab.tuning.selection import Choice
from habitus.model.hyperparameters import HyperparameterFit
from habitus.reporting.figures.drawing import EVENT, INK, PAPER, behaviour_colour, save_figure

MARKERS = "osD^vPX*"


def draw_tuning(path: str | os.PathLike[str], tuning: Tuning, alerts_per_day: float) -> None:
    """Write a figure of held-out likelihoods, hyperparameters and recall at a budget."""
    panels: list[Callable[[Axes], None]] = [lambda ax: draw_sizes(ax, tuning.choice)]
    if tuning.hyperparameters is not None:
        fit = tuning.hyperparameters.fit
        panels += [lambda ax: draw_bound(ax, fit), lambda ax: draw_hyperparameters(ax, fit)]
    if tuning.recall is not None:
        recall = tuning.recall
        panels.append(lambda ax: draw_recall(ax, recall, alerts_per_day))
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(6.4 * columns, 4.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for ax, draw in zip(axes, panels, strict=False):
        draw(ax)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    save_figure(figure, path, dpi=120)


def draw_sizes(ax: Axes, choice: Choice) -> None:
    """Draw held-out likelihood against topics, one line per number of behaviours.

    Error bars are standard errors of the paired difference from the best: a candidate is within
    one standard error if its bar reaches the dotted line.
    """
    numbers = sorted({candidate.n_behaviours for candidate in choice.candidates})
    for k, z in enumerate(numbers):
        which = [i for i, c in enumerate(choice.candidates) if c.n_behaviours == z]
        # Side by side, so that error bars do not overlap.
        offset = 0.25 * (k - (len(numbers) - 1) / 2)
        x = np.array([choice.candidates[i].n_topics for i in which]) + offset
        means = [choice.predictions[i].mean for i in which]
        ax.errorbar(
            x,
            means,
            yerr=[choice.shortfall(i).standard_error for i in which],
            lw=1.6,
            color=behaviour_colour(k),
            marker=MARKERS[k % len(MARKERS)],
            ms=5,
            capsize=2,
            elinewidth=0.8,
            label=str(z),
        )
        if choice.chosen in which:
            at = which.index(choice.chosen)
            ax.plot(x[at], means[at], "o", ms=15, mfc="none", mec=INK, mew=1.6, zorder=5)
    ax.axhline(choice.predictions[choice.best].mean, color=INK, lw=1, ls=":")
    ax.set_xticks(sorted({candidate.n_topics for candidate in choice.candidates}))
    ax.set(xlabel="topics", ylabel="held-out log-likelihood, nats per word")
    ax.set_title(
        "size: ringed is the simplest within one standard error\n"
        "of the best (dotted); bars: errors of paired differences",
        fontsize=11,
    )
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(
        handles[::-1],
        labels[::-1],
        title="behaviours",
        frameon=False,
        fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )


def draw_bound(ax: Axes, fit: HyperparameterFit) -> None:
    """Draw the ELBO of VB, which never falls, against iterations."""
    bounds = fit.objective.reshape(-1)
    ax.plot(np.arange(len(bounds)) / 2 + 0.5, bounds, color=behaviour_colour(3), lw=2)
    ax.set(xlabel="iteration", ylabel="evidence lower bound, nats")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.ticklabel_format(axis="y", useOffset=False, style="plain")
    ax.set_title("VB: the bound while hyperparameters are fitted", fontsize=11)


def draw_hyperparameters(ax: Axes, fit: HyperparameterFit) -> None:
    """Draw the value of each hyperparameter against iterations."""
    for k, name in enumerate(("alpha", "beta", "gamma", "eta")):
        series = fit.course[name]
        x, colour = np.arange(1, len(series) + 1), behaviour_colour((1, 3, 5, 7)[k])
        ax.plot(x, series, color=colour, lw=2, ls=("-", "--", "-.", ":")[k])
        ax.annotate(
            f"{name} {series[-1]:.3g}",
            (x[-1], series[-1]),
            (0, 4),
            color=colour,
            textcoords="offset points",
            ha="right",
            fontsize=10,
        )
    ax.set(xlabel="iteration", ylabel="value", yscale="log")
    ax.margins(y=0.12)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title("VB: hyperparameters by type-II maximum likelihood", fontsize=11)


def draw_recall(ax: Axes, recall: RecallEstimate, alerts_per_day: float) -> None:
    """Draw the share found by kind and strength as bars, with 90 % intervals."""
    shares = [s for s in recall.shares if s.alerts_per_day == alerts_per_day and s.n_trials]
    kinds = list(dict.fromkeys(share.kind for share in shares))
    strengths = sorted({share.strength for share in shares if share.strength is not None})
    for share in shares:
        place = strengths.index(share.strength) if share.strength is not None else 1
        y = kinds.index(share.kind) + 0.26 * (place - (len(strengths) - 1) / 2)
        low, high = share.interval
        colour = EVENT if share.strength is None else behaviour_colour((6, 0, 3)[place % 3])
        ax.barh(y, share.share, height=0.24, edgecolor=INK, lw=0.6, color=colour)
        outline = [withStroke(linewidth=3, foreground=PAPER)]
        ax.plot([low, high], [y, y], color=INK, lw=1.2, path_effects=outline)
        size = "" if share.strength is None else f"x {share.strength:g}"
        ax.annotate(size, (high + 0.015, y), va="center", fontsize=8)
    ax.set_yticks(range(len(kinds)), kinds)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.12), xlabel="share found")
    ax.set_xticks(np.arange(0, 1.01, 0.2))
    ax.set_title(
        f"synthetic anomalies found at {alerts_per_day:g} alerts per day,\n"
        "by size relative to the objects of the footage",
        fontsize=11,
    )
