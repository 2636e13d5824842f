"""Documents to learn from and to judge, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from habitus import Corpus
from habitus.anomaly.localisation import Box
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import Label, Sighting
from habitus.lab.comparison.protocol import footage_of, identity_of
from reference.labelled import EVENTS, N_TEST, N_TRAIN, QUICK, labelled_corpus, labels


def test_documents_before_the_time_are_learnt_from_and_the_rest_is_judged(footage):
    assert (footage.n_train, footage.n_test, len(footage.train)) == (N_TRAIN, N_TEST, N_TRAIN)
    assert footage.times[0] == N_TRAIN
    expected = np.zeros(N_TEST, dtype=bool)
    for start, end in EVENTS:
        expected[start - N_TRAIN : end - N_TRAIN] = True
    np.testing.assert_array_equal(footage.abnormal, expected)
    assert not footage.long_enough(QUICK)[[5, 95, 110]].any()
    assert footage.long_enough(QUICK).sum() == N_TRAIN + N_TEST - 3


@pytest.mark.parametrize("train", [0.0, 160.0, 1e9])
def test_training_must_leave_something_to_judge(train):
    with pytest.raises(InvalidInputError, match="--train must leave documents"):
        footage_of(labelled_corpus(), labels(), train)


def test_labels_that_tell_nothing_or_lie_elsewhere_are_refused():
    corpus = labelled_corpus()
    with pytest.raises(InvalidInputError, match="no document abnormal"):
        footage_of(corpus, [Label(10.0, 20.0)], 90.0)
    with pytest.raises(InvalidInputError, match="every document abnormal"):
        footage_of(corpus, [Label(0.0, 160.0)], 90.0)
    with pytest.raises(InvalidInputError, match="outside the video"):
        footage_of(corpus, [Label(1000.0, 1010.0)], 90.0)
    again = Corpus.joined([corpus, corpus])
    with pytest.raises(InvalidInputError, match="one video at a time"):
        footage_of(again, labels(), 90.0)


def test_the_identity_tells_everything_apart_that_changes_a_result(footage):
    known = identity_of(footage, QUICK)
    assert identity_of(footage, QUICK) == known
    counts = footage.corpus.counts.copy()
    counts.data[0] += 1
    other = Corpus(counts, vocabulary=footage.corpus.vocabulary)
    changed = [
        identity_of(footage._replace(corpus=other), QUICK),
        identity_of(footage._replace(labels=labels()[:2]), QUICK),
        identity_of(footage._replace(n_train=80), QUICK),
        identity_of(footage, replace(QUICK, seed=8)),
    ]
    differing = [[name for name in known if other[name] != known[name]] for other in changed]
    assert differing == [["documents"], ["labels"], ["training"], ["settings"]]


def test_where_it_is_moment_by_moment_goes_before_the_box_of_all_its_time(footage):
    track = (Sighting(101.5, Box(1, 2, 3, 4)), Sighting(102.5, Box(5, 6, 7, 8)))
    labels = [Label(101, 103, "", Box(0, 0, 9, 9), track), Label(110, 112, "", Box(1, 1, 2, 2))]
    places = footage_of(footage.corpus, labels, 100).places
    assert [place.box for place in places] == [(1, 2, 3, 4), (5, 6, 7, 8), (1, 1, 2, 2)]
    assert 101.5 == places[0].start < places[0].end < 101.51
    assert places[2][:2] == (110, 112)
