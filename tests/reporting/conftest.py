"""Detections to report on: footage with one event, and documents without footage."""

from typing import NamedTuple

import numpy as np
import pytest

from habitus import Corpus, Detector, MarkovClusteringTopicModel, generate
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene.calibration import Calibration, CalibrationSettings, calibrate
from habitus.scene.detection import Detection, detect_events
from habitus.scene.scene_model import learn_scene
from habitus.video import Source
from reference.two_lanes import normal_documents, two_lanes


class Found(NamedTuple):
    """A model, and what it found in a corpus."""

    model: MarkovClusteringTopicModel
    corpus: Corpus
    detection: Detection
    source: Source | None = None
    calibration: Calibration | None = None


@pytest.fixture(scope="session")
def lanes(tmp_path_factory) -> Found:
    """Return what was found in footage of two lanes with one event."""
    source = Source(str(two_lanes(tmp_path_factory.mktemp("lanes") / "lanes.mp4")))
    corpus, _ = extract_corpus([source], DocumentSettings(scale=1))  # boxes of ten words need room
    normal = corpus.take(normal_documents(len(corpus)))
    model = MarkovClusteringTopicModel(2, 2, random_state=0).fit(normal)
    calibration = calibrate(model, normal, settings=CalibrationSettings(n_folds=2))
    detector = Detector(model, calibration, alerts_per_day=480)
    return Found(
        model, corpus, detect_events(detector, corpus, source="lanes.mp4"), source, calibration
    )


@pytest.fixture(scope="session")
def habitual(lanes) -> Found:
    """Return what habits find in the footage of two lanes."""
    scene = learn_scene(
        lanes.corpus.take(normal_documents(len(lanes.corpus))),
        n_topics=2,
        n_behaviours=2,
        n_restarts=1,
        random_state=0,
    )
    found = detect_events(scene.detector(), lanes.corpus, source="lanes.mp4")
    return Found(scene.model, lanes.corpus, found, lanes.source)


@pytest.fixture(scope="session")
def documents() -> Found:
    """Return what was found in documents of the crossing, some with random words; no footage."""
    rng = np.random.default_rng(0)
    v = crossing_vocabulary()
    normal = generate(crossing(), rng.poisson(80, 300), rng, vocabulary=v).corpus
    model = MarkovClusteringTopicModel(8, 4, random_state=0).fit(normal)
    counts = normal.counts.toarray()
    for t in range(5, len(counts), 20):
        np.add.at(counts[t], rng.integers(0, v.n_words, 30), 1)
    corpus = Corpus(counts, vocabulary=v)
    detector = Detector(model, measure="mean", threshold=0.0)
    return Found(
        model, corpus, detect_events(detector, corpus, source="crossing.corpus", share=0.05)
    )
