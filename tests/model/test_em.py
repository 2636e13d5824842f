"""EM: the published M-step, an objective that never falls, agreement with hmmlearn."""

import warnings
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hmmlearn.hmm import MultinomialHMM
from scipy.special import gammaln

from habitus import MarkovClusteringTopicModel
from habitus.corpus.documents import Corpus
from habitus.errors import DegenerateWarning, LearningError
from habitus.model import em
from habitus.model.expected_counts import ExpectedCounts, gather
from habitus.model.parameters import PAPER, Parameters, Prior, Sizes, block_shapes
from reference import log_space
from reference.corpora import TINY, random_parameters, uneven_prior

SIZES = Sizes(n_words=40, n_topics=5, n_behaviours=3)
EPS = np.finfo(float).eps


def corpus_of(sizes, seed, *, n_documents=60, n_tokens=50, concentration=0.2):
    """Documents that change their behaviour now and then, in three sequences, one of them empty."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(sizes.n_words, concentration), sizes.n_topics)
    theta = rng.dirichlet(np.ones(sizes.n_topics), sizes.n_behaviours)
    behaviours = np.repeat(rng.integers(sizes.n_behaviours, size=n_documents // 4), 4)
    counts = np.stack([rng.multinomial(n_tokens, theta[z] @ phi) for z in behaviours])
    counts[7] = 0
    return Corpus(counts, lengths=[n_documents // 2, 1, n_documents // 2 - 1])


def printed_mode(hyperparameter, counts):
    """(h + n - 1)_+ over its column sum, Eq. (6) to (9), in extended precision."""
    exponents = np.asarray(hyperparameter, np.longdouble) - 1
    mass = np.maximum(exponents + np.asarray(counts, np.longdouble), 0)
    return (mass / mass.sum(axis=0)).astype(float)


def copied(counts):
    """Return a copy: the M-step works in place."""
    return ExpectedCounts(*(block.copy() for block in counts))


@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_m_step_equals_the_printed_equations(name):
    rng = np.random.default_rng(1)
    prior = uneven_prior(SIZES) if name == "uneven" else PAPER[name].concentrations(SIZES)
    counts = [rng.exponential(3.0, shape) for shape in block_shapes(SIZES)]
    found, _ = em.maximise(copied(counts), prior, smoothing=0.0)
    for block, h, n in zip(found, prior, counts, strict=True):
        np.testing.assert_allclose(block, printed_mode(h, n), rtol=1e-12, atol=1e-16)
        np.testing.assert_allclose(block.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1e-9, 1e-15, 1e-30, 1e-250])
def test_m_step_keeps_the_digits_of_small_counts(scale):
    """With a hyperparameter of 1 the estimate is n over its sum, however rare the behaviour."""
    rng = np.random.default_rng(2)
    counts = [rng.exponential(3.0, shape) for shape in block_shapes(SIZES)]
    for block in (counts[1], counts[3]):
        block[:, 0] *= scale
    found, _ = em.maximise(copied(counts), PAPER["1"].concentrations(SIZES), smoothing=0.0)
    for block, n in zip(found, counts, strict=True):
        np.testing.assert_allclose(block, n / n.sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-306, 1e-308, 1e-310, 1e-316, 5e-324])
def test_m_step_of_counts_that_underflow_is_a_distribution(scale):
    """A behaviour hundreds of nats less probable everywhere: 1 / total must not overflow."""
    counts = [np.ones(shape) for shape in block_shapes(SIZES)]
    counts[1][:, 0] = counts[3][:, 0] = scale
    found, _ = em.maximise(copied(counts), PAPER["1"].concentrations(SIZES), smoothing=0.0)
    for block in found:
        np.testing.assert_allclose(block, 1 / len(block), rtol=1e-6)


def test_smoothing_adds_and_renormalises_only_where_the_prior_allows_zeros():
    rng = np.random.default_rng(3)
    counts = [rng.exponential(3.0, shape) for shape in block_shapes(SIZES)]
    prior = PAPER["H"].concentrations(SIZES)  # beta, gamma and eta allow zeros, alpha does not
    found, _ = em.maximise(copied(counts), prior, smoothing=0.01)
    for name, block, h, n in zip(Parameters._fields, found, prior, counts, strict=True):
        bare = printed_mode(h, n)
        smoothed = (bare + 0.01) / (bare + 0.01).sum(axis=0)
        np.testing.assert_allclose(block, bare if name == "theta" else smoothed, rtol=1e-12)


@pytest.mark.parametrize("name", [*PAPER, "uneven"])
def test_objective_is_the_log_likelihood_plus_the_log_prior(name):
    tiny = TINY["three topics, three behaviours"]
    prior = uneven_prior(tiny.sizes) if name == "uneven" else PAPER[name].concentrations(tiny.sizes)
    parameters = random_parameters(tiny.sizes, seed=4)
    log_prior = sum(
        float(((np.broadcast_to(h, block.shape) - 1) * np.log(block)).sum())
        for h, block in zip(prior, parameters, strict=True)
    )
    expected = float(log_space.e_step(tiny.evidence, parameters).log_likelihood) + log_prior
    found = em.init([parameters], tiny.evidence, prior)[0].objective
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def climb(start, evidence, prior, smoothing, n_steps):
    """Return a copy of each state of EM: a step reuses the arrays of the state before it."""
    state = em.init([start], evidence, prior)[0]
    states = [deepcopy(state)]
    for _ in range(n_steps):
        state = em.step([state], evidence, prior, smoothing)[0]
        states.append(deepcopy(state))
    return states


def rounding(states):
    """Return the largest decrease of the objective that rounding explains."""
    return 100 * EPS * max(abs(state.objective) for state in states)


@pytest.mark.parametrize("name", ["1", "H+1"])
@pytest.mark.parametrize("seed", range(5))
def test_objective_never_falls_under_the_bare_equations(name, seed):
    evidence = gather(corpus_of(SIZES, seed))
    prior = PAPER[name].concentrations(SIZES)
    states = climb(random_parameters(SIZES, seed), evidence, prior, 0.0, n_steps=150)
    gains = np.diff([state.objective for state in states])
    assert gains.min() >= -rounding(states)
    assert gains[0] > 1


@pytest.mark.parametrize("seed", range(3))
def test_default_smoothing_leaves_prior_h_plus_1_alone(seed):
    """Every hyperparameter is above 1, so smoothing changes nothing."""
    evidence = gather(corpus_of(SIZES, seed))
    prior = PAPER["H+1"].concentrations(SIZES)
    bare, smoothed = (
        climb(random_parameters(SIZES, seed), evidence, prior, s, n_steps=10)[-1]
        for s in (0.0, 5e-6)
    )
    for one, other in zip(bare.parameters, smoothed.parameters, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(5))
def test_objective_never_falls_under_prior_h_while_no_estimate_is_zero(seed):
    sizes = Sizes(n_words=6, n_topics=3, n_behaviours=2)
    evidence = gather(corpus_of(sizes, seed, n_tokens=400, concentration=5.0))
    prior = PAPER["H"].concentrations(sizes)
    start = Parameters(*((b + 1 / len(b)) / 2 for b in random_parameters(sizes, seed)))
    states = climb(start, evidence, prior, 0.0, n_steps=30)
    for state in states:
        assert (state.e_step.counts.phi > 1).all()  # above 1 - beta: the assumption of this test
    gains = np.diff([state.objective for state in states])
    assert gains.min() >= -rounding(states)
    assert gains[0] > 1


def smoothing_allowance(before, after, prior, smoothing):
    """Return how much the objective may fall in a smoothed M-step, as documented.

    A smoothed column loses at most its mass times ln(1 + smoothing * rows). One without mass has
    become uniform: the loss is computed term by term.
    """
    allowance = 0.0
    blocks = zip(prior, before.e_step.counts, before.parameters, after.parameters, strict=True)
    for hyperparameter, counts, old, new in blocks:
        if hyperparameter.min() > 1:
            continue
        rows = len(counts)
        exponents = (hyperparameter + counts - 1).reshape(rows, -1)
        mass = np.maximum(exponents, 0).sum(axis=0)
        allowance += mass.sum() * np.log1p(smoothing * rows)
        empty = np.flatnonzero(mass == 0)
        if empty.size:
            change = np.log(new.reshape(rows, -1)[:, empty] / old.reshape(rows, -1)[:, empty])
            allowance += max(0.0, -float((exponents[:, empty] * change).sum()))
    return allowance


@pytest.mark.parametrize("name", ["1", "H"])
@pytest.mark.parametrize("smoothing", [5e-6, 1e-3])
@pytest.mark.parametrize("seed", range(4))
def test_smoothed_objective_falls_by_no_more_than_documented(name, smoothing, seed):
    evidence = gather(corpus_of(SIZES, seed, n_tokens=25))
    prior = PAPER[name].concentrations(SIZES)
    states = climb(random_parameters(SIZES, seed), evidence, prior, smoothing, n_steps=100)
    # The first step is from a start that is not smoothed: words under the floor may gain.
    for before, after in pairwise(states[1:]):
        allowance = smoothing_allowance(before, after, prior, smoothing)
        gain = after.objective - before.objective
        assert gain >= -allowance - rounding(states)
    assert states[-1].objective > states[1].objective


def test_smoothed_objective_falls_by_no_more_than_documented_when_topics_become_empty():
    sizes = Sizes(n_words=12, n_topics=10, n_behaviours=2)
    rng = np.random.default_rng(5)
    evidence = gather(Corpus(rng.poisson(0.2, (8, 12)) + np.eye(8, 12, dtype=int)))
    prior = PAPER["H"].concentrations(sizes)
    states = climb(random_parameters(sizes, seed=1), evidence, prior, 5e-6, n_steps=60)
    n_empty = 0
    for before, after in pairwise(states[1:]):
        n_empty += int((np.ptp(after.parameters.phi, axis=0) == 0).sum())
        allowance = smoothing_allowance(before, after, prior, 5e-6)
        assert after.objective - before.objective >= -allowance - rounding(states)
    assert n_empty > 0


def rare_words():
    """Each word once or twice: under prior H few estimates survive the first M-step."""
    rng = np.random.default_rng(5)
    return Corpus(rng.poisson(0.1, (20, 30)) + np.eye(20, 30, dtype=int))


def test_prior_h_without_smoothing_raises_an_error_with_the_reason():
    model = MarkovClusteringTopicModel(
        3, 2, prior="H", smoothing=0, min_words=0, n_iterations=5, random_state=0
    )
    with pytest.raises(LearningError, match="probability zero under every behaviour"):
        model.fit(rare_words())


def test_prior_h_with_smoothing_stays_finite():
    model = MarkovClusteringTopicModel(
        3, 2, prior="H", min_words=0, n_iterations=50, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(rare_words())
    assert np.isfinite(model.objective_).all()
    for block in model.parameters_:
        assert (block > 0).all()
        np.testing.assert_allclose(block.sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 5e-6])
def test_an_empty_topic_is_uniform_finite_and_reported(smoothing):
    """No behaviour uses topic 2: no token can have it, and the M-step finds it without mass."""
    start = random_parameters(Sizes(4, 2, 2), seed=6)
    start = start._replace(theta=np.array([[1.0, 1.0], [0.0, 0.0]]))
    counts = np.array([[3, 1, 0, 0], [0, 0, 2, 3], [2, 2, 1, 0], [0, 1, 1, 4]])
    model = MarkovClusteringTopicModel(
        2, 2, prior="1", smoothing=smoothing, min_words=0, n_iterations=1, init=start
    )
    with pytest.warns(DegenerateWarning, match="topic 2 has no words"):
        model.fit(counts)
    assert model.degenerate_ == ("topic 2 has no words",)
    np.testing.assert_allclose(model.parameters_.phi[:, 1], 0.25, rtol=1e-12)
    assert np.isfinite(model.objective_).all()


def test_a_behaviour_never_left_is_uniform_finite_and_reported():
    """Behaviour 2 is possible in the last document only."""
    phi = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    start = Parameters(phi, np.eye(2), np.array([1.0, 0.0]), np.full((2, 2), 0.5))
    counts = np.array([[3, 1, 0], [1, 2, 0], [2, 2, 0], [0, 0, 5]])
    model = MarkovClusteringTopicModel(
        2, 2, prior="1", smoothing=0, min_words=0, n_iterations=10, init=start
    )
    with pytest.warns(DegenerateWarning, match="behaviour 2 is never left"):
        model.fit(counts)
    assert model.degenerate_ == ("behaviour 2 is never left",)
    np.testing.assert_allclose(model.parameters_.xi[:, 1], 0.5, rtol=1e-12)
    np.testing.assert_allclose(model.parameters_.xi[:, 0], [2 / 3, 1 / 3], rtol=1e-12)


def test_a_behaviour_that_no_document_has_stays_finite():
    """Behaviour 2 is over a thousand nats less probable everywhere: its counts are nearly 0."""
    phi = np.array([[0.9, 1e-260], [0.1, 1.0]])
    start = Parameters(phi, np.eye(2), np.array([0.5, 0.5]), np.full((2, 2), 0.5))
    counts = np.array([[3, 1], [4, 0], [2, 3], [5, 1]])
    model = MarkovClusteringTopicModel(
        2, 2, prior="1", smoothing=0, min_words=0, n_iterations=10, init=start
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model.fit(counts)
    for block in model.parameters_:
        assert np.isfinite(block).all()
        np.testing.assert_allclose(block.sum(axis=0), 1, rtol=1e-12)


def test_what_is_reported_is_what_became_uniform():
    """Under prior H topics of few tokens become empty, and may recover."""
    wrong = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        model = MarkovClusteringTopicModel(
            2,
            1,
            prior="H",
            min_words=0,
            n_iterations=int(rng.integers(1, 6)),
            init=random_parameters(Sizes(3, 2, 1), seed),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)
            model.fit(np.maximum(rng.poisson(2.0, (1, 3)), [[0, 1, 0]]))
        uniform = np.abs(model.parameters_.phi - 1 / 3).max(axis=0) < 1e-12
        reported = [f"topic {y + 1} has no words" in model.degenerate_ for y in range(2)]
        if uniform.tolist() != reported:
            wrong.append((seed, uniform.tolist(), reported))
    assert not wrong


def test_one_topic_per_behaviour_equals_hmmlearn():
    """theta = identity makes the model a hidden Markov model with multinomial emissions."""
    sizes = Sizes(n_words=12, n_topics=3, n_behaviours=3)
    corpus = corpus_of(sizes, seed=7, n_documents=80, n_tokens=9, concentration=2.0)
    counts = corpus.counts.toarray().astype(int)
    start = random_parameters(sizes, seed=8)._replace(theta=np.eye(3))
    peer = MultinomialHMM(n_components=3, n_iter=20, tol=-np.inf, init_params="")
    peer.startprob_, peer.transmat_, peer.emissionprob_ = start.pi, start.xi.T, start.phi.T
    peer.fit(counts, lengths=corpus.lengths)
    ours = MarkovClusteringTopicModel(
        3, 3, prior="1", smoothing=0, min_words=0, n_iterations=20, init=start
    ).fit(corpus)
    phi, theta, pi, xi = ours.parameters_
    np.testing.assert_array_equal(theta, np.eye(3))
    np.testing.assert_allclose(pi, peer.startprob_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(xi, peer.transmat_.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(phi, peer.emissionprob_.T, rtol=0, atol=1e-10)
    # A bag of words has the multinomial's coefficient as well.
    coefficients = (gammaln(counts.sum(axis=1) + 1) - gammaln(counts + 1).sum(axis=1)).sum()
    history = [*peer.monitor_.history, peer.score(counts, lengths=corpus.lengths)]
    np.testing.assert_allclose(ours.objective_, np.array(history[1:]) - coefficients, rtol=1e-10)
    np.testing.assert_allclose(
        ours.predict_proba(corpus), peer.predict_proba(counts, corpus.lengths), rtol=0, atol=1e-9
    )
    assert ours.objective_[-1] - ours.objective_[0] > 10  # twenty iterations did change something


def test_a_start_with_probability_zero_raises_an_error():
    phi = np.array([[1.0, 1.0], [0.0, 0.0]])
    start = Parameters(phi, np.full((2, 1), 0.5), np.ones(1), np.ones((1, 1)))
    model = MarkovClusteringTopicModel(2, 1, min_words=0, init=start, prior=Prior())
    with pytest.raises(LearningError, match="document 1 has probability zero"):
        model.fit(np.array([[2, 0], [1, 1]]))
