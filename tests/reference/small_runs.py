"""Small runs of every learner, to be repeated bit by bit: on other cores, in another process."""

import hashlib

import numpy as np

from habitus import Corpus, MarkovClusteringTopicModel
from habitus.model.generate import generate
from habitus.model.parameters import Sizes
from reference.corpora import random_parameters

LEARNERS = ["em", "vb", "gibbs", "blocked-gibbs"]


def small_corpus() -> Corpus:
    sizes = Sizes(n_words=25, n_topics=3, n_behaviours=3)
    rng = np.random.default_rng(5)
    return generate(random_parameters(sizes, 4), np.full(60, 30), rng, lengths=[40, 20]).corpus


def small_fit(learning: str, *, n_jobs: int = 1) -> MarkovClusteringTopicModel:
    model = MarkovClusteringTopicModel(
        3,
        3,
        learning=learning,
        n_restarts=5,
        n_iterations=20,
        burn_in=15,
        n_samples=2,
        thinning=3,
        n_jobs=n_jobs,
        random_state=0,
    )
    return model.fit(small_corpus())


def fingerprint() -> str:
    """A digest of all that the four learners find."""
    digest = hashlib.sha256()
    for learning in LEARNERS:
        model = small_fit(learning)
        for block in (*model.parameters_, model.objective_, model.restarts_):
            digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()
