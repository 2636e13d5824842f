import numpy as np
import pytest

from habitus import HabitusError, Prior
from habitus.lab.recovery import measure_recovery
from habitus.model import Sizes, draw_parameters


def drawn(sizes, seed):
    return draw_parameters(Prior(alpha=0.5, beta=0.1), Sizes(*sizes), np.random.default_rng(seed))


def test_a_relabelled_model_is_the_same_model():
    truth = drawn((50, 6, 4), 0)
    topics, behaviours = np.array([5, 0, 3, 1, 4, 2]), np.array([2, 0, 3, 1])
    found = measure_recovery(truth, truth.relabelled(topics, behaviours))
    assert np.array_equal(behaviours[found.behaviours], np.arange(4))
    assert found.behaviour_distance == pytest.approx(0, abs=1e-15)
    assert found.transition_distance == pytest.approx(0, abs=1e-15)


def test_distances_are_total_variation():
    truth = drawn((50, 4, 1), 0)
    other = drawn((50, 4, 1), 1)
    p, q = truth.word_given_behaviour[:, 0], other.word_given_behaviour[:, 0]
    expected = np.maximum(p - q, 0).sum()
    assert measure_recovery(truth, other).behaviour_distance == pytest.approx(expected, rel=1e-12)


def test_models_of_different_sizes_raise_an_error():
    with pytest.raises(HabitusError, match="same words and behaviours"):
        measure_recovery(drawn((50, 4, 2), 0), drawn((50, 4, 3), 0))
