"""Messages along the chain of behaviours: enumeration, and cases that could underflow."""

import numpy as np
import pytest
from scipy.stats import chisquare

from habitus.model.expected_counts import log_likelihoods
from habitus.model.messages import (
    draw,
    draw_log,
    filter_forward,
    most_probable_path,
    sample_backward,
    smooth_backward,
)
from habitus.model.parameters import Sizes
from reference import enumeration, log_space
from reference.corpora import PARAMETERS, TINY, Tiny, random_parameters

cases = pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
kinds = pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())


def filtered_messages(tiny, parameters):
    evidence = tiny.evidence
    log_like = log_likelihoods(evidence, parameters.phi, parameters.theta)
    return filter_forward(log_like, evidence.first, parameters.pi, parameters.xi)


@cases
@kinds
def test_likelihood_of_a_document_sums_over_every_topic_of_every_token(tiny, kind):
    parameters = kind(tiny.sizes, seed=1)
    found = log_likelihoods(tiny.evidence, parameters.phi, parameters.theta)
    for t, document in enumerate(tiny.documents):
        for z in range(tiny.sizes.n_behaviours):
            # A model of behaviour z alone, so that the enumeration runs over the topics only.
            alone = parameters._replace(
                theta=parameters.theta[:, [z]], pi=np.ones(1), xi=np.ones((1, 1))
            )
            one = Tiny((document,), (1,), tiny.sizes._replace(n_behaviours=1))
            expected = np.log(enumeration.enumerate_hidden(one, alone).evidence)
            np.testing.assert_allclose(found[t, z], expected, rtol=1e-12, atol=1e-14)


@cases
@kinds
def test_forward_pass_equals_enumeration_of_the_documents_so_far(tiny, kind):
    parameters = kind(tiny.sizes, seed=2)
    found = filtered_messages(tiny, parameters)
    expected = enumeration.on_line(tiny, parameters)
    np.testing.assert_allclose(np.exp(found.log_predicted), expected.predicted, rtol=1e-12)
    np.testing.assert_allclose(np.exp(found.log_filtered), expected.filtered, rtol=1e-12)
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-12, atol=1e-14)


@cases
@kinds
def test_backward_pass_equals_enumeration_of_all_documents(tiny, kind):
    parameters = kind(tiny.sizes, seed=3)
    messages = filtered_messages(tiny, parameters)
    found = smooth_backward(messages, tiny.evidence.first, parameters.xi)
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    counts = enumeration.expected_counts(tiny, hidden)
    posterior = enumeration.behaviour_posterior(hidden, tiny.sizes.n_behaviours)
    np.testing.assert_allclose(found.posterior, posterior, rtol=1e-12)
    np.testing.assert_allclose(found.first, counts.pi, rtol=1e-12)
    np.testing.assert_allclose(found.transitions, counts.xi, rtol=1e-12)


@cases
@kinds
def test_most_probable_path_equals_enumeration(tiny, kind):
    evidence = tiny.evidence
    for seed in range(30):
        phi, theta, pi, xi = parameters = kind(tiny.sizes, seed)
        found = most_probable_path(log_likelihoods(evidence, phi, theta), evidence.first, pi, xi)
        hidden = enumeration.enumerate_hidden(tiny, parameters)
        place = np.flatnonzero((hidden.paths == found).all(axis=1))
        # Equal to rounding rather than the same path: an empty document can leave an exact tie.
        np.testing.assert_allclose(
            hidden.path_posterior[place], hidden.path_posterior.max(), rtol=1e-12
        )


def test_most_probable_path_takes_the_lowest_number_of_a_tie():
    first = np.array([True, False, False])
    path = most_probable_path(np.zeros((3, 4)), first, np.full(4, 0.25), np.full((4, 4), 0.25))
    assert path.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["dense", "with zeros", "unnormalised"])
def test_sampled_paths_are_as_frequent_as_their_enumerated_posterior(kind):
    tiny = TINY["three topics, three behaviours"]
    parameters = PARAMETERS[kind](tiny.sizes, seed=4)
    messages = filtered_messages(tiny, parameters)
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    n_draws = 50_000
    uniforms = np.random.default_rng(5).random((n_draws, len(tiny.documents)))
    first = tiny.evidence.first
    paths = np.array([sample_backward(messages, first, parameters.xi, row) for row in uniforms])
    place_value = 3 ** np.arange(len(tiny.documents))[::-1]  # paths are in counting order
    counts = np.bincount(paths @ place_value, minlength=len(hidden.paths))
    expected = n_draws * hidden.path_posterior
    assert counts[expected == 0].sum() == 0
    common = expected >= 5
    observed = [*counts[common], counts[~common].sum()]
    statistic = chisquare(observed, [*expected[common], expected[~common].sum()])
    assert statistic.pvalue > 1e-4


def test_ten_thousand_words_do_not_underflow():
    rng = np.random.default_rng(6)
    sizes = Sizes(n_words=50, n_topics=3, n_behaviours=2)
    parameters = random_parameters(sizes, seed=7)
    words = np.sort(rng.integers(sizes.n_words, size=10_000))
    tiny = Tiny((tuple(words[:3]), tuple(words), tuple(words[-2:])), (3,), sizes)
    messages = filtered_messages(tiny, parameters)
    smoothed = smooth_backward(messages, tiny.evidence.first, parameters.xi)
    expected = log_space.e_step(tiny.evidence, parameters).chain
    assert messages.log_evidence[1] < -30_000
    np.testing.assert_allclose(messages.log_evidence, expected.log_evidence, rtol=1e-13)
    np.testing.assert_allclose(smoothed.posterior, expected.posterior, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(smoothed.posterior.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("ahead", [800.0, 1000.0, 5000.0])
@pytest.mark.parametrize("far", [0.0, 1e-300])
def test_the_only_allowed_next_behaviour_may_be_a_thousand_nats_behind(ahead, far):
    """Behaviour 0 leads by far at first, but only behaviour 1 leads to 2, the only one later."""
    xi = np.array([[1.0, 0.0, 0.0], [far, 0.5, 0.0], [0.0, 0.5, 1.0]])
    xi[0, 0] = 1 - far
    pi = np.array([0.5, 0.5, 0.0])
    log_like = np.array([[0.0, -ahead, 0.0], [-np.inf, -np.inf, -3.0], [0.0, 0.0, -4000.0]])
    first = np.array([True, False, False])
    messages = filter_forward(log_like, first, pi, xi)
    smoothed = smooth_backward(messages, first, xi)
    np.testing.assert_allclose(smoothed.posterior, np.eye(3)[[1, 2, 2]], rtol=1e-12)
    np.testing.assert_allclose(
        messages.log_evidence.sum(), np.log(0.25) - ahead - 3 - 4000, rtol=1e-12
    )
    np.testing.assert_allclose(smoothed.transitions[2], [0, 1, 1], rtol=1e-12)
    uniforms = np.random.default_rng(8).random((100, 3))
    for row in uniforms:
        assert sample_backward(messages, first, xi, row).tolist() == [1, 2, 2]
    assert most_probable_path(log_like, first, pi, xi).tolist() == [1, 2, 2]


@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.0, 20_000.0])
def test_wild_likelihoods_beside_zeros_agree_with_log_space(scale):
    """Gaps of up to tens of thousands of nats, most steps forbidden or all but forbidden."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n_documents, n = 12, 4
        xi = rng.dirichlet(np.full(n, 0.3), n).T
        xi[rng.random((n, n)) < 0.4] = 0
        xi[rng.random((n, n)) < 0.1] *= 1e-290
        xi[(np.arange(n) + 1) % n, np.arange(n)] += 1e-3  # a way on from everywhere
        xi /= xi.sum(axis=0)
        log_like = -scale * rng.random((n_documents, n)) * rng.random((n_documents, 1))
        first = rng.random(n_documents) < 0.2
        first[0] = True
        pi = rng.dirichlet(np.ones(n))
        messages = filter_forward(log_like, first, pi, xi)
        smoothed = smooth_backward(messages, first, xi)
        expected = log_space.forward_backward(log_like, first, pi, xi)
        np.testing.assert_allclose(
            messages.log_evidence, expected.log_evidence, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            messages.log_filtered, expected.log_filtered, rtol=1e-11, atol=1e-11
        )
        for name in ("posterior", "first", "transitions"):
            np.testing.assert_allclose(
                getattr(smoothed, name), getattr(expected, name), rtol=1e-9, atol=1e-100
            )


def test_a_long_chain_keeps_its_posteriors_normalised():
    rng = np.random.default_rng(9)
    n_documents, n = 50_000, 3
    first = np.zeros(n_documents, dtype=bool)
    first[0] = True
    log_like = -50 * rng.random((n_documents, n))
    pi, xi = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), n).T.copy()
    smoothed = smooth_backward(filter_forward(log_like, first, pi, xi), first, xi)
    np.testing.assert_allclose(smoothed.posterior.sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose(smoothed.transitions.sum(), n_documents - 1, rtol=1e-10)


def test_a_document_impossible_under_every_behaviour_carries_no_evidence():
    rng = np.random.default_rng(10)
    log_like = -5 * rng.random((6, 3))
    without, impossible = log_like.copy(), log_like.copy()
    without[2] = 0
    impossible[2] = -np.inf
    first = np.array([True, False, False, False, True, False])
    parameters = random_parameters(Sizes(3, 2, 3), seed=11)
    pi, xi = parameters.pi, parameters.xi
    expected = filter_forward(without, first, pi, xi)
    found = filter_forward(impossible, first, pi, xi)
    assert found.log_evidence[2] == -np.inf
    others = np.arange(6) != 2
    np.testing.assert_allclose(found.log_filtered, expected.log_filtered, rtol=1e-12)
    np.testing.assert_allclose(
        found.log_evidence[others], expected.log_evidence[others], rtol=1e-12
    )
    np.testing.assert_allclose(
        smooth_backward(found, first, xi).posterior,
        smooth_backward(expected, first, xi).posterior,
        rtol=1e-12,
    )
    np.testing.assert_array_equal(
        most_probable_path(impossible, first, pi, xi), most_probable_path(without, first, pi, xi)
    )


def test_a_document_possible_only_under_unreachable_behaviours_carries_no_evidence():
    """Likelihood above zero under behaviour 2, which xi never reaches: impossible all the same."""
    xi = np.array([[0.6, 0.3, 0.2], [0.4, 0.7, 0.3], [0.0, 0.0, 0.5]])
    pi = np.array([0.5, 0.5, 0.0])
    log_like = np.array([[-1.0, -2.0, -1.0], [-np.inf, -np.inf, -1.0], [-1.0, -1.5, -1.0]])
    first = np.array([True, False, False])
    found = filter_forward(log_like, first, pi, xi)
    assert found.log_evidence[1] == -np.inf
    posterior = smooth_backward(found, first, xi).posterior
    np.testing.assert_allclose(posterior.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(posterior[:, 2], 0)
    assert 2 not in most_probable_path(log_like, first, pi, xi)


def test_a_draw_never_lands_on_weight_zero():
    weights = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    largest = 1 - 2.0**-53
    assert [draw(weights, u) for u in (0.0, 0.2499, 0.2501, largest)] == [1, 1, 3, 3]
    with np.errstate(divide="ignore"):
        logs = np.log(weights) - 5000
    assert [draw_log(logs, u) for u in (0.0, 0.2499, 0.2501, largest)] == [1, 1, 3, 3]
    # Subtracted one by one, these leave 7e-17 of their sum.
    assert draw(np.array([0.4, 0.72, 0.28, 0.08, 0.0]), largest) == 3


def test_sequences_are_independent():
    """Messages of two sequences together equal those of each alone."""
    tiny = TINY["repeats, an empty document, two sequences"]
    parameters = random_parameters(tiny.sizes, seed=12)
    together = filtered_messages(tiny, parameters)
    cut = tiny.lengths[0]
    parts = [
        filtered_messages(Tiny(documents, (len(documents),), tiny.sizes), parameters)
        for documents in (tiny.documents[:cut], tiny.documents[cut:])
    ]
    for name in together._fields:
        apart = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(together, name), apart)
