"""All figures at once, each against a second way to get it."""

import json
from copy import copy

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from habitus.anomaly.detection import detect
from habitus.anomaly.localisation import Box
from habitus.errors import InvalidInputError
from habitus.evaluation.assessment import assess, assess_events, counting
from habitus.evaluation.labels import Label, footage_of
from habitus.evaluation.places import (
    N_TOPS,
    abnormal_words,
    box_hits,
    chance_of_a_hit,
    localise,
    places_of,
)
from reference.planted import BOX, STARTS, detector_of, planted


@pytest.fixture(scope="module")
def judged():
    corpus, model, labels = planted()
    detector = detector_of(model)
    before = copy(detector)
    detection = detect(detector, corpus, source="planted", share=0.05)
    return corpus, labels, before, detection


@pytest.fixture(scope="module")
def found(judged):
    _, labels, before, detection = judged
    return assess(detection, labels, detector=copy(before))


def truth_of(corpus):
    return np.isin(np.arange(len(corpus)), [t for s in STARTS for t in range(s, s + 4)])


def test_figures_of_documents_are_scikit_learns(judged, found):
    corpus, _, _, detection = judged
    truth = truth_of(corpus)
    assert (found.n_documents, found.n_abnormal) == (len(corpus), truth.sum())
    figures = found.documents
    assert figures["precision"].value == pytest.approx(precision_score(truth, detection.abnormal))
    assert figures["recall"].value == pytest.approx(recall_score(truth, detection.abnormal))
    assert figures["area"].chance == figures["precision"].chance == pytest.approx(truth.mean())
    assert figures["roc_area"].chance == 0.5
    assert figures["best_accuracy"].chance == pytest.approx(1 - truth.mean())
    assert figures["recall"].chance == pytest.approx(detection.abnormal.mean())
    assert figures["area"].value > 3 * figures["area"].chance
    for estimate in figures.values():
        assert estimate.low <= estimate.value <= estimate.high


def test_events_of_the_chosen_threshold_are_those_that_detect_gives(judged, found):
    _, labels, _, detection = judged
    hit = [
        any(e.start < la.end + 1 and la.start - 1 < e.end for e in detection.events)
        for la in labels
    ]
    assert found.chosen.at.found.tolist() == hit
    assert found.kinds() == {"strong": [0, 2, 4, 6, 8], "weak": [1, 3, 5, 7]}
    strong, weak = (found.chosen.at.found[k].mean() for k in found.kinds().values())
    assert strong > weak
    assert found.chosen.chance < found.chosen.at.share
    assert [f.at.rate for f in found.at_rates] == [1.0, 2.0, 6.0, 30.0]
    shares = [f.at.share for f in found.at_rates]
    assert shares == sorted(shares)
    assert found.events.y[-1] >= shares[-1]


def test_events_alone_tell_what_the_same_detection_tells(judged, found):
    corpus, labels, _, detection = judged
    alone = assess_events(detection.events, footage_of(corpus, "planted"), labels)
    assert alone.chosen.at.found.tolist() == found.chosen.at.found.tolist()
    assert alone.chosen.at.n_false == found.chosen.at.n_false
    assert alone.chosen.at.rate == found.chosen.at.rate
    assert alone.chosen.chance == pytest.approx(found.chosen.chance)
    assert alone.box_hits == found.box_hits
    assert set(alone.documents) == {"precision", "recall"}
    assert not alone.at_rates
    assert alone.threshold is alone.precision_recall is alone.localisation is None


def test_everything_is_plain_json(judged, found):
    corpus, labels, _, _ = judged
    none = assess_events([], footage_of(corpus, "planted"), labels)
    for one in (found, none):
        values = json.loads(json.dumps(one.to_json(), allow_nan=False))
        assert values["n_events"] == len(labels)
    assert values["events"]["chosen"]["median_delay"] is None
    assert "precision" not in values["documents"]
    assert found.to_json()["localisation"]["n_documents"] == found.localisation.n_documents


def test_localisation_recall_is_the_papers(judged, found):
    """Word by word: sorted by surprise, hits counted, over as many as could be."""
    corpus, _, before, _ = judged
    v, rows = corpus.vocabulary, []
    judgements = copy(before).judge(corpus)
    for t, (document, judgement) in enumerate(zip(corpus.bags(), judgements, strict=True)):
        if not truth_of(corpus)[t]:
            continue
        rows_, columns, *_ = v.places(document.words)
        inside = (rows_ < 3) & (columns >= 18) & (columns < 22)
        ranked = sorted(
            range(len(inside)), key=lambda k: (-judgement.surprisals[k], -document.counts[k])
        )
        rows.append([sum(inside[k] for k in ranked[:n]) / min(n, inside.sum()) for n in N_TOPS])
    where = found.localisation
    assert where.n_documents == len(rows)
    assert where.recall == pytest.approx(np.mean(rows, axis=0), rel=1e-12)
    assert where.recall[0] > 0.7 > 2 * where.chance[0]
    assert where.recall[-1] == where.reach[-1] == pytest.approx(1.0)


def test_the_chance_of_localisation_is_that_of_words_at_random(judged, found):
    corpus, labels, _, _ = judged
    rng, k = np.random.default_rng(0), N_TOPS.index(5)
    inside, indptr = abnormal_words(corpus, places_of(labels)), corpus.counts.indptr
    drawn = []
    for _ in range(60):
        for t in np.flatnonzero(truth_of(corpus)):
            here = inside[indptr[t] : indptr[t + 1]]
            drawn.append(rng.permutation(here)[:5].sum() / min(5, here.sum()))
    assert found.localisation.chance[k] == pytest.approx(np.mean(drawn), rel=0.05)


@pytest.mark.parametrize(("by", "same"), [(3, True), (-3, True), (5, False), (-5, False)])
def test_a_cell_is_in_the_box_if_its_middle_is(judged, found, by, same):
    corpus, labels, before, _ = judged
    box = Box(BOX.left - by, 0, BOX.right + by, 24 + by)
    grown = [label._replace(box=box) for label in labels]
    where = localise(copy(before), corpus, grown, truth_of(corpus))
    assert np.array_equal(where.reach, found.localisation.reach) == same
    assert np.array_equal(where.recall, found.localisation.recall) == same


def test_boxes_hit_where_they_overlap(judged, found):
    _, labels, _, detection = judged
    n_hits = n = 0
    for label in labels:
        event = next(
            (e for e in detection.events if e.start < label.end + 1 and label.start - 1 < e.end),
            None,
        )
        if event is not None:
            n += 1
            n_hits += any(
                a.left < BOX.right and BOX.left < a.right
                and a.top < BOX.bottom and BOX.top < a.bottom
                for a in event.boxes
            )  # fmt: skip
    assert found.box_hits[:2] == (n, n_hits)
    assert n_hits / n > 2 * found.box_hits.chance
    assert box_hits(detection.events, [la._replace(box=None) for la in labels], 1.0, (9, 9)) is None


def test_the_chance_of_a_hit_against_boxes_thrown_at_random():
    rng = np.random.default_rng(0)
    truth, boxes = np.array([[30, 20, 70, 60], [150, 90, 170, 100]]), [Box(0, 0, 24, 16)]
    left, top = rng.integers(0, 192 - 24 + 1, 20_000), rng.integers(0, 128 - 16 + 1, 20_000)
    hit = np.zeros(20_000, dtype=bool)
    for a, b, c, d in truth:
        hit |= (left < c) & (a < left + 24) & (top < d) & (b < top + 16)
    expected = hit.mean()
    assert chance_of_a_hit(boxes, truth, (192, 128)) == pytest.approx(expected, abs=0.02)
    both = chance_of_a_hit(boxes * 2, truth, (192, 128))
    assert both == pytest.approx(1 - (1 - expected) ** 2, abs=0.03)
    assert chance_of_a_hit([Box(0, 0, 192, 128)], truth, (192, 128)) == 1.0
    assert chance_of_a_hit([], truth, (192, 128)) == 0.0


def test_what_was_over_before_the_first_document_does_not_count():
    labels = [Label(50, 60), Label(1, 9), Label(8, 12, "x")]
    assert counting(labels, 10.0) == [Label(10.0, 12, "x"), Label(50, 60)]


def test_labels_without_place_have_no_localisation(judged):
    corpus, labels, before, _ = judged
    bare = [label._replace(box=None) for label in labels]
    assert localise(copy(before), corpus, bare, truth_of(corpus)) is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "no document abnormal"),
        ([Label(0.0, 450.0)], "every document abnormal"),
    ],
)
def test_labels_that_tell_nothing_are_refused(judged, labels, message):
    corpus, _, _, detection = judged
    with pytest.raises(InvalidInputError, match=message):
        assess(detection, labels)
    with pytest.raises(InvalidInputError, match=message):
        assess_events(detection.events, footage_of(corpus, "planted"), labels)


def test_events_of_other_footage_are_refused(judged):
    corpus, labels, _, detection = judged
    short = footage_of(corpus.take(np.arange(60)), "short")
    with pytest.raises(InvalidInputError, match="outside short, which ends at 60 s"):
        assess_events(detection.events, short, labels[:1])
    with pytest.raises(InvalidInputError, match="shorter than the 99 s to skip"):
        assess_events([], short, labels[:1], skip=99.0)
