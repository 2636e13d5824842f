"""What the nursery loads before it forks: libraries, and kernels as machine code.

Importing this module does it. Whatever is loaded here costs its memory once, and whatever a camera
loads itself costs it once for each camera.
"""

import cv2
import numpy as np

import habitus.cameras.watcher  # noqa: F401 - and all that it imports
from habitus.anomaly.events import EventJoiner
from habitus.anomaly.scene_model import learn_scene
from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import warm_up

# Documents of the scene that kernels are loaded with: enough that some can be held out.
N_DOCUMENTS = 120


def load_kernels() -> None:
    """Call every kernel once: of motion, and by a tiny scene those of learning and of judging."""
    cv2.setNumThreads(1)
    warm_up(DocumentSettings())
    vocabulary = Vocabulary.of_frame(64, 64, words="fine", scale=1)
    counts = np.random.default_rng(0).poisson(0.02, (N_DOCUMENTS, vocabulary.n_words))
    corpus = Corpus(counts, vocabulary=vocabulary)
    scene = learn_scene(
        corpus, n_topics=2, n_behaviours=2, n_restarts=1, n_iterations=2, random_state=0
    )
    detector = scene.detector(threshold=0.0)
    joiner = EventJoiner(detector)
    for time, document in enumerate(corpus.bags()):
        judgement = detector.step(document, vocabulary=vocabulary)
        words = detector.in_model_words(document, vocabulary)
        joiner.add(time, words, judgement, detector.threshold)


load_kernels()
