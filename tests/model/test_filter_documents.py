"""The one loop that scores documents: `filter_document` step by step, and enumeration."""

import numpy as np
import pytest

from habitus import Corpus
from habitus.model.expected_counts import gather, log_likelihoods
from habitus.model.messages import filter_forward
from habitus.model.online import filter_document, filter_documents, filter_tables
from reference import enumeration
from reference.corpora import (
    PAPER_SIZES,
    TINY,
    paper_corpus,
    random_parameters,
    sparse_parameters,
)

cases = pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
kinds = pytest.mark.parametrize("kind", [random_parameters, sparse_parameters])


def assert_equals_step_by_step(evidence, tables, log_opening=None):
    """Compare every value of the loop with `filter_document` to the bit."""
    found = filter_documents(evidence, tables, log_opening)
    log_predicted = tables.log_pi if log_opening is None else log_opening
    for t in range(evidence.n_documents):
        if t > 0 and evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        step = filter_document(log_predicted, evidence.words[here], evidence.counts[here], tables)
        for name in ("log_evidence", "misfit", "shift", "n_tokens"):
            assert getattr(found, name)[t] == getattr(step, name)
        assert np.array_equal(found.surprisals[here], step.surprisals)
        if len(log_predicted) == 1:
            assert np.array_equal(found.posterior[t], step.posterior[0])
        np.testing.assert_allclose(found.posterior[t], step.posterior.sum(axis=0), rtol=1e-14)
        expected = np.exp(log_predicted).mean(axis=0)
        np.testing.assert_allclose(found.predicted[t], expected, rtol=1e-14)
        log_predicted = step.log_next
    assert np.array_equal(found.log_next, log_predicted)


@pytest.mark.parametrize("n_sets", [1, 3])
def test_the_loop_equals_its_steps_to_the_bit(n_sets):
    tables = filter_tables([random_parameters(PAPER_SIZES, seed) for seed in range(n_sets)])
    evidence = gather(paper_corpus(seed=3), min_words=300)
    assert (np.diff(evidence.indptr) == 0).any()
    assert_equals_step_by_step(evidence, tables)


@pytest.mark.parametrize("n_sets", [1, 3])
def test_a_given_opening_holds_for_the_first_sequence_only(n_sets):
    tables = filter_tables([random_parameters(PAPER_SIZES, seed) for seed in range(n_sets)])
    evidence = gather(paper_corpus(seed=3))
    opening = np.log(np.random.default_rng(0).dirichlet(np.ones(4), n_sets))
    assert_equals_step_by_step(evidence, tables, opening)
    own, given = (filter_documents(evidence, tables, each) for each in (None, opening))
    second = np.flatnonzero(evidence.first)[1]
    assert own.log_evidence[0] != given.log_evidence[0]
    assert np.array_equal(own.log_evidence[second:], given.log_evidence[second:])


@cases
@kinds
def test_one_set_equals_enumeration(tiny, kind):
    parameters = kind(tiny.sizes, seed=5)
    expected = enumeration.on_line(tiny, parameters)
    found = filter_documents(tiny.evidence, filter_tables([parameters]))
    np.testing.assert_allclose(found.predicted, expected.predicted, rtol=1e-12)
    np.testing.assert_allclose(found.posterior, expected.filtered, rtol=1e-12)
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-12, atol=1e-14)


@cases
@kinds
def test_several_sets_equal_the_mean_of_their_enumerated_probabilities(tiny, kind):
    sets = [kind(tiny.sizes, seed) for seed in range(3)]
    expected = [enumeration.on_line(tiny, each) for each in sets]
    found = filter_documents(tiny.evidence, filter_tables(sets))
    evidence = np.exp([each.log_evidence for each in expected])
    np.testing.assert_allclose(
        found.log_evidence, np.log(evidence.mean(axis=0)), rtol=1e-12, atol=1e-14
    )
    weighted = np.array(
        [p[:, None] * each.filtered for p, each in zip(evidence, expected, strict=True)]
    )
    posterior = weighted.sum(axis=0) / evidence.sum(axis=0)[:, None]
    np.testing.assert_allclose(found.posterior, posterior, rtol=1e-12)


def impossible_words(n_sets):
    """Sets of which the first rules out word 0, documents with it, and tables without a floor."""
    sets = [random_parameters(PAPER_SIZES, seed) for seed in range(n_sets)]
    sets[0].phi[0] = 0
    counts = paper_corpus(seed=3).counts[:30].toarray()
    counts[:, 0] = 0
    counts[10, 0] = 2
    return sets, gather(Corpus(counts)), filter_tables(sets, least_probability=0.0)


def test_an_impossible_document_leaves_the_belief_as_predicted():
    """As in the forward pass of the learners."""
    (parameters,), evidence, tables = impossible_words(1)
    assert_equals_step_by_step(evidence, tables)
    found = filter_documents(evidence, tables)
    phi, theta, pi, xi = parameters
    log_like = log_likelihoods(evidence, phi, theta)
    expected = filter_forward(log_like, evidence.first, pi, xi)
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-13)
    np.testing.assert_allclose(found.predicted, np.exp(expected.log_predicted), rtol=1e-9)
    assert np.flatnonzero(found.log_evidence == -np.inf).tolist() == [10]
    np.testing.assert_allclose(found.posterior[10], found.predicted[10], rtol=1e-14)
    assert not any(np.isnan(field).any() for field in found)


def test_a_document_impossible_under_one_set_counts_under_the_others():
    sets, evidence, tables = impossible_words(2)
    assert_equals_step_by_step(evidence, tables)
    both = filter_documents(evidence, tables)
    other = filter_documents(evidence, filter_tables(sets[1:], least_probability=0.0))
    np.testing.assert_allclose(
        both.log_evidence[10], other.log_evidence[10] - np.log(2), rtol=1e-13
    )
    assert np.isfinite(both.log_evidence).all()
    assert not any(np.isnan(field).any() for field in both)


def test_without_zeros_the_floor_changes_nothing():
    sets = [random_parameters(PAPER_SIZES, seed) for seed in range(2)]
    evidence = gather(paper_corpus(seed=3))
    plain = filter_documents(evidence, filter_tables(sets, least_probability=0.0))
    for one, other in zip(plain, filter_documents(evidence, filter_tables(sets)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_documents():
    tables = filter_tables([random_parameters(PAPER_SIZES, 0)])
    whole = gather(paper_corpus(seed=3))
    nothing = whole._replace(
        indptr=whole.indptr[:1],
        words=whole.words[:0],
        counts=whole.counts[:0],
        first=whole.first[:0],
    )
    found = filter_documents(nothing, tables)
    assert len(found.log_evidence) == len(found.surprisals) == 0
    assert np.array_equal(found.log_next, tables.log_pi)
