"""Starts of learning: seeds of behaviours are documents far apart."""

import numpy as np

from habitus.corpus import Corpus
from habitus.model import starts
from habitus.model.expected_counts import gather
from reference import numpy_lines


class Recorder:
    """A generator that remembers the candidates it drew."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.candidates = []

    def choice(self, *args, **kwargs):
        self.candidates.append(self.rng.choice(*args, **kwargs))
        return self.candidates[-1]


def test_each_seed_is_the_candidate_that_leaves_the_least_distance():
    rng = np.random.default_rng(4)
    groups = rng.dirichlet(np.full(30, 0.1), 5)
    counts = np.stack([rng.multinomial(60, groups[t % 5]) for t in range(40)])
    evidence = gather(Corpus(counts))
    recorder = Recorder(0)
    (seeds,) = starts._seeds(evidence, 5, [recorder])
    distance = np.ones(40)
    n_decided = 0
    for seed, candidates in zip(seeds, recorder.candidates, strict=True):
        likeness = numpy_lines.cosines(evidence, candidates)
        left = np.minimum(distance[:, None], np.maximum(1 - likeness, 0))
        total = left.sum(axis=0)
        n_decided += total.max() - total.min() > 0.01
        best = int(total.argmin())
        assert seed == candidates[best]
        distance = left[:, best]
    assert n_decided >= 2  # a rule that took any other candidate would differ
