"""Top words, the transition graph and data frames of a learnt model."""

import builtins
import sys

import numpy as np
import pandas as pd
import pytest

from habitus import Corpus, MarkovClusteringTopicModel, Vocabulary
from habitus.errors import HabitusError, MissingPackageError
from habitus.model.inspection import top_words, transition_graph
from habitus.model.parameters import Sizes
from reference.corpora import random_parameters

SIZES = Sizes(12, 3, 4)


@pytest.fixture(scope="module")
def model():
    vocabulary = Vocabulary(1, 3, speeds=2)
    counts = np.random.default_rng(0).poisson(2, (20, vocabulary.n_words))
    settings = {"min_words": 0, "n_iterations": 5, "random_state": 0}
    return MarkovClusteringTopicModel(3, 2, **settings).fit(Corpus(counts, vocabulary=vocabulary))


@pytest.mark.parametrize("of", ["topics", "behaviours"])
def test_top_words_are_the_most_probable_ones_in_order(of):
    parameters = random_parameters(SIZES, 1)
    distributions = parameters.phi if of == "topics" else parameters.phi @ parameters.theta
    found = top_words(parameters, 5, of=of)
    assert found.words.shape == found.probabilities.shape == (distributions.shape[1], 5)
    for column, words, probabilities in zip(distributions.T, *found, strict=True):
        np.testing.assert_array_equal(probabilities, np.sort(column)[::-1][:5])
        np.testing.assert_array_equal(column[words], probabilities)


def test_equally_probable_words_are_in_the_order_of_their_ids():
    parameters = random_parameters(SIZES, 1)._replace(phi=np.full((12, 3), 1 / 12))
    assert top_words(parameters, 4).words.tolist() == [[0, 1, 2, 3]] * 3


def test_transition_graph_agrees_with_a_long_path():
    xi = np.array([[0.9, 0.0, 0.3], [0.1, 0.5, 0.0], [0.0, 0.5, 0.7]])
    graph = transition_graph(xi)
    assert graph.probabilities is xi
    np.testing.assert_allclose(graph.expected_durations, [10, 2, 1 / 0.3], rtol=1e-12)
    long_run = np.linalg.matrix_power(xi, 500)[:, 0]
    np.testing.assert_allclose(graph.long_run_shares, long_run, rtol=1e-10)
    assert [[s.behaviour for s in after] for after in graph.successors] == [[1], [2], [0]]
    assert all(after[0].probability == 1 for after in graph.successors)


def test_a_behaviour_that_is_never_left_has_no_successor():
    graph = transition_graph(np.array([[1.0, 0.2], [0.0, 0.8]]))
    assert graph.successors[0] == ()
    assert graph.expected_durations[0] == np.inf


def test_data_frames_hold_the_distributions_with_words_described(model):
    topics, behaviours = model.to_dataframe(), model.to_dataframe("behaviours")
    assert isinstance(topics, pd.DataFrame)
    np.testing.assert_array_equal(topics.to_numpy(), model.parameters_.phi)
    np.testing.assert_array_equal(
        behaviours.to_numpy(), model.parameters_.phi @ model.parameters_.theta
    )
    assert (topics.columns.name, behaviours.columns.name) == ("topic", "behaviour")
    assert topics.index.names == ["word", "row", "column", "direction", "speed"]
    for word, row, column, direction, speed in topics.index:
        place = model.vocabulary_.places([word])
        assert (row, column) == (place.rows[0], place.columns[0])
        assert direction == ["up", "left", "down", "right"][place.directions[0]]
        assert speed == ["slow", "fast"][place.speeds[0]]


def test_data_frames_of_mixtures_and_transitions(model):
    mixtures, transitions = model.to_dataframe("mixtures"), model.to_dataframe("transitions")
    np.testing.assert_array_equal(mixtures.to_numpy(), model.parameters_.theta)
    np.testing.assert_array_equal(transitions.to_numpy(), model.parameters_.xi)
    assert (mixtures.index.name, mixtures.columns.name) == ("topic", "behaviour")
    assert (transitions.index.name, transitions.columns.name) == ("next_behaviour", "behaviour")
    with pytest.raises(HabitusError, match=r"of must be one of 'topics', .* found 'words'"):
        model.to_dataframe("words")


def test_without_a_vocabulary_words_are_numbers():
    settings = {"min_words": 0, "n_iterations": 2, "random_state": 0}
    model = MarkovClusteringTopicModel(2, 2, **settings).fit(np.full((5, 3), 4))
    frame = model.to_dataframe()
    assert frame.index.name == "word"
    assert frame.index.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_dataframe"), ("arviz", "to_arviz")])
def test_a_missing_package_is_named(package, method, monkeypatch):
    settings = {"learning": "gibbs", "burn_in": 1, "n_samples": 1, "min_words": 0}
    model = MarkovClusteringTopicModel(2, 2, random_state=0, **settings).fit(np.full((5, 3), 4))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=f"needs {package}") as caught:
        getattr(model, method)()
    assert isinstance(caught.value, HabitusError)
    assert isinstance(caught.value, builtins.ImportError)
