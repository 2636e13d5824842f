"""Sizes by held-out likelihood: the detector's filter, standard errors, and known sizes."""

import numpy as np
import pytest

from habitus import generate
from habitus.corpus.documents import Corpus
from habitus.errors import InvalidInputError
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.lab.tuning.selection import (
    FITTED,
    N_SEGMENTS,
    Candidate,
    Prediction,
    SelectionRuns,
    choose,
    grid,
    log_predictions,
    predict_held_out,
    select_size,
    selection_folds,
    training_background,
)
from habitus.model.expected_counts import gather
from habitus.model.online import filter_document, filter_tables
from reference.corpora import random_parameters


def drawn(n_documents=160, n_words=60, seed=0):
    """Return documents of a crossing with four behaviours, in two sequences."""
    rng = np.random.default_rng(seed)
    lengths = [n_documents // 4, n_documents - n_documents // 4]
    n_tokens = rng.poisson(n_words, n_documents)
    n_tokens[3] = 5
    return generate(
        crossing(), n_tokens, rng, lengths=lengths, vocabulary=crossing_vocabulary()
    ).corpus


def test_predictions_are_those_of_the_detectors_filter():
    corpus = drawn()
    parameters = random_parameters(crossing().sizes, seed=1)
    background = training_background(corpus)
    tables, evidence = filter_tables([parameters], background), gather(corpus, min_words=20)
    expected = []
    for t in range(len(corpus)):
        if evidence.first[t]:
            log_predicted = tables.log_pi
        here = slice(evidence.indptr[t], evidence.indptr[t + 1])
        seen = filter_document(log_predicted, evidence.words[here], evidence.counts[here], tables)
        expected.append(seen.log_evidence)
        log_predicted = seen.log_next
    found = log_predictions(parameters, background, corpus)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert found[3] == 0


def test_every_document_is_held_out_once_in_a_segment_of_neighbours():
    corpus = drawn()
    folds = selection_folds(corpus)
    held = np.concatenate([part.times for fold in folds for part in fold.segments])
    assert sorted(held) == corpus.times.tolist()
    assert sum(len(fold.segments) for fold in folds) == N_SEGMENTS
    for fold in folds:
        out = {time for part in fold.segments for time in part.times}
        assert out.isdisjoint(fold.rest.times)
        assert len(out) + len(fold.rest) == len(corpus)
        assert all((np.diff(part.times) == 1).all() for part in fold.segments)
        assert (fold.background.probability > 0).all()


def test_the_error_of_segments_of_equal_length_is_that_of_a_mean():
    log_likelihood = -np.random.default_rng(0).gamma(50, 2, 12)
    found = Prediction(log_likelihood, np.full(12, 40.0))
    expected = (log_likelihood / 40).std(ddof=1) / np.sqrt(12)
    assert found.standard_error == pytest.approx(expected, rel=1e-12)


def test_the_error_of_uneven_segments_is_near_the_jackknifes():
    rng = np.random.default_rng(1)
    n_tokens = rng.integers(300, 900, 20).astype(float)
    prediction = Prediction(-n_tokens * rng.normal(7, 0.2, 20), n_tokens)
    left_out = [
        Prediction(np.delete(prediction.log_likelihood, k), np.delete(n_tokens, k)).mean
        for k in range(20)
    ]
    jackknife = np.sqrt(19 / 20 * ((left_out - np.mean(left_out)) ** 2).sum())
    assert prediction.standard_error == pytest.approx(jackknife, rel=0.1)


N_TOKENS = np.full(10, 100.0)
SPREAD = np.tile([-3.0, 3.0], 5)
"""Deviations with a standard error of 0.01 per word over ten segments."""
SIMPLE_FIRST = [Candidate(y, 2) for y in (4, 8, 12)]


def test_the_simplest_within_one_error_of_the_best_is_chosen():
    """The best has no deviations, so those of a candidate are those of their difference."""

    def choice(*means):
        found = [Prediction(100 * mean + SPREAD, N_TOKENS) for mean in means[:-1]]
        found.append(Prediction(100 * means[-1] + 0 * SPREAD, N_TOKENS))
        return choose(SIMPLE_FIRST[-len(means) :], found, 50)

    assert choice(-7.109, -7.105, -7.1)[2:] == (2, 0)
    assert choice(-7.111, -7.105, -7.1)[2:] == (2, 1)
    assert choice(-7.2, -7.2, -7.1)[2:] == (2, 2)
    assert choice(-7.1)[2:] == (0, 0)
    worse = choice(-7.109, -7.105, -7.1).shortfall(0)
    assert worse.mean == pytest.approx(0.009, rel=1e-6)
    assert worse.standard_error == pytest.approx(0.01, rel=1e-6)


def test_the_error_of_the_rule_is_that_of_paired_differences():
    """Spread that all candidates share must not make a worse one acceptable, and vice versa."""
    common = [Prediction(100 * mean + SPREAD, N_TOKENS) for mean in (-7.109, -7.105, -7.1)]
    assert common[2].mean - common[0].mean < common[2].standard_error  # unpaired: the simplest
    assert choose(SIMPLE_FIRST, common, 50).chosen == 2
    opposed = [
        Prediction(100 * mean + sign * SPREAD, N_TOKENS)
        for mean, sign in ((-7.115, -1), (-7.2, 1), (-7.1, 1))
    ]
    assert opposed[2].mean - opposed[0].mean > opposed[2].standard_error  # unpaired: the best
    assert choose(SIMPLE_FIRST, opposed, 50).chosen == 0


def test_spread_that_two_predictions_share_is_not_in_their_difference():
    rng = np.random.default_rng(2)
    n_tokens, common = rng.integers(300, 900, 20) * 1.0, rng.normal(size=20) * 300
    one, two = (Prediction(-7 * n_tokens + common + d * n_tokens, n_tokens) for d in (0.1, 0))
    assert one.less(two).mean == pytest.approx(0.1, rel=1e-9)
    assert one.less(two).standard_error == pytest.approx(0, abs=1e-12)


def test_fewer_topics_are_simpler_and_so_are_fewer_behaviours():
    sizes = [Candidate(*size).n_parameters(100) for size in ((4, 2), (4, 3), (5, 2))]
    assert sizes == [4 * 99 + 2 * 3 + 1 + 2, 4 * 99 + 3 * 3 + 2 + 6, 5 * 99 + 2 * 4 + 1 + 2]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize("seed", [2, 4])
def test_too_few_behaviours_are_rejected_and_too_many_gain_next_to_nothing(seed):
    """Paired errors resolve 0.001 nats per word: a size above the true one, 4, may be chosen."""
    corpus = drawn(400, n_words=80, seed=seed)
    choice = select_size(corpus, grid([8], [2, 3, 4, 6]), SelectionRuns(jobs=2))
    two, three, four, _ = (choice.shortfall(k) for k in range(4))
    assert choice.candidate.n_behaviours >= 4
    assert two.mean > three.mean > 0.05
    assert min(each.mean / each.standard_error for each in (two, three)) > 3
    assert four.mean < 0.005


def test_the_same_bits_for_any_number_of_jobs_and_other_ones_for_another_seed():
    corpus = drawn(n_words=30)
    candidates = [*grid([3], [2, 3]), Candidate(3, 2, "vb", FITTED)]
    told = []
    one, two, other = (
        predict_held_out(
            corpus, candidates, SelectionRuns(1, jobs=jobs, seed=seed, progress=told.append)
        )
        for jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.log_likelihood, b.log_likelihood)
    assert not np.array_equal(one[0].log_likelihood, other[0].log_likelihood)
    assert [each.done for each in told] == 3 * list(range(1, 13))
    assert {(each.stage, each.total) for each in told} == {("comparing sizes", 12)}


def test_too_little_footage_and_sizes_below_one_are_refused():
    short = Corpus(np.full((59, 4), 10))
    with pytest.raises(InvalidInputError, match=r"at least 60 documents of 20 words.* found 59"):
        selection_folds(short)
    counts = np.ones((1000, 4))
    counts[:100] = 10
    with pytest.raises(InvalidInputError, match=r"found them in 2 of 20 segments"):
        selection_folds(Corpus(counts))
    with pytest.raises(InvalidInputError, match=r"topics to try .* found \[0, 4\]"):
        grid([0, 4], [2])
    with pytest.raises(InvalidInputError, match="behaviours to try"):
        grid([4], [])
