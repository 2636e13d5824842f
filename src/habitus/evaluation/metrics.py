"""Figures of how well normality ranks abnormal documents, with bootstrap intervals.

Normality is low for abnormal documents. Documents that were not judged count as the most normal
ones. Point values and curves are those of `sklearn.metrics`, and the bootstrap evaluates the same
figures for hundreds of weighted draws at once; tests compare both with scikit-learn.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from habitus.arrays import Array, Flags
from habitus.errors import InvalidInputError

N_DRAWS = 500
"""Bootstrap draws."""
BLOCK = 30
"""Documents that a bootstrap draw takes together, since neighbours are alike."""
# Values of a batch of bootstrap draws, which bounds the memory of a long video.
BATCH = 2_000_000


class ScoredDocuments(NamedTuple):
    """Normality of the documents of one video, in time order."""

    normality: Array
    judged: Flags
    times: Array
    """Start of each document in seconds."""
    clip: float
    """Duration of a document in seconds."""

    @property
    def abnormality(self) -> Array:
        """Minus the normality; documents that were not judged have the lowest value of all."""
        if not self.judged.any():
            return np.zeros(len(self.normality))
        return -np.where(self.judged, self.normality, self.normality[self.judged].max())

    @property
    def seconds(self) -> float:
        """Duration of all documents in seconds."""
        return len(self.times) * self.clip

    def below(self, threshold: float) -> Flags:
        """Return whether each document is abnormal at a threshold."""
        return np.asarray(self.judged & (self.normality < threshold))

    def shifted(self, n: int) -> "ScoredDocuments":
        """Return the scores moved `n` documents later, the last ones wrapped to the start."""
        return self._replace(normality=np.roll(self.normality, n), judged=np.roll(self.judged, n))


class Curve(NamedTuple):
    """Points of a curve."""

    x: Array
    y: Array


class Estimate(NamedTuple):
    """A figure, its chance level, and its 90 % bootstrap interval."""

    value: float
    chance: float
    low: float
    high: float


def plain(value: Any, *without: str) -> Any:
    """Return a result as plain values, without some of its fields; None for an undefined number.

    >>> plain(Estimate(0.5, 0.1, float("nan"), float("nan")), "chance")
    {'value': 0.5, 'low': None, 'high': None}
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: plain(v, *without) for name, v in value.items() if name not in without}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def check_both(abnormal: Flags) -> None:
    """Raise InvalidInputError unless some documents are abnormal and some are not."""
    if not abnormal.any():
        raise InvalidInputError(
            "the labels mark no document abnormal: there is nothing to detect, and no curve"
        )
    if abnormal.all():
        raise InvalidInputError(
            "the labels mark every document abnormal: there is no normal document to compare with"
        )


def average_precision(abnormality: Array, abnormal: Flags) -> float:
    """Return `sklearn.metrics.average_precision_score`, the area under the precision-recall curve.

    Its chance level is the share of abnormal documents.

    Examples
    --------
    >>> average_precision(np.array([0.1, 0.9, 0.5, 0.3]), np.array([False, True, False, True]))
    0.8333333333333333
    """
    recall, precision = precision_recall(abnormality, abnormal)
    return float(-np.sum(np.diff(recall) * precision[:-1]))


def roc_auc(abnormality: Array, abnormal: Flags) -> float:
    """Return `sklearn.metrics.roc_auc_score`, the area under the ROC curve.

    It is the probability that an abnormal document ranks above a normal one, ties counted half.
    Its chance level is 0.5.
    """
    true, false = (np.append(0.0, counts) for counts in _positives(abnormality, abnormal))
    return float(np.trapezoid(true, false) / (true[-1] * false[-1]))


def best_accuracy(abnormality: Array, abnormal: Flags) -> float:
    """Return the share of documents classified correctly at the best of all thresholds."""
    false_rate, true_rate = roc(abnormality, abnormal)
    n_abnormal, n_normal = int(abnormal.sum()), int((~abnormal).sum())
    correct = true_rate * n_abnormal + (1 - false_rate) * n_normal
    return float(correct.max() / len(abnormal))


def precision_recall(abnormality: Array, abnormal: Flags) -> Curve:
    """Return `sklearn.metrics.precision_recall_curve`, recall on x from 1 to 0."""
    true, false = _positives(abnormality, abnormal)
    recall, precision = true / true[-1], true / (true + false)
    return Curve(np.append(recall[::-1], 0.0), np.append(precision[::-1], 1.0))


def roc(abnormality: Array, abnormal: Flags) -> Curve:
    """Return `sklearn.metrics.roc_curve` with every point, the false positive rate on x."""
    true, false = _positives(abnormality, abnormal)
    return Curve(np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1]))


def _positives(abnormality: Array, abnormal: Flags) -> tuple[Array, Array]:
    """Return the true and the false positives at each distinct score, from the highest on."""
    check_both(abnormal)
    order = np.argsort(-abnormality, kind="stable")
    last = np.append(np.diff(abnormality[order]) != 0, True)  # of documents with equal scores
    flags = abnormal[order]
    true, false = np.cumsum(flags)[last], np.cumsum(~flags)[last]
    return true.astype(np.float64), false.astype(np.float64)


def ranking_estimates(
    abnormality: Array, abnormal: Flags, *, block: int = BLOCK
) -> dict[str, Estimate]:
    """Return average precision, ROC AUC and best accuracy with chance levels and intervals."""
    share = float(abnormal.mean())
    values = {
        "average_precision": (average_precision(abnormality, abnormal), share),
        "roc_auc": (roc_auc(abnormality, abnormal), 0.5),
        "best_accuracy": (best_accuracy(abnormality, abnormal), max(share, 1 - share)),
    }
    intervals = bootstrap(ranking_figures(abnormality, abnormal), abnormal, block=block)
    return {
        name: Estimate(value, chance, *map(float, interval))
        for (name, (value, chance)), interval in zip(values.items(), intervals, strict=True)
    }


def decision_estimates(decided: Flags, abnormal: Flags) -> dict[str, Estimate]:
    """Return precision and recall of one set of decisions; no precision if none is positive."""
    check_both(abnormal)

    def figures(weights: Array) -> Array:
        hits: Array = weights @ (decided & abnormal)
        raised: Array = weights @ decided
        with np.errstate(invalid="ignore"):
            return np.stack([hits / raised, hits / (weights @ abnormal)])

    precision, recall = figures(np.ones((1, len(abnormal))))[:, 0]
    of_precision, of_recall = bootstrap(figures, abnormal)
    estimates = {"recall": Estimate(float(recall), float(decided.mean()), *map(float, of_recall))}
    if not decided.any():
        return estimates
    chance = float(abnormal.mean())
    return {"precision": Estimate(float(precision), chance, *map(float, of_precision)), **estimates}


WeightedFigures = Callable[[Array], Array]
"""Function from how often each document was drawn, draws x documents, to figures x draws."""


def ranking_figures(abnormality: Array, abnormal: Flags) -> WeightedFigures:
    """Return a function that gives average precision, ROC AUC and best accuracy of weighted draws.

    Each row of its result equals scikit-learn's figure with `sample_weight`.
    """
    order = np.argsort(-abnormality, kind="stable")
    last = np.append(np.diff(abnormality[order]) != 0, True)  # of documents with equal scores
    flags = abnormal[order]

    def figures(weights: Array) -> Array:
        in_order = weights[:, order]
        true = np.cumsum(in_order * flags, axis=1)[:, last]
        false = np.cumsum(in_order * ~flags, axis=1)[:, last]
        found, passed = (np.diff(each, axis=1, prepend=0.0) for each in (true, false))
        n_true, n_false = true[:, -1], false[:, -1]
        precision = true / np.maximum(true + false, 1e-300)
        correct = n_false + np.maximum((true - false).max(axis=1), 0.0)
        return np.stack(
            [
                (found * precision).sum(axis=1) / n_true,
                (passed * (true - found / 2)).sum(axis=1) / (n_true * n_false),
                correct / (n_true + n_false),
            ]
        )

    return figures


def bootstrap(
    figures: WeightedFigures,
    abnormal: Flags,
    *,
    block: int = BLOCK,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Array:
    """Return 90 % intervals by the block bootstrap over documents, figures x 2.

    `block` consecutive documents are drawn together, since neighbours are alike. Draws without
    abnormal or without normal documents, or in which a figure is undefined, do not count; NaN if
    none does.
    """
    values = np.concatenate(
        [figures(weights) for weights in _drawn_weights(abnormal, block, n_draws, seed)], axis=1
    )
    defined = [draws[np.isfinite(draws)] for draws in values]
    none = np.full(2, np.nan)
    return np.array([np.quantile(draws, [0.05, 0.95]) if len(draws) else none for draws in defined])


def _drawn_weights(abnormal: Flags, block: int, n_draws: int, seed: int) -> Iterator[Array]:
    """Yield how often each draw has each document, draws x documents, in batches."""
    rng, n = np.random.default_rng(seed), len(abnormal)
    block = max(1, min(block, n // 4))
    steps = np.arange(block)
    batch = max(1, BATCH // n)
    for start in range(0, n_draws, batch):
        weights = np.zeros((min(batch, n_draws - start), n))
        for row in weights:
            starts = rng.integers(0, n, -(-n // block))
            row += np.bincount(((starts[:, None] + steps) % n).reshape(-1)[:n], minlength=n)
        n_abnormal = weights @ abnormal
        yield weights[(n_abnormal > 0) & (n_abnormal < n)]
