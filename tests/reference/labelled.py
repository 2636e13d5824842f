"""A small labelled crossing, and a protocol that takes no time."""

import numpy as np

from habitus import Corpus, generate
from habitus.evaluation.labels import Label
from habitus.lab.comparison.protocol import ComparisonProtocol, SplitFootage, split_footage
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.scene.localisation import Box

N_TRAIN, N_TEST = 90, 70
BOX = Box(8, 0, 40, 24)
"""A corner where nothing ever moves."""
EVENTS = [(100, 104), (120, 123), (140, 144)]
QUICK = ComparisonProtocol(
    8,
    4,
    seed=7,
    n_iterations=5,
    burn_in=4,
    thinning=2,
    few=2,
    many=3,
    n_restarts=2,
    n_trees=20,
    lda_iterations=3,
    hmm_iterations=5,
)


def labelled_corpus() -> Corpus:
    """Documents in which something moves in the corner during the events; some are too short."""
    rng, vocabulary = np.random.default_rng(3), crossing_vocabulary()
    lengths = rng.poisson(60, N_TRAIN + N_TEST)
    lengths[[5, 95, 110]] = (0, 0, 10)
    corpus = generate(crossing(), lengths, rng, vocabulary=vocabulary).corpus
    counts = corpus.counts.toarray()
    corner = vocabulary.words([0, 1, 1, 2], [1, 2, 3, 4], [3, 3, 2, 2])
    for start, end in EVENTS:
        for t in range(start, end):
            counts[t, corner] += rng.poisson(3, len(corner))
    return Corpus(counts, vocabulary=vocabulary)


def labels() -> list[Label]:
    """What is abnormal in it."""
    return [Label(float(start), float(end), "corner", BOX) for start, end in EVENTS]


def labelled_footage() -> SplitFootage:
    """Return documents and labels, split into training and test."""
    return split_footage(labelled_corpus(), labels(), float(N_TRAIN))


def write_csv(path, known) -> None:
    """Labels as a file."""
    lines = ["start,end,kind,left,top,right,bottom"]
    lines += [f"{x.start},{x.end},{x.kind},{','.join(map(str, x.box))}" for x in known]
    path.write_text("\n".join(lines) + "\n")
