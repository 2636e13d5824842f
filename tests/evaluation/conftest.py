"""A rendered junction, and a corpus with planted events judged by a detector."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from habitus import Corpus
from habitus.evaluation.labels import Label
from habitus.lab import Junction
from habitus.scene.detection import Detection, detect_events
from reference.planted import STARTS, detector_of, planted


@pytest.fixture(scope="session")
def scene():
    """Return a small junction with three anomalies."""
    return Junction(
        seed=305,
        seconds=150,
        normal_for=80,
        anomalies_per_hour=300,
        width=160,
        height=128,
        fps=12.5,
    )


class Judged(NamedTuple):
    """Planted events as a detector judged them."""

    corpus: Corpus
    labels: list[Label]
    model: Any
    detection: Detection
    surprisals: list[Any]
    """Surprisals of the words of each document, from single steps of a detector."""

    @property
    def abnormal(self):
        """Return whether each document has planted words."""
        documents = [t for start in STARTS for t in range(start, start + 4)]
        return np.isin(np.arange(len(self.corpus)), documents)


@pytest.fixture(scope="session")
def judged():
    corpus, model, labels = planted()
    detector = detector_of(model)
    surprisals = [detector.step(document).surprisals for document in corpus.bags()]
    detection = detect_events(detector_of(model), corpus, source="planted", share=0.05)
    return Judged(corpus, labels, model, detection, surprisals)
