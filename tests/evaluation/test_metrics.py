"""Figures of a ranking against scikit-learn, and against every threshold in a plain loop."""

from time import process_time

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from habitus.errors import InvalidInputError
from habitus.evaluation.metrics import (
    BLOCK,
    ScoredDocuments,
    average_precision,
    best_accuracy,
    bootstrap,
    check_both,
    decision_estimates,
    precision_recall,
    ranking_estimates,
    ranking_figures,
    roc,
    roc_auc,
)


def drawn(seed, n=80, ties=False):
    """Return random scores, higher for abnormal documents, and which documents are abnormal."""
    rng = np.random.default_rng(seed)
    abnormal = rng.random(n) < rng.uniform(0.05, 0.9)
    abnormal[:2] = True, False
    scores = rng.standard_normal(n) + rng.uniform(-1, 2) * abnormal
    return (np.round(scores) if ties else scores), abnormal


def best_by_trying(scores, abnormal):
    thresholds = [-np.inf, np.inf, *scores]
    return max(((scores >= level) == abnormal).mean() for level in thresholds)


@pytest.mark.parametrize("ties", [False, True])
def test_figures_are_those_of_scikit_learn(ties):
    for seed in range(40):
        scores, abnormal = drawn(seed, ties=ties)
        assert average_precision(scores, abnormal) == average_precision_score(abnormal, scores)
        expected = roc_auc_score(abnormal, scores)
        assert roc_auc(scores, abnormal) == pytest.approx(expected, rel=1e-14)
        expected = best_by_trying(scores, abnormal)
        assert best_accuracy(scores, abnormal) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_weighted_figures_are_those_of_the_documents_repeated(ties):
    """The bootstrap's formula against scikit-learn on each draw, written out."""
    rng = np.random.default_rng(9)
    for seed in range(10):
        scores, abnormal = drawn(seed, ties=ties)
        weights = rng.poisson(1.0, (8, len(scores))).astype(float)
        weights[:, :2] = 1
        figures = ranking_figures(scores, abnormal)(weights)
        for draw, found in zip(weights.astype(int), figures.T, strict=True):
            s, a = np.repeat(scores, draw), np.repeat(abnormal, draw)
            expected = average_precision_score(a, s), roc_auc_score(a, s), best_by_trying(s, a)
            assert found == pytest.approx(expected, rel=1e-12)


def test_chance_levels_are_what_useless_scores_give():
    rng = np.random.default_rng(0)
    abnormal = rng.random(4000) < 0.2
    useless = rng.standard_normal(4000)
    found = ranking_estimates(useless, abnormal)
    assert list(found) == ["average_precision", "roc_auc", "best_accuracy"]
    for name, tolerance in zip(found, (0.02, 0.03, 0.005), strict=True):
        assert found[name].value == pytest.approx(found[name].chance, abs=tolerance)


@pytest.mark.parametrize("ties", [False, True])
def test_curves_are_those_of_scikit_learn(ties):
    for seed in range(20):
        scores, abnormal = drawn(seed, ties=ties)
        precision, recall, _ = precision_recall_curve(abnormal, scores)
        found = precision_recall(scores, abnormal)
        assert np.array_equal(found.x, recall)
        assert np.array_equal(found.y, precision)
        false_rate, true_rate, _ = roc_curve(abnormal, scores, drop_intermediate=False)
        found = roc(scores, abnormal)
        assert np.array_equal(found.x, false_rate)
        assert np.array_equal(found.y, true_rate)


def test_documents_that_were_not_judged_are_the_most_normal():
    normality = np.array([-3.0, 0.0, -1.0, 0.0])
    judged = np.array([True, False, True, False])
    scored = ScoredDocuments(normality, judged, np.arange(4.0), 1.0)
    assert scored.abnormality.tolist() == [3.0, 1.0, 1.0, 1.0]
    assert scored.below(-0.5).tolist() == [True, False, True, False]
    none = scored._replace(judged=np.zeros(4, dtype=bool))
    assert none.abnormality.tolist() == [0.0] * 4


def mean_of(values):
    """Return the weighted mean of values as a figure of the bootstrap."""
    return lambda weights: (weights @ values / weights.sum(axis=1))[None]


def test_intervals_are_quantiles_over_draws_of_whole_blocks():
    """Draw by draw with scikit-learn, as the documentation of `bootstrap` says."""
    scores, abnormal = drawn(1, n=300)
    rng, values = np.random.default_rng(0), []
    for _ in range(50):
        starts = rng.integers(0, 300, 10)
        documents = np.concatenate([(np.arange(s, s + BLOCK)) % 300 for s in starts])
        values.append(average_precision_score(abnormal[documents], scores[documents]))
    found = bootstrap(ranking_figures(scores, abnormal), abnormal, n_draws=50)
    assert found[0] == pytest.approx(np.quantile(values, [0.05, 0.95]), rel=1e-12)


def test_batches_do_not_change_the_intervals(monkeypatch):
    scores, abnormal = drawn(1, n=300)
    figures = ranking_figures(scores, abnormal)
    whole = bootstrap(figures, abnormal)
    monkeypatch.setattr("habitus.evaluation.metrics.BATCH", 7 * 300)
    assert np.array_equal(bootstrap(figures, abnormal), whole)
    assert not np.array_equal(bootstrap(figures, abnormal, seed=1), whole)


def test_intervals_cover_the_truth_nine_times_out_of_ten():
    rng, covered = np.random.default_rng(5), 0
    for _ in range(100):  # independent documents: the distribution of the mean is known
        values = rng.random(200) < 0.5
        ((low, high),) = bootstrap(mean_of(values), values, n_draws=100)
        covered += low <= 0.5 <= high
    assert 78 <= covered <= 98


def test_blocks_widen_the_interval_where_neighbours_are_alike():
    rng = np.random.default_rng(2)
    level = np.repeat(rng.standard_normal(20), 30)
    abnormal = np.arange(600) % 2 == 0
    alone, together = (
        np.diff(bootstrap(mean_of(level), abnormal, block=block)[0])[0] for block in (1, 30)
    )
    assert together > 3 * alone


def test_the_intervals_of_a_long_video_take_little_time():
    """500 draws of three figures on 45 minutes: 4 s by one call of scikit-learn per draw."""
    scores, abnormal = drawn(3, n=2700)
    began = process_time()
    ranking_estimates(scores, abnormal)
    assert process_time() - began < 2.0


def test_decisions_without_a_positive_have_no_precision():
    abnormal = np.array([True, False] * 20)
    found = decision_estimates(np.zeros(40, dtype=bool), abnormal)
    assert list(found) == ["recall"]
    assert found["recall"] == (0.0, 0.0, 0.0, 0.0)
    found = decision_estimates(np.arange(40) < 4, abnormal)
    assert list(found) == ["precision", "recall"]
    assert (found["precision"].value, found["recall"].value) == (0.5, 0.1)


@pytest.mark.parametrize(
    ("flag", "message"), [(False, "no document abnormal"), (True, "every document abnormal")]
)
def test_labels_of_one_class_are_refused(flag, message):
    labels = np.full(5, flag)
    for figure in (average_precision, roc_auc, best_accuracy):
        with pytest.raises(InvalidInputError, match=message):
            figure(np.arange(5.0), labels)
    with pytest.raises(InvalidInputError, match=message):
        check_both(labels)
