"""Scores of test documents, and localisation recall document by document."""

import numpy as np
import pytest

from habitus import Corpus
from habitus.evaluation.labels import Label, Sighting
from habitus.lab.comparison.protocol import LEARNING_RUNS
from habitus.lab.comparison.run_store import Repetition
from habitus.lab.comparison.runs import carry_out
from habitus.lab.comparison.scoring import (
    N_TOP,
    SHARES,
    chance_recall,
    labelled_words,
    mean_recall,
    score_test,
)
from habitus.model.expected_counts import gather
from habitus.model.online import filter_document, filter_tables
from habitus.scene.localisation import Box
from reference.corpora import random_parameters
from reference.labelled import BOX, EVENTS, QUICK


def test_abnormal_words_are_those_with_the_centre_of_their_cell_in_the_box(footage, labelled):
    documents = [t for start, end in EVENTS for t in range(start, end)]
    assert [each.document for each in labelled] == documents
    vocabulary, counts = footage.corpus.vocabulary, footage.corpus.counts
    for document, abnormal in labelled:
        here = slice(counts.indptr[document], counts.indptr[document + 1])
        left, top, right, bottom = vocabulary.boxes(counts.indices[here]).T
        x, y = (left + right) / 2, (top + bottom) / 2
        inside = (x > BOX.left) & (x < BOX.right) & (y > BOX.top) & (y < BOX.bottom)
        np.testing.assert_array_equal(abnormal, inside)


@pytest.mark.parametrize(("by", "same"), [(3, True), (-3, True), (5, False), (-5, False)])
def test_a_cell_is_in_the_box_if_its_centre_is(footage, labelled, by, same):
    grown = Box(BOX.left - by, BOX.top, BOX.right + by, BOX.bottom + by)
    labels = [label._replace(box=grown) for label in footage.labels]
    found = labelled_words(footage._replace(labels=labels), QUICK)
    alike = [np.array_equal(a.abnormal, b.abnormal) for a, b in zip(found, labelled, strict=True)]
    assert all(alike) == same


def test_recall_is_the_papers_mean_over_documents(footage, labelled):
    rng = np.random.default_rng(0)
    surprisals = [rng.exponential(size=len(each.abnormal)) for each in labelled]
    found = mean_recall(labelled, surprisals, footage)

    def expected(n_top_of):
        each = []
        for (_, abnormal), own in zip(labelled, surprisals, strict=True):
            order = np.argsort(-own)
            n_top = n_top_of(abnormal)
            each.append(abnormal[order][:n_top].sum() / min(n_top, abnormal.sum()))
        return np.mean(each)

    for i, n_top in enumerate(N_TOP):
        np.testing.assert_allclose(found.by_number[i], expected(lambda _, n=n_top: n), rtol=1e-12)
    for i, share in enumerate(SHARES):
        wanted = expected(lambda a, s=share: max(int(np.rint(s * a.sum())), 1))
        np.testing.assert_allclose(found.by_share[i], wanted, rtol=1e-12)


def test_chance_is_the_mean_over_random_orders(footage, labelled):
    rng = np.random.default_rng(1)
    drawn = [
        mean_recall(labelled, [rng.random(len(each.abnormal)) for each in labelled], footage)
        for _ in range(400)
    ]
    chance = chance_recall(labelled)
    for which in ("by_number", "by_share"):
        mean = np.mean([getattr(each, which) for each in drawn], axis=0)
        np.testing.assert_allclose(getattr(chance, which), mean, atol=0.02)


def test_the_model_finds_the_corner(footage, labelled):
    repetition = Repetition(LEARNING_RUNS["em-H+1"], 0)
    (found,) = carry_out(repetition, footage, QUICK, labelled).results.values()
    assert found.recall.by_share[8] > 0.9 > chance_recall(labelled).by_share[8]


def test_sightings_replace_the_box_of_a_label(footage):
    track = (Sighting(102.5, BOX), Sighting(102.7, Box(0, 0, 8, 8)))
    (found,) = labelled_words(footage._replace(labels=[Label(101, 104, "", BOX, track)]), QUICK)
    assert found.document == 102
    assert labelled_words(footage._replace(labels=[]), QUICK) == []


@pytest.mark.parametrize("new_sequence", [False, True])
@pytest.mark.parametrize("n_sets", [1, 3])
def test_scores_are_those_of_filtering_document_by_document(footage, new_sequence, n_sets):
    """The test part continues the training part, unless it starts a sequence of its own."""
    if new_sequence:
        corpus, n = footage.corpus, footage.n_train
        lengths = [n, len(corpus) - n]
        apart = Corpus(corpus.counts, vocabulary=corpus.vocabulary, lengths=lengths)
        footage = footage._replace(corpus=apart)
    sizes = (footage.corpus.n_words, 8, 4)
    sets = [random_parameters(sizes, seed=seed) for seed in range(n_sets)]
    evidence, tables = gather(footage.corpus, min_words=QUICK.min_words), filter_tables(sets)
    expected, belief = [], tables.log_pi
    for t in range(len(footage.corpus)):
        if footage.corpus.first[t]:
            belief = tables.log_pi
        own = slice(evidence.indptr[t], evidence.indptr[t + 1])
        step = filter_document(belief, evidence.words[own], evidence.counts[own], tables)
        expected.append(step.log_evidence / step.n_tokens if step.n_tokens else 0.0)
        belief = step.log_next
    found = score_test(sets, footage, QUICK, [])
    np.testing.assert_allclose(found.normality, expected[footage.n_train :], rtol=1e-12)
    assert found.recall is None
