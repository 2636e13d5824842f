"""What is said about motion and turns."""

import numpy as np
import pytest

from habitus.anomaly.localisation import (
    Move,
    expectation,
    heaviest,
    motion_in_words,
    place_in_words,
    turn_in_words,
)
from habitus.corpus.vocabulary import Direction, Vocabulary

GRID = Vocabulary(6, 8)
LEFT, RIGHT, UP = Direction.LEFT, Direction.RIGHT, Direction.UP


def scene():
    """Two behaviours: row 1 moves right in the first, column 6 moves up in the second."""
    mixed = np.full((GRID.n_words, 2), 1e-7)
    mixed[GRID.words(np.ones(8, int), np.arange(8), RIGHT), 0] = 1
    mixed[GRID.words(np.arange(6), np.full(6, 6), UP), 1] = 1
    return mixed / mixed.sum(axis=0)


def said(rows, columns, direction, now):
    cells = np.asarray(rows) * GRID.columns + np.asarray(columns)
    expected = expectation(cells, scene(), np.array(now), np.array([0.5, 0.5]), GRID)
    return motion_in_words(Move(direction), expected)


@pytest.mark.parametrize(
    ("rows", "columns", "direction", "now", "words"),
    [
        ([1, 1], [2, 3], LEFT, (1, 0), "leftward motion where the scene moves right"),
        ([4, 5], [1, 1], UP, (1, 0), "upward motion where the scene is usually still"),
        (
            [4, 5],
            [6, 6],
            UP,
            (0.99, 0.01),
            "upward motion that belongs to behaviour 2, during behaviour 1",
        ),
        ([1, 1], [2, 3], RIGHT, (0.9, 0.1), "more rightward motion than usual"),
    ],
)
def test_motion_is_set_against_what_the_scene_does_there(rows, columns, direction, now, words):
    assert said(rows, columns, direction, now) == words


def test_turns_out_of_order_tell_how_often_they_were_seen():
    steps = np.array([[50.0, 0.1, 3], [4, 60, 0], [0, 2, 1]])
    assert turn_in_words(1, 0, 5.0, steps) == (
        "behaviour 1 right after behaviour 2: seen never in training"
    )
    assert "seen 3 times" in turn_in_words(2, 0, 5.0, steps)
    assert "seen once" in turn_in_words(2, 2 - 1, 5.0, steps + 1)
    assert turn_in_words(1, 0, 1.0, steps) is None  # not surprising
    assert turn_in_words(0, 0, 9.0, steps) is None
    assert turn_in_words(-1, 0, 9.0, steps) is None  # nothing came before


def test_places():
    v = Vocabulary.of_frame(300, 300)
    assert place_in_words((0, 0, 40, 40), v) == "in the upper left"
    assert place_in_words((260, 130, 300, 170), v) == "on the right"
    assert place_in_words((130, 130, 170, 170), v) == "in the middle"
    assert place_in_words((130, 260, 170, 300), v) == "in the lower middle"


def test_the_heaviest_group_gives_cells_and_direction():
    words = GRID.words([0, 0, 5], [0, 1, 7], [LEFT, LEFT, UP])
    cells, move = heaviest(words, np.array([2.0, 2, 3]), GRID)
    assert cells.tolist() == [0, 1]
    assert move == (LEFT, 0)


def test_a_usual_way_at_an_unusual_speed_is_told():
    grid = Vocabulary(6, 8, speeds=2)
    mixed = np.full((grid.n_words, 1), 1e-7)
    mixed[grid.words(np.ones(8, int), np.arange(8), RIGHT, 1)] = 1
    words = grid.words([1, 1, 5], [2, 3, 7], [RIGHT, RIGHT, UP], [0, 0, 1])
    cells, move = heaviest(words, np.array([2.0, 2, 3]), grid)
    assert move == (RIGHT, 0)
    one = np.array([1.0])
    expected = expectation(cells, mixed / mixed.sum(), one, one, grid)
    assert motion_in_words(move, expected) == "slow rightward motion where it is usually fast"
    assert motion_in_words(Move(RIGHT, 1), expected) == "more rightward motion than usual"
    assert motion_in_words(Move(LEFT, 1), expected) == "leftward motion where the scene moves right"
