"""Objects changed into synthetic anomalies: cells, directions and word counts, exactly."""

import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction
from habitus.lab.tuning.synthetic import (
    heading,
    reverse_path,
    scale_words,
    shift_object,
    straight_path,
)


def words(seed=0):
    return np.random.default_rng(seed).poisson(1.0, (3, 6, 8, 4)).astype(float)


def test_a_reversed_path_has_the_last_document_first_and_every_direction_reversed():
    given = words()
    found = reverse_path(given)
    turned = {
        Direction.UP: Direction.DOWN,
        Direction.DOWN: Direction.UP,
        Direction.LEFT: Direction.RIGHT,
        Direction.RIGHT: Direction.LEFT,
    }
    for k in range(3):
        for direction, opposite in turned.items():
            assert np.array_equal(found[k, :, :, opposite], given[2 - k, :, :, direction])
    assert np.array_equal(reverse_path(found), given)
    with_speeds = reverse_path(np.repeat(given, 2, axis=3) * np.tile([1, 3], 4))
    assert np.array_equal(with_speeds, np.repeat(found, 2, axis=3) * np.tile([1, 3], 4))


@pytest.mark.parametrize("shift", [(0, 0), (2, 3), (-2, 1), (1, -4), (-5, -7), (6, 0), (0, -9)])
def test_a_shifted_object_has_every_word_that_many_cells_further(shift):
    given, expected = words(), np.zeros((3, 6, 8, 4))
    for row in range(6):
        for column in range(8):
            there = row + shift[0], column + shift[1]
            if 0 <= there[0] < 6 and 0 <= there[1] < 8:
                expected[:, there[0], there[1]] = given[:, row, column]
    assert np.array_equal(shift_object(given, *shift), expected)


def test_strength_scales_the_number_of_words_to_whole_numbers():
    given = words(1)
    rng = np.random.default_rng(2)
    assert np.array_equal(scale_words(given, 1.0, rng), given)
    assert np.array_equal(scale_words(given, 2.0, rng), 2 * given)
    drawn = np.mean([scale_words(given, 0.3, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(drawn, 0.3 * given, atol=0.04)
    half = scale_words(given, 0.5, rng)
    assert (half % 1 == 0).all()
    assert (half[given == 0] == 0).all()


def test_a_straight_path_sweeps_the_cells_near_its_line_and_no_other():
    start, end = np.array([2.0, 1.0]), np.array([8.0, 13.0])
    options = {"speed": 4.0, "width": 3.0, "n_words": 50.0, "shape": (12, 16)}
    path = straight_path(start, end, speeds=np.ones(1), **options)
    both = straight_path(start, end, speeds=np.array([0.2, 0.8]), **options)
    np.testing.assert_allclose(both[..., 2 * Direction.RIGHT + 1], 0.8 * path[..., 3], rtol=1e-12)
    assert len(path) == round(np.hypot(6, 12) / 4)
    np.testing.assert_allclose(path.sum(axis=(1, 2, 3)), 50.0, rtol=1e-12)
    assert np.flatnonzero(path.sum(axis=(0, 1, 2))).tolist() == [Direction.RIGHT]
    swept = path.sum(axis=(0, 3)) > 0
    line = start + np.linspace(0, 1, 2001)[:, None] * (end - start)
    for row in range(12):
        for column in range(16):
            distance = np.hypot(*(line - (row, column)).T).min()
            if abs(distance - 1.5) > 1e-3:  # the line above has its own steps
                assert swept[row, column] == (distance < 1.5)


def test_a_straight_path_continues_from_document_to_document():
    path = straight_path(
        np.array([5.0, 14.0]),
        np.array([5.0, 2.0]),
        speed=3,
        width=1,
        n_words=8,
        speeds=np.ones(1),
        shape=(10, 16),
    )
    columns = [np.flatnonzero(words.sum(axis=(0, 2))).tolist() for words in path]
    assert columns == [[11, 12, 13, 14], [8, 9, 10, 11], [5, 6, 7, 8], [2, 3, 4, 5]]
    assert (path[..., Direction.LEFT] > 0).sum() == 16


@pytest.mark.parametrize(
    ("way", "direction"),
    [
        ((-3, 1), Direction.UP),
        ((1, -3), Direction.LEFT),
        ((2, 2), Direction.DOWN),
        ((-1, 4), Direction.RIGHT),
    ],
)
def test_the_nearest_of_four_directions(way, direction):
    assert heading(np.array(way, dtype=float)) is direction
