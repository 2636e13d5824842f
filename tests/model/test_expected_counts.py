"""The factorised E-step against enumeration, the paper's token-level E-step, and log space."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from habitus.corpus.documents import Corpus
from habitus.model import expected_counts
from habitus.model.expected_counts import expect, gather, padded, scatter, topic_proportions
from habitus.model.parameters import Sizes
from reference import enumeration, log_space, token_level
from reference.corpora import (
    PAPER_SIZES,
    PARAMETERS,
    TINY,
    Tiny,
    close_parameters,
    paper_corpus,
    random_parameters,
    unnormalised_parameters,
)

BLOCKS = ("phi", "theta", "pi", "xi")


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
@pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_expected_counts_equal_enumeration(tiny, kind):
    parameters = kind(tiny.sizes, seed=1)
    found = expect(tiny.evidence, [parameters])[0]
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    expected = enumeration.expected_counts(tiny, hidden)
    np.testing.assert_allclose(found.log_likelihood, np.log(hidden.evidence), rtol=1e-12)
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(found.counts, name), getattr(expected, name), rtol=1e-12)


@pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())
@pytest.mark.parametrize("n_behaviours", [1, 3, 4, 6])
def test_factorised_e_step_equals_the_published_one_token_by_token(kind, n_behaviours):
    rng = np.random.default_rng(2)
    sizes = Sizes(n_words=7, n_topics=3, n_behaviours=n_behaviours)
    lengths = (9, 1, 6)
    documents = [np.sort(rng.integers(7, size=n)).tolist() for n in rng.integers(12, size=16)]
    documents[4], documents[10] = [], []
    parameters = kind(sizes, seed=3)
    tiny = Tiny(tuple(map(tuple, documents)), lengths, sizes)
    found = expect(tiny.evidence, [parameters])[0]
    starts = tiny.opening
    parts = [
        token_level.e_step(documents[start : start + n], parameters)
        for start, n in zip(starts, lengths, strict=True)
    ]
    expected = {
        "phi": sum(part.n_phi for part in parts),
        "theta": sum(part.n_theta for part in parts),
        "pi": sum(part.first for part in parts),
        "xi": sum(part.pairs.sum(axis=0) for part in parts),
    }
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(found.counts, name), expected[name], rtol=1e-12)
    np.testing.assert_allclose(
        found.log_likelihood, sum(part.log_likelihood for part in parts), rtol=1e-12
    )


@pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_the_references_agree_with_each_other(kind):
    """Each posterior of the published E-step equals the enumerated one."""
    tiny = Tiny(((0, 2, 2), (), (1,), (1, 3)), (4,), Sizes(4, 2, 3))
    parameters = kind(tiny.sizes, seed=10)
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    printed = token_level.e_step([list(d) for d in tiny.documents], parameters)
    wide = log_space.e_step(tiny.evidence, parameters)
    posterior = enumeration.behaviour_posterior(hidden, 3)
    np.testing.assert_allclose(printed.first, posterior[0], rtol=1e-12)
    np.testing.assert_allclose(
        printed.pairs, enumeration.pair_posteriors(hidden, 3)[1:], rtol=1e-12
    )
    np.testing.assert_allclose(
        np.concatenate(printed.tokens), enumeration.token_posteriors(tiny, hidden), rtol=1e-12
    )
    np.testing.assert_allclose(wide.chain.posterior.astype(float), posterior, rtol=1e-12)
    np.testing.assert_allclose(wide.phi.astype(float), printed.n_phi, rtol=1e-12)
    np.testing.assert_allclose(wide.theta.astype(float), printed.n_theta, rtol=1e-12)
    np.testing.assert_allclose(printed.log_likelihood, np.log(hidden.evidence), rtol=1e-12)


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
@pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_topic_proportions_are_means_of_enumerated_posteriors_of_tokens(tiny, kind):
    parameters = kind(tiny.sizes, seed=11)
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    behaviours = enumeration.behaviour_posterior(hidden, tiny.sizes.n_behaviours)
    tokens = enumeration.token_posteriors(tiny, hidden).sum(axis=2)
    wanted = behaviours @ parameters.theta.T
    wanted /= wanted.sum(axis=1, keepdims=True)
    for t in set(tiny.document_of_token):
        wanted[t] = tokens[tiny.document_of_token == t].mean(axis=0)
    found = topic_proportions(tiny.evidence, parameters, behaviours)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.fixture(scope="module")
def paper_evidence():
    return gather(paper_corpus(seed=4))


def messages_of(evidence, parameters):
    phi, theta, pi, xi = parameters
    log_like = expected_counts.log_likelihoods(evidence, phi, theta)
    return expected_counts.filter_forward(log_like, evidence.first, pi, xi)


@pytest.mark.parametrize("kind", [random_parameters, close_parameters, unnormalised_parameters])
def test_at_the_paper_s_size_nine_digits_agree_with_log_space(kind, paper_evidence):
    assert 200_000 < paper_evidence.counts.sum() < 230_000
    assert 120_000 < len(paper_evidence.counts) < 200_000
    parameters = kind(PAPER_SIZES, seed=5)
    found = expect(paper_evidence, [parameters])[0]
    expected = log_space.e_step(paper_evidence, parameters)
    np.testing.assert_allclose(found.log_likelihood, float(expected.log_likelihood), rtol=1e-13)
    log_evidence = messages_of(paper_evidence, parameters).log_evidence
    np.testing.assert_allclose(log_evidence, expected.chain.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(found.counts.phi, expected.phi, rtol=1e-9)
    np.testing.assert_allclose(found.counts.theta, expected.theta, rtol=1e-9)
    np.testing.assert_allclose(found.counts.pi, expected.chain.first, rtol=1e-9, atol=1e-100)
    np.testing.assert_allclose(found.counts.xi, expected.chain.transitions, rtol=1e-9, atol=1e-100)


def test_at_the_paper_s_size_posteriors_in_doubt_agree_with_log_space(paper_evidence):
    _, _, pi, xi = parameters = close_parameters(PAPER_SIZES, seed=6)
    messages = messages_of(paper_evidence, parameters)
    found = expected_counts.smooth_backward(messages, paper_evidence.first, xi).posterior
    log_like = log_space.log_likelihoods(paper_evidence, parameters)
    expected = log_space.forward_backward(log_like, paper_evidence.first, pi, xi).posterior
    in_doubt = (expected.max(axis=1) < 0.99).mean()
    assert in_doubt > 0.1  # otherwise zeros and ones would be compared
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-100)


def test_weights_count_as_fractions_of_a_token():
    rng = np.random.default_rng(7)
    sizes = Sizes(n_words=9, n_topics=4, n_behaviours=3)
    weights = rng.exponential(size=(12, 9)) * (rng.random((12, 9)) < 0.4)
    evidence = gather(Corpus(weights, lengths=[5, 7]))
    parameters = random_parameters(sizes, seed=8)
    found = expect(evidence, [parameters])[0]
    expected = log_space.e_step(evidence, parameters)
    np.testing.assert_allclose(found.counts.phi, expected.phi, rtol=1e-12)
    np.testing.assert_allclose(found.counts.theta, expected.theta, rtol=1e-12)
    np.testing.assert_allclose(found.counts.phi.sum(axis=1), weights.sum(axis=0), rtol=1e-12)


def test_short_documents_keep_their_place_and_add_no_counts():
    documents = [[0, 1, 1], [2], [0, 2, 2, 1], [1, 1], [0, 0, 1]]
    emptied = [d if len(d) >= 3 else [] for d in documents]
    parameters = random_parameters(Sizes(3, 2, 3), seed=9)
    short = gather(Corpus.from_word_ids(documents, n_words=3, lengths=[3, 2]), min_words=3)
    empty = gather(Corpus.from_word_ids(emptied, n_words=3, lengths=[3, 2]))
    found, expected = expect(short, [parameters])[0], expect(empty, [parameters])[0]
    assert found.log_likelihood == expected.log_likelihood
    for name in BLOCKS:
        np.testing.assert_array_equal(getattr(found.counts, name), getattr(expected.counts, name))
    np.testing.assert_allclose(found.counts.xi.sum(), 3, rtol=1e-12)


@pytest.mark.parametrize("n_behaviours", range(1, 10))
def test_kernels_equal_the_numpy_lines_they_state(n_behaviours):
    rng = np.random.default_rng(n_behaviours)
    n_words, n_topics = 13, 3
    matrix = rng.poisson(0.7, (8, n_words)) * (rng.random((8, 1)) < 0.8)
    C = csr_array(matrix.astype(float))
    evidence = gather(Corpus(matrix))
    phi, theta = rng.random((n_words, n_topics)), rng.random((n_topics, n_behaviours))
    lanes = padded(theta)
    B = phi @ theta
    mixed = expected_counts._mix(phi, lanes)
    np.testing.assert_allclose(mixed[:, :n_behaviours], B, rtol=1e-14)
    rows = (evidence.indptr, evidence.words, evidence.counts)
    sums = expected_counts._row_sums(*rows, mixed)[:, :n_behaviours]
    np.testing.assert_allclose(sums, C @ B, rtol=1e-14)
    posterior = rng.random((8, n_behaviours))
    tokens = scatter(*rows, padded(posterior), n_words)
    np.testing.assert_allclose(tokens[:, :n_behaviours], C.T @ posterior, rtol=1e-14)
    R = (C.T @ posterior) / B
    word_topic = np.full_like(phi, np.nan)
    topic_behaviour = expected_counts._split(tokens, mixed, phi, lanes, word_topic)
    np.testing.assert_allclose(word_topic, phi * (R @ theta.T), rtol=1e-14)
    np.testing.assert_allclose(topic_behaviour[:, :n_behaviours], theta * (phi.T @ R), rtol=1e-14)
