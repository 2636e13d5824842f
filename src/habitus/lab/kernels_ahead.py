"""Kernels that the demonstration needs after rendering, called once; importing it does that.

On a first use another process imports this module; see `habitus.jobs.workers.compile_ahead`.
"""

import numpy as np

import habitus.scene.ahead  # noqa: F401 - calls those of judging
from habitus.corpus import Corpus
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import warm_up
from habitus.model import TopicModel


def call_kernels() -> None:
    """Measure the motion of a few frames, and learn from a few documents."""
    warm_up(DocumentSettings())
    counts = np.random.default_rng(0).poisson(1.0, (8, 16))
    TopicModel(n_topics=2, n_behaviours=2, n_iterations=2, random_state=0).fit(Corpus(counts))


call_kernels()
