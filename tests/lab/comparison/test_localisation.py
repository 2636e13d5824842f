"""Recall of localisation against the paper's formula, document by document."""

import numpy as np
import pytest

from habitus.anomaly.localisation import Box
from habitus.evaluation.labels import AbnormalPlace
from habitus.lab.comparison.baselines import N_TOP, SHARES, chance_of, recall_of, truths_of
from habitus.lab.comparison.protocol import CHAINS
from habitus.lab.comparison.runs import run_chain
from reference.labelled import BOX, EVENTS, QUICK


def test_abnormal_words_are_those_with_their_middle_in_the_box(footage, truths):
    documents = [t for start, end in EVENTS for t in range(start, end)]
    assert [truth.document for truth in truths] == documents
    vocabulary, counts = footage.corpus.vocabulary, footage.corpus.counts
    for document, abnormal in truths:
        here = slice(counts.indptr[document], counts.indptr[document + 1])
        left, top, right, bottom = vocabulary.boxes(counts.indices[here]).T
        x, y = (left + right) / 2, (top + bottom) / 2
        inside = (x > BOX.left) & (x < BOX.right) & (y > BOX.top) & (y < BOX.bottom)
        np.testing.assert_array_equal(abnormal, inside)


@pytest.mark.parametrize(("by", "same"), [(3, True), (-3, True), (5, False), (-5, False)])
def test_a_cell_is_in_the_box_if_its_middle_is(footage, truths, by, same):
    grown = Box(BOX.left - by, BOX.top, BOX.right + by, BOX.bottom + by)
    places = [place._replace(box=grown) for place in footage.places]
    found = truths_of(footage._replace(places=places), QUICK)
    alike = [np.array_equal(a.abnormal, b.abnormal) for a, b in zip(found, truths, strict=True)]
    assert all(alike) == same


def test_recall_is_the_papers_mean_over_documents(footage, truths):
    rng = np.random.default_rng(0)
    surprises = {truth.document: rng.exponential(size=len(truth.abnormal)) for truth in truths}
    found = recall_of(truths, surprises, footage)

    def expected(n_top_of):
        each = []
        for document, abnormal in truths:
            order = np.argsort(-surprises[document])
            n_top = n_top_of(abnormal)
            each.append(abnormal[order][:n_top].sum() / min(n_top, abnormal.sum()))
        return np.mean(each)

    for i, n_top in enumerate(N_TOP):
        np.testing.assert_allclose(found.by_number[i], expected(lambda _, n=n_top: n), rtol=1e-12)
    for i, share in enumerate(SHARES):
        wanted = expected(lambda a, s=share: max(int(np.rint(s * a.sum())), 1))
        np.testing.assert_allclose(found.by_share[i], wanted, rtol=1e-12)


def test_chance_is_the_mean_over_random_orders(footage, truths):
    rng = np.random.default_rng(1)
    drawn = [
        recall_of(truths, {t.document: rng.random(len(t.abnormal)) for t in truths}, footage)
        for _ in range(400)
    ]
    chance = chance_of(truths)
    for which in ("by_number", "by_share"):
        mean = np.mean([getattr(each, which) for each in drawn], axis=0)
        np.testing.assert_allclose(getattr(chance, which), mean, atol=0.02)


def test_the_model_finds_the_corner(footage, truths):
    (judged,) = run_chain(CHAINS["em-H+1"], 0, footage, QUICK, truths).judged.values()
    assert judged.recall.by_share[8] > 0.9 > chance_of(truths).by_share[8]


def test_closer_boxes_take_the_place_of_those_of_the_labels(footage):
    moments = [AbnormalPlace(102.5, 102.501, BOX), AbnormalPlace(102.7, 102.701, Box(0, 0, 8, 8))]
    (truth,) = truths_of(footage._replace(places=moments), QUICK)
    assert truth.document == 102
    assert truths_of(footage._replace(places=[]), QUICK) == []
