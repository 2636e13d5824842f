"""Votes against their definition in plain Python."""

from dataclasses import replace

import numpy as np
import pytest

from habitus.corpus import Bag, Condition, Corpus, Vocabulary, summed_bag
from habitus.errors import InvalidInputError
from habitus.habits.votes import BLOCK, Votes, least_words, votes_of, votes_of_corpus
from reference.habits import KINDS, defined_votes, random_corpus, random_votes

kinds = pytest.mark.parametrize(("directions", "speeds"), KINDS)


def listed(votes):
    return list(zip(*(part.tolist() for part in votes), strict=True))


@kinds
@pytest.mark.parametrize("least", [1, 2, 3])
def test_votes_are_as_defined(directions, speeds, least):
    vocabulary = Vocabulary(5, 7, directions=directions, speeds=speeds)
    corpus = random_corpus(vocabulary, 60, seed=directions + speeds)
    found = votes_of_corpus(corpus, least)
    n_empty = 0
    for t, document in enumerate(corpus.bags()):
        expected = defined_votes(*document, vocabulary, least)
        assert listed(found.of(t)) == expected
        assert listed(votes_of(*document, vocabulary, least)) == expected
        n_empty += not expected
    assert 0 < n_empty < 60


def test_a_cell_with_one_word_has_no_vote_unless_documents_are_short():
    vocabulary = Vocabulary(1, 2)
    corpus = Corpus.from_word_ids([[1, 4, 4]], vocabulary=vocabulary)
    assert listed(votes_of_corpus(corpus).of(0)) == [(1, 0, 0)]
    assert least_words(corpus.n_frames) == 2
    for n_frames, least in ((5, 1), (6, 2)):
        short = Corpus(corpus.counts, vocabulary=vocabulary, n_frames=[n_frames])
        assert least_words(short.n_frames) == least
    short = Corpus(corpus.counts, vocabulary=vocabulary, n_frames=[3])
    assert listed(votes_of_corpus(short).of(0)) == [(0, 1, 0), (1, 0, 0)]


def test_cameras_that_are_not_usable_have_no_votes():
    corpus = random_corpus(Vocabulary(4, 4), 40, seed=3)
    conditions = np.arange(40) % len(Condition)
    found = votes_of_corpus(replace(corpus, conditions=conditions))
    every = votes_of_corpus(corpus)
    for t in range(40):
        expected = listed(every.of(t)) if conditions[t] == Condition.USABLE else []
        assert listed(found.of(t)) == expected
    assert len(found.cells) < len(every.cells)


def test_votes_of_a_long_corpus_are_those_of_its_parts():
    part = replace(random_corpus(Vocabulary(4, 4), 40, seed=3), conditions=np.arange(40) % 3)
    n = BLOCK // 40 + 2
    found, own = votes_of_corpus(Corpus.joined([part] * n)), votes_of_corpus(part)
    assert np.array_equal(np.diff(found.indptr), np.tile(np.diff(own.indptr), n))
    for one, other in zip(found[1:], own[1:], strict=True):
        assert np.array_equal(one, np.tile(other, n))


def test_a_corpus_needs_a_vocabulary():
    with pytest.raises(InvalidInputError, match="vocabulary"):
        votes_of_corpus(Corpus([[1, 2]]))


@kinds
def test_codes_are_the_words_of_votes(directions, speeds):
    vocabulary = Vocabulary(6, 6, directions=directions, speeds=speeds)
    votes = random_votes(vocabulary, 20, np.random.default_rng(0))
    codes = votes.codes(vocabulary)
    rows, columns = np.divmod(votes.cells, 6)
    expected = vocabulary.words(rows, columns, votes.directions, votes.speeds)
    assert np.array_equal(codes, expected)
    assert listed(Votes.of_codes(codes, vocabulary)) == listed(votes)


def test_taken_documents_have_their_votes():
    votes = votes_of_corpus(random_corpus(Vocabulary(4, 4), 30, seed=1))
    for chosen in ([], [0], [29], [3, 4, 5], [7, 2, 2, 19], range(30)):
        taken = votes.take(np.array(chosen, dtype=np.int64))
        assert taken.n_documents == len(chosen)
        assert [listed(taken.of(k)) for k in range(len(chosen))] == [
            listed(votes.of(t)) for t in chosen
        ]


@pytest.mark.parametrize("kind", ["coarse", "paper"])
def test_words_of_a_document_are_summed_as_those_of_a_corpus(kind):
    fine = Vocabulary(4, 5, directions=12, speeds=16)
    corpus, coarser = random_corpus(fine, 40, seed=5), getattr(fine, kind)
    for document, expected in zip(corpus.bags(), corpus.summed(coarser).bags(), strict=True):
        found = summed_bag(document, fine, coarser)
        assert np.array_equal(found.words, expected.words)
        assert np.array_equal(found.counts, expected.counts)
    whole = summed_bag(Bag(np.array([0, 1]), np.array([3, 4])), fine, coarser)
    assert whole.counts.tolist() == [7]
    assert np.issubdtype(whole.counts.dtype, np.integer)
