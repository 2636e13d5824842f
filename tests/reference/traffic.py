"""Things that move along two lanes that take turns, as documents: every place is known."""

import numpy as np

from habitus.corpus.documents import Corpus
from habitus.corpus.vocabulary import Direction, Vocabulary

ROWS, COLUMNS, STEP, TURN = 16, 24, 3, 15
"""Of the grid; cells a document; documents that a lane has."""
LENGTH = 5
"""Cells that a thing sweeps in a document: some of them again in the next."""
VOCABULARY = Vocabulary(ROWS, COLUMNS)


def traffic(n_documents: int, seed: int = 0) -> Corpus:
    """One lane to the right in rows 4 and 5, one downwards in columns 18 and 19, and some noise."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.01, (n_documents, ROWS, COLUMNS, 4))
    for turn, begin in enumerate(range(0, n_documents, TURN)):
        lane = COLUMNS if turn % 2 == 0 else ROWS
        places = rng.integers(lane) + np.array([0, lane // 2])  # two things, half a lane apart
        for k in range(min(TURN, n_documents - begin)):
            for place in (places + k * STEP) % lane:
                _sweep(counts[begin + k], place, turn % 2 == 0, rng)
    return Corpus(counts.reshape(n_documents, -1), vocabulary=VOCABULARY)


def _sweep(document, start, rightwards, rng):
    if rightwards:
        cells = document[4:6, start : start + LENGTH, Direction.RIGHT]
    else:
        cells = document[start : start + LENGTH, 18:20, Direction.DOWN]
    cells += rng.poisson(6, cells.shape) + 1
