"""The recommended model, its evidence in words, and one call for all of it."""

import json

import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.lab.tuning.advice import (
    Hyperparameters,
    Tuning,
    edge_note,
    recall_in_words,
    tune_model,
)
from habitus.lab.tuning.recall import FoundShare, RecallEstimate
from habitus.lab.tuning.selection import Candidate, Prediction, SelectionRuns, choose, grid
from habitus.model import MarkovClusteringTopicModel, Prior
from habitus.model.hyperparameters import HyperparameterFit
from reference.traffic import traffic


def choice():
    rng = np.random.default_rng(0)
    candidates = grid([4, 8], [2, 3, 4])
    n_tokens = np.full(20, 500.0)
    found = [
        Prediction(n_tokens * (-7 - 0.1 * (4 - c.n_behaviours)) + rng.normal(0, 60, 20), n_tokens)
        for c in candidates
    ]
    return choose(candidates, found, 100)


def tuning(gain):
    prior = Prior(alpha=2, beta=3, gamma=4)
    fit = HyperparameterFit(prior, MarkovClusteringTopicModel(), np.zeros((1, 2)), {})
    found = choice()
    return Tuning(found, Hyperparameters(fit, found.predictions[0], gain, 0.01), None, [])


def test_fitted_hyperparameters_are_recommended_if_they_gain_more_than_an_error():
    size = choice().candidate
    assert tuning(gain=0.0).recommended == size
    assert tuning(gain=0.01).recommended == size
    assert tuning(gain=0.02).recommended == Candidate(
        size.n_topics, size.n_behaviours, "vb", "alpha=2,beta=3,gamma=4,eta=1"
    )


def test_recall_in_words_counts_anomalies_of_usual_size():
    shares = [
        FoundShare("wrong way", s, 5.0, n, 40, 0) for s, n in ((0.5, 4), (1.0, 21), (2.0, 40))
    ]
    shares += [FoundShare("out of turn", strength, 5.0, 0, 0, 0) for strength in (0.5, 1.0, 2.0)]
    shares += [FoundShare("out of order", None, 5.0, 0, 40, 0)]
    assert recall_in_words(RecallEstimate(shares, 99, 80.0), 5.0) == (
        "at 5 alerts per day this camera would find 5 of 10 wrong-way drivers and 0 of 10 times "
        "that the whole scene is out of order"
    )
    none = RecallEstimate([FoundShare("out of turn", 1.0, 5.0, 0, 0, 0)], 99, 80.0)
    assert recall_in_words(none, 5.0) == "no synthetic anomaly could be made from this footage"


def test_a_best_size_at_the_edge_of_the_grid_has_a_note():
    found = choice()
    assert found.candidates[found.best].n_behaviours == 4
    assert "try 4, 6 and 8 behaviours" in edge_note(found)
    inside = choose(found.candidates[:4], found.predictions[:2] * 2, 100)
    assert inside.candidates[inside.best].n_behaviours == 2
    assert edge_note(inside) is None


@pytest.fixture(scope="module")
def footage():
    return traffic(240)


def test_one_call_chooses_and_estimates_with_every_stage_reported(footage):
    told = []
    found = tune_model(
        footage,
        SelectionRuns(n_restarts=1, progress=told.append),
        topics=[2],
        behaviours=[2, 3],
        n_trials=3,
    )
    assert list(dict.fromkeys(each.stage for each in told)) == [
        "comparing sizes",
        "fitting hyperparameters",
        "learning",
        "calibrating",
        "learning habits",
        "estimating recall",
    ]
    assert found.hyperparameters is not None
    assert {share.alerts_per_day for share in found.recall.shares} == {5.0, 24.0, 480.0}
    values = json.loads(json.dumps(found.to_json(), allow_nan=False))
    best = [size for size in values["sizes"] if size["shortfall_per_word"] == 0]
    assert [size["behaviours"] for size in best] == [values["best"]["behaviours"]]


def test_parts_may_be_left_out_and_recall_that_is_impossible_has_a_note(footage):
    options = {"runs": SelectionRuns(n_restarts=1), "topics": [2], "behaviours": [2]}
    found = tune_model(footage, hyperparameters=False, n_trials=0, **options)
    assert found[1:] == (None, None, [], len(footage))
    still = footage.take(np.arange(len(footage)))
    object.__setattr__(still, "vocabulary", None)
    found = tune_model(still, hyperparameters=False, n_trials=1, **options)
    assert found.recall is None
    assert found.notes[-1].startswith("no recall: this corpus has no vocabulary")


@pytest.mark.parametrize("changed", [{"alerts_per_day": 0}, {"n_trials": -1}, {"n_restarts": 0}])
def test_arguments_out_of_range_are_refused(footage, changed):
    changed = dict(changed)
    (name,) = changed
    with pytest.raises(
        InvalidInputError, match=f"{name} must be (above 0, found 0|0 or more)"
    ) as raised:
        tune_model(footage, SelectionRuns(changed.pop("n_restarts", 3)), **changed)
    assert raised.value.parameter == name
