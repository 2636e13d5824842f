"""Documents of each event, as reports use them."""

import numpy as np
import pytest

from habitus import Corpus, Detector
from habitus.scene.detection import detect_events


def test_spans_cover_the_abnormal_documents(documents):
    detection = documents.detection
    spans = detection.event_spans
    covered = {t for span in spans for t in range(span.first, span.last + 1)}
    assert set(np.flatnonzero(detection.abnormal)) <= covered
    for span, event in zip(spans, detection.events, strict=True):
        assert detection.corpus.times[span.first] == event.start
        assert detection.corpus.times[span.last] + 1 == event.end
        assert detection.normality[span.peak] == event.normality


def test_spans_where_times_start_again(documents):
    n = len(documents.corpus)
    twice = Corpus(
        np.vstack([documents.corpus.counts.toarray()] * 2),
        times=np.tile(documents.corpus.times, 2),
        lengths=[n, n],
        vocabulary=documents.corpus.vocabulary,
    )
    detector = Detector(documents.model, measure="mean", threshold=documents.detection.threshold)
    detection = detect_events(detector, twice)
    spans = detection.event_spans
    half = len(spans) // 2
    assert [span.peak for span in spans[half:]] == [span.peak + n for span in spans[:half]]
    assert [detection.normality[span.peak] for span in spans] == [
        event.normality for event in detection.events
    ]


def test_every_abnormal_document_is_localised_and_surprise_adds_up(lanes):
    detection = lanes.detection
    assert sorted(detection.abnormal_words) == np.flatnonzero(detection.abnormal).tolist()
    assert all(found.boxes for found in detection.abnormal_words.values())
    (event,), (span,) = detection.events, detection.event_spans
    n_words = lanes.corpus.n_tokens[span.peak]
    total = detection.misfit[span.peak] * n_words + detection.shift[span.peak]
    assert total == pytest.approx(event.surprise, rel=1e-9)
    assert detection.abnormal_words[span.peak].words == event.words
