"""Training and test documents, the table of methods, and what is refused."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from habitus import Corpus
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import Label, Sighting, abnormal_places
from habitus.lab.comparison.protocol import (
    GROUPS,
    LEARNING_RUNS,
    identity_of,
    select_runs,
    split_footage,
)
from habitus.scene.localisation import Box
from reference.labelled import EVENTS, N_TEST, N_TRAIN, QUICK, labelled_corpus, labels


def test_documents_before_a_time_are_learnt_from_and_the_others_are_judged(footage):
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
    with pytest.raises(InvalidInputError, match="training must leave documents") as raised:
        split_footage(labelled_corpus(), labels(), train)
    assert raised.value.parameter == "train"


def test_labels_of_one_class_or_outside_the_video_are_refused():
    corpus = labelled_corpus()
    with pytest.raises(InvalidInputError, match="no document abnormal"):
        split_footage(corpus, [Label(10.0, 20.0)], 90.0)
    with pytest.raises(InvalidInputError, match="every document abnormal"):
        split_footage(corpus, [Label(0.0, 160.0)], 90.0)
    with pytest.raises(InvalidInputError, match="outside the video"):
        split_footage(corpus, [Label(1000.0, 1010.0)], 90.0)
    again = Corpus.joined([corpus, corpus])
    with pytest.raises(InvalidInputError, match="one video at a time"):
        split_footage(again, labels(), 90.0)


def test_the_identity_changes_with_everything_that_results_depend_on(footage):
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


def test_sightings_replace_the_box_of_a_label(footage):
    track = (Sighting(101.5, Box(1, 2, 3, 4)), Sighting(102.5, Box(5, 6, 7, 8)))
    labels = [Label(101, 103, "", Box(0, 0, 9, 9), track), Label(110, 112, "", Box(1, 1, 2, 2))]
    places = abnormal_places(split_footage(footage.corpus, labels, 100).labels)
    assert [place.box for place in places] == [(1, 2, 3, 4), (5, 6, 7, 8), (1, 1, 2, 2)]
    assert 101.5 == places[0].start < places[0].end < 101.51
    assert places[2][:2] == (110, 112)


TABLE = """
EM 1 p, EM H p, EM H+1 p,
VB 1 p, VB 1 mc 5, VB 1 mc 100, VB H p, VB H mc 5, VB H mc 100,
VB H+1 p, VB H+1 mc 5, VB H+1 mc 100,
GS 1 p, GS 1 mc 5, GS 1 mc 100, GS H p, GS H mc 5, GS H mc 100,
GS H+1 p, GS H+1 mc 5, GS H+1 mc 100
"""


def test_the_21_methods_of_the_papers_table_are_there_by_its_names():
    runs, _ = select_runs(["em", "vb", "gibbs"])
    names = [method.name for run in runs for method in run.methods]
    assert names == [re.sub(r"\s+", " ", name.strip()) for name in TABLE.split(",")]


def test_groups_and_single_names_select_and_others_are_refused():
    assert select_runs().runs == list(LEARNING_RUNS.values())
    names = [run.name for run in select_runs(["lda", "em"]).runs]
    assert names == ["em-1", "em-H", "em-H+1", "lda"]
    assert {run.group for run in LEARNING_RUNS.values()} == set(GROUPS)
    with pytest.raises(InvalidInputError, match=r"found 'svm'") as raised:
        select_runs(["svm"])
    assert raised.value.parameter == "methods"


def test_without_hmmlearn_its_run_is_left_out_with_a_note(monkeypatch):
    everything, notes = select_runs()
    assert notes == []
    monkeypatch.setitem(sys.modules, "hmmlearn", None)
    runs, notes = select_runs()
    assert [run.name for run in everything if run not in runs] == ["hmm"]
    assert "habitus[compare]" in notes[0]
    assert select_runs(["em"]).notes == []


@pytest.mark.parametrize("changed", [{"n_topics": 0}, {"n_behaviours": 0}, {"seed": -1}])
def test_settings_out_of_range_are_refused(changed):
    (name,) = changed
    with pytest.raises(InvalidInputError, match=f"{name} must be at least") as raised:
        replace(QUICK, **changed)
    assert raised.value.parameter == name
