"""Learning from generated documents recovers the parameters that generated them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from habitus import MarkovClusteringTopicModel
from habitus.model import learning as restarts
from habitus.model.generate import generate
from habitus.model.parameters import Assignments, DirichletPosterior, Parameters, Sizes
from reference.corpora import random_parameters, random_posterior
from reference.small_runs import LEARNERS, fingerprint, small_corpus, small_fit


def block_topics(n_words, n_topics, rng):
    """Topics that overlap little: each has most of its mass on words of its own."""
    phi = np.full((n_words, n_topics), 0.02 / n_words)
    for y, own in enumerate(np.array_split(np.arange(n_words), n_topics)):
        phi[own, y] += rng.dirichlet(np.full(len(own), 3.0)) * 0.98
    return phi / phi.sum(axis=0)


def known_model(n_topics):
    """Four behaviours that last some documents each, over topics that can be told apart."""
    rng = np.random.default_rng(1)
    n_words, n_behaviours = 60, 4
    if n_topics == 3:
        theta = np.array([[0.8, 0.1, 0.1, 0.4], [0.1, 0.8, 0.1, 0.5], [0.1, 0.1, 0.8, 0.1]])
    else:
        theta = 0.02 + np.kron(np.eye(3, 4), [[0.6], [0.3]])  # two topics for each of three
    theta /= theta.sum(axis=0)
    xi = np.full((n_behaviours, n_behaviours), 0.03)
    xi[np.arange(4), np.arange(4)] = 0.8
    xi[(np.arange(4) + 1) % 4, np.arange(4)] = 0.14
    return Parameters(block_topics(n_words, n_topics, rng), theta, np.full(4, 0.25), xi)


def learner(learning, **changes):
    sweeps = {"burn_in": 120, "n_samples": 1, "n_iterations": 150}
    return MarkovClusteringTopicModel(learning=learning, random_state=0, **sweeps | changes)


def behaviours_matched(true_path, path, n_behaviours):
    """For each true behaviour the one found in most of its documents, one to one."""
    table = np.zeros((n_behaviours, n_behaviours))
    np.add.at(table, (true_path, path), 1)
    return linear_sum_assignment(-table)[1]


@pytest.mark.parametrize("learning", LEARNERS)
@pytest.mark.parametrize("n_topics", [3, 6])
def test_learning_recovers_the_model_up_to_relabelling(learning, n_topics):
    truth = known_model(n_topics)
    rng = np.random.default_rng(2)
    corpus, hidden = generate(truth, np.full(600, 120), rng, lengths=[360, 240])
    model = learner(learning, n_topics=n_topics, n_behaviours=4, n_restarts=3).fit(corpus)
    order = behaviours_matched(hidden.behaviours, model.predict(corpus), 4)
    found = model.parameters_.relabelled(np.arange(n_topics), order)
    assert (np.argsort(order)[model.predict(corpus)] == hidden.behaviours).mean() > 0.99
    np.testing.assert_allclose(
        found.word_given_behaviour, truth.word_given_behaviour, rtol=0, atol=0.01
    )
    # Frequencies of the generated transitions, about 150 per behaviour: 0.03 off the parameters.
    added = 1 if learning == "em" else 2  # gamma - 1 for the mode, gamma for the mean
    expected = steps(hidden.behaviours, [360]) + added
    np.testing.assert_allclose(found.xi, expected / expected.sum(axis=0), rtol=0, atol=0.03)


def steps(path, openings):
    """Return the number of transitions to each behaviour from each."""
    counts = np.zeros((4, 4))
    later = np.setdiff1d(np.arange(1, len(path)), openings)
    np.add.at(counts, (path[later], path[later - 1]), 1)
    return counts


@pytest.mark.parametrize("learning", LEARNERS)
def test_learning_recovers_topics_fewer_than_behaviours(learning):
    """With three topics under four behaviours, phi and theta themselves are determined."""
    truth = known_model(3)
    corpus, hidden = generate(truth, np.full(600, 120), np.random.default_rng(3))
    model = learner(learning, n_topics=3, n_behaviours=4, n_restarts=3).fit(corpus)
    behaviours = behaviours_matched(hidden.behaviours, model.predict(corpus), 4)
    overlap = truth.phi.T @ model.parameters_.phi
    topics = linear_sum_assignment(-overlap)[1]
    found = model.parameters_.relabelled(topics, behaviours)
    # Topics overlap a little, so that mixing them a little costs next to no likelihood.
    np.testing.assert_allclose(found.phi, truth.phi, rtol=0, atol=0.03)
    np.testing.assert_allclose(found.theta, truth.theta, rtol=0, atol=0.15)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("prior", ["1", "H", "H+1"])
@pytest.mark.parametrize("learning", ["em", "vb"])
def test_relabelling_commutes_with_learning(learning, prior, seed):
    """A relabelled start gives the same result, relabelled."""
    sizes = Sizes(n_words=15, n_topics=4, n_behaviours=3)
    rng = np.random.default_rng(seed)
    corpus, _ = generate(random_parameters(sizes, seed), np.full(50, 40), rng, lengths=[30, 20])
    topics, behaviours = rng.permutation(4), rng.permutation(3)

    def fitted(start):
        return learner(
            learning,
            n_topics=4,
            n_behaviours=3,
            n_iterations=40,
            prior=prior,
            init=start,
            min_words=0,
        ).fit(corpus)

    if learning == "em":
        start = random_parameters(sizes, seed + 10)
        renamed = start.relabelled(topics, behaviours)
    else:
        start = random_posterior(sizes, seed + 10)
        renamed = DirichletPosterior(*Parameters(*start).relabelled(topics, behaviours))
    one, other = fitted(start), fitted(renamed)
    for ours, theirs in zip(
        one.parameters_.relabelled(topics, behaviours), other.parameters_, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.objective_, other.objective_, rtol=1e-11)


def assert_identical(one, other):
    for ours, theirs in zip(one.parameters_, other.parameters_, strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(one.objective_, other.objective_)
    assert np.array_equal(one.restarts_, other.restarts_)


@pytest.mark.parametrize("learning", LEARNERS)
def test_bit_identical_whatever_the_number_of_jobs_and_from_run_to_run(learning, monkeypatch):
    monkeypatch.setattr(restarts, "WORTH_A_THREAD", 0)
    alone = small_fit(learning, n_jobs=1)
    assert len(set(alone.restarts_)) > 1  # otherwise the order of the restarts would not matter
    for n_jobs in (1, 2, 4):
        assert_identical(alone, small_fit(learning, n_jobs=n_jobs))


def test_bit_identical_in_another_process():
    program = "from reference.small_runs import fingerprint; print(fingerprint())"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == fingerprint()


def test_collapsed_sampler_continues_from_its_last_assignments():
    """The final assignments of a run are a start for another."""
    first = small_fit("gibbs")
    again = learner("gibbs", n_topics=3, n_behaviours=3, burn_in=1, init=first.assignments_)
    again.fit(small_corpus())
    assert isinstance(again.assignments_, Assignments)
    assert abs(again.objective_[0] - first.objective_[-1]) < 0.05 * abs(first.objective_[-1])
