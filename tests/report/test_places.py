import numpy as np
import pytest

from habitus import Corpus, Detector
from habitus.anomaly.detection import detect_events
from habitus.report.figures.moments import expected_words


def test_places_are_the_abnormal_documents(documents):
    detection = documents.detection
    places = detection.event_spans
    covered = {t for place in places for t in range(place.first, place.last + 1)}
    assert set(np.flatnonzero(detection.abnormal)) <= covered
    for place, event in zip(places, detection.events, strict=True):
        assert detection.corpus.times[place.first] == event.start
        assert detection.corpus.times[place.last] + 1 == event.end
        assert detection.normality[place.peak] == event.normality


def test_times_that_start_anew_do_not_confuse(documents):
    n = len(documents.corpus)
    twice = Corpus(
        np.vstack([documents.corpus.counts.toarray()] * 2),
        times=np.tile(documents.corpus.times, 2), lengths=[n, n],
        vocabulary=documents.corpus.vocabulary,
    )  # fmt: skip
    detector = Detector(documents.model, measure="mean", threshold=documents.detection.threshold)
    detection = detect_events(detector, twice)
    places = detection.event_spans
    half = len(places) // 2
    assert [place.peak for place in places[half:]] == [place.peak + n for place in places[:half]]
    assert [detection.normality[place.peak] for place in places] == [
        event.normality for event in detection.events
    ]


def test_every_abnormal_document_is_localised_and_surprises_add_up(lanes):
    detection = lanes.detection
    assert sorted(detection.abnormal_words) == np.flatnonzero(detection.abnormal).tolist()
    assert all(moment.boxes for moment in detection.abnormal_words.values())
    (event,), (place,) = detection.events, detection.event_spans
    n_words = lanes.corpus.n_tokens[place.peak]
    total = detection.misfit[place.peak] * n_words + detection.shift[place.peak]
    assert total == pytest.approx(event.surprise, rel=1e-9)
    assert detection.abnormal_words[place.peak].words == event.words


def test_expected_words_are_a_distribution(lanes):
    expected = expected_words(lanes.detection.events[0], lanes.model)
    assert expected.sum() == pytest.approx(1, rel=1e-9)
