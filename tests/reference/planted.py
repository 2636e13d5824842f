"""Documents of the crossing with motion planted where it is usually still, and their labels."""

import numpy as np

from habitus import Corpus, MarkovClusteringTopicModel, generate
from habitus.evaluation.labels import Label
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene import CalibrationSettings, SceneModel, calibrate
from habitus.scene.localisation import Box

BOX = Box(144, 0, 176, 24)  # rows 0 to 2, columns 18 to 21 of cells of 8 pixels
STARTS = range(30, 400, 45)


def planted(n_words=12, weak=3):
    """A corpus, a calibrated model and labels; every second event has only `weak` such words."""
    rng = np.random.default_rng(0)
    v = crossing_vocabulary()
    normal = generate(crossing(), rng.poisson(80, 300), rng, vocabulary=v).corpus
    model = MarkovClusteringTopicModel(8, 4, n_restarts=2, random_state=0).fit(normal)
    calibration = calibrate(model, normal, settings=CalibrationSettings(n_folds=3))
    counts = generate(crossing(), rng.poisson(80, 450), rng, vocabulary=v).corpus.counts.toarray()
    for k, start in enumerate(STARTS):
        for t in range(start, start + 4):
            n = weak if k % 2 else n_words
            words = v.words(rng.integers(0, 3, n), rng.integers(18, 22, n), rng.integers(0, 4, n))
            np.add.at(counts[t], words, 1)
    labels = [
        Label(start, start + 4.0, "weak" if k % 2 else "strong", BOX)
        for k, start in enumerate(map(float, STARTS))
    ]
    n_frames = np.full(len(counts), 25)
    return Corpus(counts, vocabulary=v, n_frames=n_frames), SceneModel(model, calibration), labels


def detector_of(scene):
    """A fresh detector of the paper's measure."""
    return scene.detector(measure="mean", share=0.02)
