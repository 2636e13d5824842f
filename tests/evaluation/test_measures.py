"""Figures against scikit-learn and against every threshold tried by hand."""

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
    Scored,
    area,
    best_accuracy,
    bootstrap,
    check_both,
    precision_recall,
    roc,
    roc_area,
)


def drawn(seed, n=80, ties=False):
    rng = np.random.default_rng(seed)
    abnormal = rng.random(n) < rng.uniform(0.05, 0.9)
    abnormal[:2] = True, False
    scores = rng.standard_normal(n) + rng.uniform(-1, 2) * abnormal
    return (np.round(scores) if ties else scores), abnormal


@pytest.mark.parametrize("ties", [False, True])
def test_areas_are_scikit_learns(ties):
    for seed in range(40):
        scores, abnormal = drawn(seed, ties=ties)
        expected = average_precision_score(abnormal, scores)
        assert area(scores, abnormal) == pytest.approx(expected, rel=1e-12)
        expected = roc_auc_score(abnormal, scores)
        assert roc_area(scores, abnormal) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_best_accuracy_is_that_of_the_best_threshold(ties):
    for seed in range(40):
        scores, abnormal = drawn(seed, ties=ties)
        thresholds = [-np.inf, np.inf, *scores]
        expected = max(((scores >= level) == abnormal).mean() for level in thresholds)
        assert best_accuracy(scores, abnormal) == pytest.approx(expected, rel=1e-12)


def test_chance_levels_are_what_useless_scores_give():
    rng = np.random.default_rng(0)
    abnormal = rng.random(4000) < 0.2
    useless = rng.standard_normal(4000)
    assert area(useless, abnormal) == pytest.approx(abnormal.mean(), abs=0.02)
    assert roc_area(useless, abnormal) == pytest.approx(0.5, abs=0.03)
    assert best_accuracy(useless, abnormal) == pytest.approx(1 - abnormal.mean(), abs=0.005)


@pytest.mark.parametrize("ties", [False, True])
def test_curves_are_scikit_learns(ties):
    for seed in range(20):
        scores, abnormal = drawn(seed, ties=ties)
        precision, recall, _ = precision_recall_curve(abnormal, scores)
        found = precision_recall(scores, abnormal)
        assert found.x == pytest.approx(recall, rel=1e-12)
        assert found.y == pytest.approx(precision, rel=1e-12)
        false, true, _ = roc_curve(abnormal, scores, drop_intermediate=False)
        found = roc(scores, abnormal)
        assert found.x == pytest.approx(false, rel=1e-12)
        assert found.y == pytest.approx(true, rel=1e-12)


def test_documents_that_were_not_judged_are_the_most_normal():
    normality = np.array([-3.0, 0.0, -1.0, 0.0])
    judged = np.array([True, False, True, False])
    scored = Scored(normality, judged, np.arange(4.0), 1.0)
    assert scored.abnormality.tolist() == [3.0, 1.0, 1.0, 1.0]
    assert scored.below(-0.5).tolist() == [True, False, True, False]
    none = scored._replace(judged=np.zeros(4, dtype=bool))
    assert none.abnormality.tolist() == [0.0] * 4


def test_the_bootstrap_repeats_itself_and_holds_the_truth_as_often_as_it_says():
    scores, abnormal = drawn(1, n=300)
    first = bootstrap(area, scores, abnormal)
    assert first == bootstrap(area, scores, abnormal)
    assert first != bootstrap(area, scores, abnormal, seed=1)
    assert first[0] < area(scores, abnormal) < first[1]
    rng, held = np.random.default_rng(5), 0
    for _ in range(100):  # independent documents: the law of the mean is known
        values = rng.random(200) < 0.5
        low, high = bootstrap(lambda s, a: s.mean(), values.astype(float), values, n_draws=100)
        held += low <= 0.5 <= high
    assert 78 <= held <= 98


def test_blocks_widen_the_interval_where_neighbours_are_alike():
    rng = np.random.default_rng(2)
    level = np.repeat(rng.standard_normal(20), 30)
    abnormal = np.arange(600) % 2 == 0
    alone, together = (
        np.diff(bootstrap(lambda s, a: s.mean(), level, abnormal, block=block))[0]
        for block in (1, 30)
    )
    assert together > 3 * alone


@pytest.mark.parametrize(
    ("flag", "message"), [(False, "no document abnormal"), (True, "every document abnormal")]
)
def test_a_truth_of_one_kind_tells_nothing(flag, message):
    truth = np.full(5, flag)
    for figure in (area, roc_area):
        with pytest.raises(InvalidInputError, match=message):
            figure(np.arange(5.0), truth)
    with pytest.raises(InvalidInputError, match=message):
        check_both(truth)
