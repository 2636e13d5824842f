"""Localisation recall and hits of boxes, each against a plain loop or random draws."""

import numpy as np
import pytest

from habitus.evaluation.labels import abnormal_places, abnormal_words
from habitus.evaluation.spatial_accuracy import N_TOPS, box_hits, chance_of_hit, localise
from habitus.scene.localisation import Box
from reference.planted import BOX


def localised(judged, labels=None):
    surprisals = np.concatenate(judged.surprisals)
    return localise(judged.corpus, surprisals, judged.abnormal, labels or judged.labels)


def test_localisation_recall_is_the_papers(judged):
    """Word by word: ranked by surprisal, hits over as many as are possible."""
    v, rows = judged.corpus.vocabulary, []
    for t, document in enumerate(judged.corpus.bags()):
        if not judged.abnormal[t]:
            continue
        rows_, columns, *_ = v.places(document.words)
        inside = (rows_ < 3) & (columns >= 18) & (columns < 22)
        surprisals = judged.surprisals[t]
        ranked = sorted(range(len(inside)), key=lambda k: (-surprisals[k], -document.counts[k]))
        rows.append([sum(inside[k] for k in ranked[:n]) / min(n, inside.sum()) for n in N_TOPS])
    found = localised(judged)
    assert found.n_documents == len(rows)
    assert found.recall == pytest.approx(np.mean(rows, axis=0), rel=1e-12)
    assert found.recall[0] > 0.7 > 2 * found.chance[0]
    assert found.recall[-1] == found.reach[-1] == pytest.approx(1.0)


def test_the_chance_of_localisation_is_that_of_words_in_random_order(judged):
    rng, k, corpus = np.random.default_rng(0), N_TOPS.index(5), judged.corpus
    inside, indptr = abnormal_words(corpus, abnormal_places(judged.labels)), corpus.counts.indptr
    drawn = []
    for _ in range(60):
        for t in np.flatnonzero(judged.abnormal):
            here = inside[indptr[t] : indptr[t + 1]]
            drawn.append(rng.permutation(here)[:5].sum() / min(5, here.sum()))
    assert localised(judged).chance[k] == pytest.approx(np.mean(drawn), rel=0.05)


@pytest.mark.parametrize(("by", "same"), [(3, True), (-3, True), (5, False), (-5, False)])
def test_a_cell_is_in_the_box_if_its_centre_is(judged, by, same):
    box = Box(BOX.left - by, 0, BOX.right + by, 24 + by)
    grown = [label._replace(box=box) for label in judged.labels]
    before, found = localised(judged), localised(judged, grown)
    assert np.array_equal(found.reach, before.reach) == same
    assert np.array_equal(found.recall, before.recall) == same


def test_labels_without_a_box_have_no_localisation(judged):
    bare = [label._replace(box=None) for label in judged.labels]
    assert localised(judged, bare) is None


def test_boxes_hit_where_they_overlap(judged):
    n_hits = n = 0
    for label in judged.labels:
        event = next(
            (
                e
                for e in judged.detection.events
                if e.start < label.end + 1 and label.start - 1 < e.end
            ),
            None,
        )
        if event is not None:
            n += 1
            n_hits += any(
                a.left < BOX.right
                and BOX.left < a.right
                and a.top < BOX.bottom
                and BOX.top < a.bottom
                for a in event.boxes
            )
    v = judged.corpus.vocabulary
    found = box_hits(judged.detection.events, judged.labels, 1.0, (v.width, v.height))
    assert found[:2] == (n, n_hits)
    assert n_hits / n > 2 * found.chance
    bare = [label._replace(box=None) for label in judged.labels]
    assert box_hits(judged.detection.events, bare, 1.0, (9, 9)) is None
    assert box_hits(judged.detection.events, judged.labels, 1.0, None) is None


def test_the_chance_of_a_hit_against_boxes_at_random_places():
    rng = np.random.default_rng(0)
    labelled, boxes = np.array([[30, 20, 70, 60], [150, 90, 170, 100]]), [Box(0, 0, 24, 16)]
    left, top = rng.integers(0, 192 - 24 + 1, 20_000), rng.integers(0, 128 - 16 + 1, 20_000)
    hit = np.zeros(20_000, dtype=bool)
    for a, b, c, d in labelled:
        hit |= (left < c) & (a < left + 24) & (top < d) & (b < top + 16)
    expected = hit.mean()
    assert chance_of_hit(boxes, labelled, (192, 128)) == pytest.approx(expected, abs=0.02)
    both = chance_of_hit(boxes * 2, labelled, (192, 128))
    assert both == pytest.approx(1 - (1 - expected) ** 2, abs=0.03)
    assert chance_of_hit([Box(0, 0, 192, 128)], labelled, (192, 128)) == 1.0
    assert chance_of_hit([], labelled, (192, 128)) == 0.0
