"""On-line filter, Eq. (38) and (39), against enumeration of every hidden assignment."""

import numpy as np
import pytest

from habitus.model.expected_counts import gather, log_likelihoods
from habitus.model.messages import filter_forward
from habitus.model.online import filter_document, filter_tables, word_surprisals
from reference import enumeration
from reference.corpora import (
    PAPER_SIZES,
    TINY,
    Tiny,
    paper_corpus,
    random_parameters,
    sparse_parameters,
)

cases = pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
kinds = pytest.mark.parametrize("kind", [random_parameters, sparse_parameters])
N_SETS = 3


def follow(evidence, tables):
    """Yield the prediction before each document, its words and the filter step."""
    log_predicted = tables.log_pi
    for t in range(evidence.n_documents):
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        words, counts = evidence.words[here], evidence.counts[here]
        step = filter_document(log_predicted, words, counts, tables)
        yield log_predicted, words, step
        log_predicted = step.log_next


def as_one_document(tiny, t):
    """Return the documents of a sequence up to document t."""
    start = max(s for s in tiny.opening if s <= t)
    return Tiny(tiny.documents[start : t + 1], (t + 1 - start,), tiny.sizes)


@cases
@kinds
def test_plug_in_equals_enumeration(tiny, kind):
    parameters = kind(tiny.sizes, seed=5)
    expected = enumeration.on_line(tiny, parameters)
    followed = follow(tiny.evidence, filter_tables([parameters]))
    for t, (log_predicted, _, step) in enumerate(followed):
        np.testing.assert_allclose(np.exp(log_predicted[0]), expected.predicted[t], rtol=1e-12)
        np.testing.assert_allclose(step.posterior[0], expected.filtered[t], rtol=1e-12)
        np.testing.assert_allclose(
            step.log_evidence, expected.log_evidence[t], rtol=1e-12, atol=1e-14
        )


@cases
@kinds
def test_monte_carlo_is_the_mean_of_probabilities_each_with_its_own_filter(tiny, kind):
    sets = [kind(tiny.sizes, seed) for seed in range(N_SETS)]
    expected = [enumeration.on_line(tiny, each) for each in sets]
    for t, (log_predicted, _, step) in enumerate(follow(tiny.evidence, filter_tables(sets))):
        evidence = np.exp([each.log_evidence[t] for each in expected])
        np.testing.assert_allclose(
            step.log_evidence, np.log(evidence.mean()), rtol=1e-12, atol=1e-14
        )
        for s, each in enumerate(expected):
            np.testing.assert_allclose(np.exp(log_predicted[s]), each.predicted[t], rtol=1e-12)
        # q over sets and behaviours together: each set is weighted by its evidence.
        joint = evidence[:, None] * np.array([each.filtered[t] for each in expected])
        np.testing.assert_allclose(step.posterior, joint / joint.sum(), rtol=1e-12, atol=1e-300)


@cases
@kinds
def test_word_likelihoods_equal_enumeration(tiny, kind):
    """p(word | x_{1:t-1}): a document of that word alone, instead of the one that came."""
    sets = [kind(tiny.sizes, seed) for seed in range(N_SETS)]
    every = np.arange(tiny.sizes.n_words, dtype=np.int32)
    tables = filter_tables(sets)
    for t, (log_predicted, _, _) in enumerate(follow(tiny.evidence, tables)):
        found = np.exp(-word_surprisals(log_predicted, every, tables))
        past = as_one_document(tiny, t).documents[:-1]
        for word in every:
            alone = Tiny((*past, (int(word),)), (len(past) + 1,), tiny.sizes)
            expected = np.mean(
                [np.exp(enumeration.on_line(alone, each).log_evidence[-1]) for each in sets]
            )
            np.testing.assert_allclose(found[word], expected, rtol=1e-12)


@pytest.mark.parametrize("n_sets", [1, N_SETS])
def test_the_two_parts_of_the_explanation_are_what_they_say_and_add_up(n_sets):
    sets = [random_parameters(PAPER_SIZES, seed) for seed in range(n_sets)]
    corpus = paper_corpus(seed=1)
    evidence = gather(corpus)
    likes = np.concatenate(
        [log_likelihoods(evidence, each.phi, each.theta) for each in sets], axis=1
    )
    for t, (log_predicted, _, step) in enumerate(follow(evidence, filter_tables(sets))):
        q, prior = step.posterior.reshape(-1), np.exp(log_predicted.reshape(-1)) / n_sets
        held = q > 0
        np.testing.assert_allclose(step.misfit + step.shift, -step.log_evidence, rtol=1e-12)
        np.testing.assert_allclose(step.misfit, -(q @ likes[t]), rtol=1e-12)
        divergence = (q[held] * (np.log(q[held]) - np.log(prior[held]))).sum()
        np.testing.assert_allclose(step.shift, divergence, rtol=1e-8, atol=1e-12)


def test_one_step_after_the_other_equals_the_forward_pass_of_the_learners():
    evidence = gather(paper_corpus(seed=2))
    parameters = random_parameters(PAPER_SIZES, 7)
    log_like = log_likelihoods(evidence, parameters.phi, parameters.theta)
    whole = filter_forward(log_like, evidence.first, parameters.pi, parameters.xi)
    for t, (_, _, step) in enumerate(follow(evidence, filter_tables([parameters]))):
        np.testing.assert_allclose(step.log_evidence, whole.log_evidence[t], rtol=1e-13)


def test_a_document_without_words_moves_the_chain_and_nothing_else():
    parameters = random_parameters(PAPER_SIZES, 3)
    tables = filter_tables([parameters])
    nothing = np.empty(0, dtype=np.int32), np.empty(0)
    step = filter_document(tables.log_pi, *nothing, tables)
    assert step.log_evidence == pytest.approx(0, abs=1e-15)
    assert step.misfit == step.shift == 0
    np.testing.assert_allclose(step.posterior[0], parameters.pi, rtol=1e-14)
    np.testing.assert_allclose(np.exp(step.log_next[0]), parameters.xi @ parameters.pi, rtol=1e-14)


def test_an_impossible_word_has_a_finite_surprisal():
    parameters = random_parameters(PAPER_SIZES, 3)
    parameters.phi[17] = 0
    tables = filter_tables([parameters])
    words, counts = np.array([17, 30], dtype=np.int32), np.array([40.0, 1.0])
    step = filter_document(tables.log_pi, words, counts, tables)
    values = (*step[:3], *step.posterior.ravel(), *step.log_next.ravel())
    assert np.isfinite(values).all()
    assert np.isfinite(word_surprisals(tables.log_pi, words, tables)).all()


def test_a_behaviour_a_thousand_nats_behind_and_the_only_one_allowed_next_is_not_lost():
    sparse = random_parameters(PAPER_SIZES, 3)._replace(
        xi=np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
    )
    tables = filter_tables([sparse])
    log_predicted, total = tables.log_pi, 0.0
    like = np.zeros(4)
    for z in (0, 1, 2):  # each document is nearly impossible under all behaviours but one
        best = np.argsort(-tables.log_probability[:, z])[:400].astype(np.int32)
        words = np.sort(best)
        counts = np.full(len(words), 30.0)
        step = filter_document(log_predicted, words, counts, tables)
        like += counts @ tables.log_probability[words]
        total += step.log_evidence
        log_predicted = step.log_next
    expected = np.logaddexp.reduce(np.log(sparse.pi) + like)
    np.testing.assert_allclose(total, expected, rtol=1e-12)
