"""How well normality tells abnormal documents and events from the rest.

Scores are normalities: the lower, the more abnormal. Documents that were not judged are called
normal, so they come last.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from habitus.errors import InvalidInputError
from habitus.evaluation.finding import HOUR, RATES, FoundAt, events_found, found_at
from habitus.evaluation.scored import Flags, Scored
from habitus.model.parameters import Array

__all__ = [
    "HOUR", "RATES", "Curve", "Estimate", "Flags", "FoundAt", "Scored", "area", "best_accuracy",
    "bootstrap", "check_both", "events_found", "found_at", "precision_recall", "roc", "roc_area",
]  # fmt: skip


class Curve(NamedTuple):
    """Precision and recall, or true and false positives, over all thresholds."""

    x: Array
    y: Array


def check_both(abnormal: Flags) -> None:
    """Refuse a truth that nothing can be told from."""
    if not abnormal.any():
        raise InvalidInputError(
            "the labels call no document abnormal: there is nothing to find, and no curve"
        )
    if abnormal.all():
        raise InvalidInputError(
            "the labels call every document abnormal: there is nothing to tell them from"
        )


class _Counts(NamedTuple):
    """Abnormal and normal documents at or above each score, the highest first; ties together."""

    true: Array
    false: Array


def _counts(abnormality: Array, abnormal: Flags) -> _Counts:
    check_both(abnormal)
    order = np.argsort(-abnormality, kind="stable")
    last = np.append(np.diff(abnormality[order]) != 0, True)
    true = np.cumsum(abnormal[order], dtype=np.float64)[last]
    return _Counts(true, np.flatnonzero(last) + 1 - true)


def area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the precision-recall curve, as `sklearn.metrics.average_precision_score` has it.

    Precision at each score, weighted by the recall that it adds: no line is drawn between points.
    """
    true, false = _counts(abnormality, abnormal)
    return float((np.diff(true, prepend=0.0) * true / (true + false)).sum() / true[-1])


def roc_area(abnormality: Array, abnormal: Flags) -> float:
    """Area under the ROC curve: how often an abnormal document scores worse than a normal one.

    Ties count half, as in `sklearn.metrics.roc_auc_score`.
    """
    true, false = _counts(abnormality, abnormal)
    gained = np.diff(false, prepend=0.0)
    return float((gained * (true - np.diff(true, prepend=0.0) / 2)).sum() / (true[-1] * false[-1]))


def best_accuracy(abnormality: Array, abnormal: Flags) -> float:
    """Share of documents classified rightly, at the best of all thresholds."""
    true, false = _counts(abnormality, abnormal)
    return float((false[-1] + max((true - false).max(), 0.0)) / len(abnormal))


def precision_recall(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, recall on x from 1 down to 0, as `sklearn.metrics.precision_recall_curve`."""
    true, false = _counts(abnormality, abnormal)
    recall, precision = true / true[-1], true / (true + false)
    return Curve(np.append(recall[::-1], 0.0), np.append(precision[::-1], 1.0))


def roc(abnormality: Array, abnormal: Flags) -> Curve:
    """The curve, false positive rate on x, as `sklearn.metrics.roc_curve`, every point of it."""
    true, false = _counts(abnormality, abnormal)
    return Curve(np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1]))


class Estimate(NamedTuple):
    """A figure, its chance level, and an interval that holds it nine times out of ten."""

    value: float
    chance: float
    low: float
    high: float


def bootstrap(
    figure: Callable[[Array, Flags], float],
    abnormality: Array,
    abnormal: Flags,
    *,
    block: int = 30,
    n_draws: int = 500,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval of a figure: documents drawn anew in blocks, as neighbours are alike; 5 to 95 %.

    Draws without both kinds of documents, or of which the figure is NaN, are left out.
    """
    rng = np.random.default_rng(seed)
    n = len(abnormal)
    block = max(1, min(block, n // 4))
    steps, values = np.arange(block), []
    for _ in range(n_draws):
        starts = rng.integers(0, n, -(-n // block))
        drawn = ((starts[:, None] + steps) % n).reshape(-1)[:n]
        if 0 < abnormal[drawn].sum() < n:
            values.append(figure(abnormality[drawn], abnormal[drawn]))
    known = np.array(values)[np.isfinite(values)]
    low, high = np.quantile(known, [0.05, 0.95]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)
