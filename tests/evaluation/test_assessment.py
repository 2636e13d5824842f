"""All figures of a detector at once, each against a second way to compute it."""

import json

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from habitus.errors import InvalidInputError
from habitus.evaluation.assessment import assess, evaluate_events, evaluate_model
from habitus.evaluation.labels import Label, Sighting, footage_of_corpus, labels_since
from habitus.evaluation.spatial_accuracy import localise
from habitus.scene.localisation import Box
from reference.planted import detector_of


@pytest.fixture(scope="module")
def found(judged):
    return evaluate_model(detector_of(judged.model), judged.corpus, judged.labels, share=0.05)


def test_figures_of_documents_are_those_of_scikit_learn(judged, found):
    abnormal, figures = judged.abnormal, found.documents
    decided = judged.detection.abnormal
    assert (found.n_documents, found.n_abnormal) == (len(judged.corpus), abnormal.sum())
    assert figures["precision"].value == pytest.approx(precision_score(abnormal, decided))
    assert figures["recall"].value == pytest.approx(recall_score(abnormal, decided))
    chance = figures["average_precision"].chance
    assert chance == figures["precision"].chance == pytest.approx(abnormal.mean())
    assert figures["roc_auc"].chance == 0.5
    assert figures["best_accuracy"].chance == pytest.approx(1 - abnormal.mean())
    assert figures["recall"].chance == pytest.approx(decided.mean())
    assert figures["average_precision"].value > 3 * chance
    for estimate in figures.values():
        assert estimate.low <= estimate.value <= estimate.high


def test_events_at_the_threshold_are_those_of_the_detection(judged, found):
    hit = [
        any(e.start < la.end + 1 and la.start - 1 < e.end for e in judged.detection.events)
        for la in judged.labels
    ]
    assert found.chosen.found.tolist() == hit
    assert found.kinds() == {"strong": [0, 2, 4, 6, 8], "weak": [1, 3, 5, 7]}
    strong, weak = (found.chosen.found[k].mean() for k in found.kinds().values())
    assert strong > weak
    assert found.chosen.chance < found.chosen.share
    assert [f.rate for f in found.at_rates] == [1.0, 2.0, 6.0, 30.0]
    shares = [f.share for f in found.at_rates]
    assert shares == sorted(shares)
    assert found.events.y[-1] >= shares[-1]


def test_localisation_takes_the_surprisals_of_the_detection(judged, found):
    expected = localise(
        judged.corpus, np.concatenate(judged.surprisals), judged.abnormal, judged.labels
    )
    assert found.localisation.n_documents == expected.n_documents
    assert np.array_equal(found.localisation.recall, expected.recall)


def test_localisation_counts_abnormal_documents_only(judged):
    """A sighting in a document that the label covers to 30 % does not make that one count."""
    v = judged.corpus.vocabulary
    frame = Box(0, 0, v.width, v.height)
    labels = [
        label._replace(
            end=label.start + 4.3,
            track=tuple(Sighting(label.start + k + 0.1, frame) for k in range(5)),
        )
        for label in judged.labels
    ]
    found = assess(judged.detection, labels)
    assert found.n_abnormal == judged.abnormal.sum()
    counted = judged.abnormal & judged.detection.judged
    assert found.localisation.n_documents == counted.sum()


def test_events_alone_give_the_same_figures(judged, found):
    footage = footage_of_corpus(judged.corpus, "planted")
    alone = evaluate_events(judged.detection.events, footage, judged.labels)
    assert alone.chosen.found.tolist() == found.chosen.found.tolist()
    assert alone.chosen.n_false_alarms == found.chosen.n_false_alarms
    assert alone.chosen.rate == found.chosen.rate
    assert alone.chosen.chance == pytest.approx(found.chosen.chance)
    assert alone.box_hits == found.box_hits
    assert set(alone.documents) == {"precision", "recall"}
    assert not alone.at_rates
    assert alone.threshold is alone.precision_recall is alone.localisation is None


def test_all_figures_are_plain_json(judged, found):
    none = evaluate_events([], footage_of_corpus(judged.corpus, "planted"), judged.labels)
    for one in (found, none):
        values = json.loads(json.dumps(one.to_json(), allow_nan=False))
        assert values["n_events"] == len(judged.labels)
    assert values["events"]["chosen"]["median_delay"] is None
    assert "precision" not in values["documents"]
    assert found.to_json()["localisation"]["n_documents"] == found.localisation.n_documents


def test_labels_that_end_before_the_first_document_do_not_count(judged):
    labels = [Label(50, 60), Label(1, 9), Label(8, 12, "x")]
    assert labels_since(labels, 10.0) == [Label(10.0, 12, "x"), Label(50, 60)]
    twice = [Label(50, 60, "x", (0, 0, 9, 9)), Label(50, 60, "x")]
    assert labels_since(twice, 10.0) == twice
    found = evaluate_model(detector_of(judged.model), judged.corpus, judged.labels, skip=100.0)
    assert found.n_documents == len(judged.corpus) - 100
    assert found.labels == [label for label in judged.labels if label.end > 100]


def test_progress_is_reported_up_to_the_end(judged):
    told = []
    evaluate_model(detector_of(judged.model), judged.corpus, judged.labels, progress=told.append)
    assert {each.stage for each in told} == {"evaluating"}
    assert [each.done for each in told] == list(range(1, told[0].total + 1))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "no document abnormal"),
        ([Label(0.0, 450.0)], "every document abnormal"),
    ],
)
def test_labels_of_one_class_are_refused(judged, labels, message):
    with pytest.raises(InvalidInputError, match=message):
        assess(judged.detection, labels)
    with pytest.raises(InvalidInputError, match=message):
        evaluate_events(
            judged.detection.events, footage_of_corpus(judged.corpus, "planted"), labels
        )


def test_events_and_labels_of_other_footage_are_refused(judged):
    short = footage_of_corpus(judged.corpus.take(np.arange(60)), "short")
    with pytest.raises(InvalidInputError, match="outside short, which ends at 60 s"):
        evaluate_events(judged.detection.events, short, judged.labels[:1])
    with pytest.raises(InvalidInputError, match="shorter than the 99 s to skip") as raised:
        evaluate_events([], short, judged.labels[:1], skip=99.0)
    assert raised.value.parameter == "skip"
    with pytest.raises(InvalidInputError, match="shorter than the 999 s to skip"):
        evaluate_model(detector_of(judged.model), judged.corpus, judged.labels, skip=999.0)
    with pytest.raises(InvalidInputError, match="outside the video"):
        evaluate_model(detector_of(judged.model), judged.corpus, [Label(1e4, 2e4)])
