"""Summaries in numbers."""

import json

import numpy as np
import pytest

from habitus import MarkovClusteringTopicModel, Parameters
from habitus.reporting.summaries import summarise_model


def model_with(xi):
    n = len(xi)
    model = MarkovClusteringTopicModel(2, n, n_iterations=1, random_state=0)
    model.fit(np.random.default_rng(0).poisson(9, (8, 5)))
    theta = np.array([[0.3] * n, [0.7] * n])
    model.parameters_ = Parameters(np.full((5, 2), 0.2), theta, np.full(n, 1 / n), np.array(xi))
    return model


def test_durations_shares_successors_and_topics():
    summary = summarise_model(model_with([[0.5, 0.2, 0.1], [0.4, 0.8, 0.0], [0.1, 0.0, 0.9]]))
    first = summary.behaviours[0]
    assert first.duration == pytest.approx(2, rel=1e-12)
    assert [(s.number, round(s.probability, 12)) for s in first.successors] == [(2, 0.8), (3, 0.2)]
    assert [(t.number, t.probability) for t in first.topics] == [(2, 0.7), (1, 0.3)]
    shares = [behaviour.share for behaviour in summary.behaviours]
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.25], rtol=1e-12)
    json.dumps(summary.to_json(), allow_nan=False)


def test_a_behaviour_that_never_ends():
    summary = summarise_model(model_with([[1.0, 0.5], [0.0, 0.5]]))
    assert summary.behaviours[0].duration is None
    assert summary.behaviours[0].successors == []
    assert summary.behaviours[0].share == pytest.approx(1, rel=1e-12)
    json.dumps(summary.to_json(), allow_nan=False)


def test_a_cycle_without_rest():
    summary = summarise_model(model_with([[0.0, 1.0], [1.0, 0.0]]))
    assert [b.share for b in summary.behaviours] == pytest.approx([0.5, 0.5], rel=1e-12)
