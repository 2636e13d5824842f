"""A signalised crossing as a model: lanes are topics, phases of the signals are behaviours."""

from collections.abc import Iterable

import numpy as np

from habitus.arrays import Array
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.model import Parameters

ROWS, COLUMNS = 16, 24
WEST, EAST = 6, 9
"""Rows of the lanes to the west and to the east."""
SOUTH, NORTH = 10, 13
"""Columns of the lanes to the south and to the north."""
BACKGROUND = 0.02
"""Share of words that are uniform over cells and directions: noise of the motion detector."""
STAY = 0.92
"""Probability that a phase continues for another second."""

LaneWord = tuple[int, int, Direction]
"""Row, column and direction of a word on a lane."""


def crossing_vocabulary() -> Vocabulary:
    """Return the vocabulary of the words in `crossing`: 16 rows and 24 columns of cells.

    Examples
    --------
    >>> crossing_vocabulary().n_words
    1536
    """
    return Vocabulary(ROWS, COLUMNS)


def crossing() -> Parameters:
    """Return the parameters of a small signalised crossing, to generate data from.

    Its eight topics are lanes, turns and pedestrian crossings; its four behaviours are phases of
    the signals, which follow each other in a cycle.

    Examples
    --------
    >>> crossing().sizes
    Sizes(n_words=1536, n_topics=8, n_behaviours=4)
    """
    phi = np.stack([_topic(lane) for lane in _lanes()], axis=1)
    phases = [(0, 1), (2, 3), (4, 5), (6, 7)]
    theta = np.full((phi.shape[1], len(phases)), 0.01)
    for phase, topics in enumerate(phases):
        theta[list(topics), phase] = (0.6, 0.4)
    cycle = np.roll(np.eye(len(phases)), 1, axis=0)
    return Parameters(
        phi=phi,
        theta=theta / theta.sum(axis=0),
        pi=np.full(len(phases), 1 / len(phases)),
        xi=STAY * np.eye(len(phases)) + (1 - STAY) * cycle,
    )


def _lanes() -> list[list[LaneWord]]:
    """Return the words of each topic."""
    down, up, left, right = Direction.DOWN, Direction.UP, Direction.LEFT, Direction.RIGHT
    return [
        [(EAST, c, right) for c in range(COLUMNS)],
        [(WEST, c, left) for c in range(COLUMNS)],
        [(r, SOUTH, down) for r in range(ROWS)],
        [(r, NORTH, up) for r in range(ROWS)],
        # turns from the south to the west, and from the north to the east
        [(r, NORTH, up) for r in range(WEST, ROWS)] + [(WEST, c, left) for c in range(NORTH + 1)],
        [(r, SOUTH, down) for r in range(EAST + 1)]
        + [(EAST, c, right) for c in range(SOUTH, COLUMNS)],
        # pedestrians on two crossings, in both directions
        [(14, c, way) for c in range(6, 18) for way in (left, right)],
        [(r, 3, way) for r in range(3, 13) for way in (up, down)],
    ]


def _topic(lane: Iterable[LaneWord]) -> Array:
    """Return p(word | topic) of a lane two cells wide, denser in its own cells than beside them."""
    counts = np.zeros((ROWS, COLUMNS, len(Direction)))
    for row, column, direction in lane:
        counts[row, column, direction] += 3
        if direction in (Direction.LEFT, Direction.RIGHT):
            counts[row - 1, column, direction] += 1
        else:
            counts[row, column - 1, direction] += 1
    words = counts.ravel()
    return np.asarray((1 - BACKGROUND) * words / words.sum() + BACKGROUND / words.size)
