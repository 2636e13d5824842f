"""What the fork server loads before it forks: libraries, and kernels as machine code.

Importing this module does it. Whatever is loaded here costs its memory once, and whatever a camera
loads itself costs it once for each camera.
"""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

import habitus.site.watcher  # noqa: F401 - and all that it imports
from habitus.corpus.documents import Bag, Corpus
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import HabitusError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import warm_up
from habitus.jobs.workers import end_early
from habitus.scene.events import EventJoiner
from habitus.scene.scene_model import SceneModel, learn_scene

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
    with suppress(OSError, HabitusError), TemporaryDirectory() as folder:  # or a disk is full
        path = Path(folder, "scene.model")
        scene.save(path)
        scene = SceneModel.load(path)
    detector = scene.detector(alerts_per_day=1.0)
    detector.threshold = 0.0
    joiner = EventJoiner(detector)
    for time, (ids, tokens) in enumerate(corpus.bags()):
        document = Bag(ids, tokens.astype(np.int64))  # as a camera counts them
        judgement = detector.step(document, vocabulary=vocabulary)
        words = detector.in_model_words(document, vocabulary)
        joiner.add(time, words, judgement, detector.threshold)


load_kernels()
end_early()  # what compiled kernels beside this process, where they were not in the cache
