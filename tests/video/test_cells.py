"""Motion per cell, on pictures that no codec has touched."""

import numpy as np
import pytest
from numba import njit

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.video.cells import LEAST_MOTION, cell_changes, cell_motion, halve, pyramid
from habitus.video.vectors import SIDE, block_difference, window_sums
from reference.footage import HEIGHT, WIDTH, moving_square, texture
from reference.footage import SIDE as SQUARE

CELL = 8
ROWS, COLUMNS = HEIGHT // CELL, WIDTH // CELL
START = (56, 40)
# Motion is told from a window of 16 pixels around the middle of a cell of 8.
MARGIN = 4
STEPS = {
    Direction.UP: (0, -1),
    Direction.LEFT: (-1, 0),
    Direction.DOWN: (0, 1),
    Direction.RIGHT: (1, 0),
}


def directions_between(before, after, watched=None):
    watched = np.ones((ROWS, COLUMNS), dtype=np.bool_) if watched is None else watched
    pair = [pyramid(picture, WIDTH, HEIGHT, 1) for picture in (before, after)]
    return cell_motion(*pair, watched, CELL // 2, LEAST_MOTION)


def cells_within(left, top, right, bottom):
    """Cells that lie wholly in a box of pixels."""
    found = np.zeros((ROWS, COLUMNS), dtype=np.bool_)
    rows, columns = -(-top // CELL), -(-left // CELL)
    found[rows : bottom // CELL, columns : right // CELL] = True
    return found


def square_and_touched(velocity):
    """Cells whose windows see nothing but the square in both frames, and those that see any of it.

    The square opens at START and has moved by `velocity`.
    """
    x0, y0 = START
    x1, y1 = x0 + velocity[0], y0 + velocity[1]
    left, top, right, bottom = max(x0, x1), max(y0, y1), min(x0, x1) + SQUARE, min(y0, y1) + SQUARE
    inside = cells_within(left + MARGIN, top + MARGIN, right - MARGIN, bottom - MARGIN)
    touched = np.zeros_like(inside)
    for x, y in ((x0, y0), (x1, y1)):
        touched[y // CELL : -(-(y + SQUARE) // CELL), x // CELL : -(-(x + SQUARE) // CELL)] = True
    return inside, touched


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("speed", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_moving_square_gives_its_direction_in_its_cells(direction, speed, seed):
    velocity = tuple(speed * s for s in STEPS[direction])
    found, change = directions_between(*moving_square(2, velocity=velocity, start=START, seed=seed))
    inside, touched = square_and_touched(velocity)
    assert inside.sum() >= 12
    assert (found[inside] == direction).all()
    assert (found[~touched] == -1).all()
    assert set(np.unique(found)) == {-1, direction}
    assert change > 0


def test_only_watched_cells_are_looked_at():
    watched = np.zeros((ROWS, COLUMNS), dtype=np.bool_)
    watched[8, 10] = True
    found, _ = directions_between(*moving_square(2, start=START), watched)
    assert found[8, 10] == Direction.RIGHT
    assert (found >= 0).sum() == 1


def test_nothing_moves_in_a_still_scene():
    one, two = moving_square(2, velocity=(0, 0), start=START)
    found, change = directions_between(one, two)
    assert (found == -1).all()
    assert change == 0


@pytest.mark.parametrize("step", [-20, -3, 3, 20])
def test_a_change_of_brightness_is_no_motion(step):
    picture = texture(WIDTH, HEIGHT, 0).clip(20, 235)
    found, change = directions_between(picture, (picture.astype(int) + step).astype(np.uint8))
    assert (found == -1).all()
    assert change == pytest.approx(abs(step), abs=0.5)  # half a grey level of rounding


def test_noise_is_no_motion():
    rng = np.random.default_rng(0)
    picture = texture(WIDTH, HEIGHT, 0).astype(float)
    one, two = (np.clip(picture + rng.normal(0, 4, picture.shape), 0, 255) for _ in range(2))
    found, _ = directions_between(one.astype(np.uint8), two.astype(np.uint8))
    assert (found >= 0).mean() < 0.01


@pytest.mark.parametrize(("width", "height"), [(64, 8), (8, 64), (64, 16), (16, 64), (24, 24)])
def test_motion_in_small_frames_reads_nothing_from_beyond_them(width, height):
    """Where such frames are accepted at all: what lies around them in memory must not matter."""
    try:
        grid = Vocabulary.of_frame(width, height, cell=CELL)
    except InvalidInputError:
        return
    watched = np.ones((grid.rows, grid.columns), dtype=np.bool_)
    before = texture(width, height, 0)
    found = []
    for seed in range(30):
        after = before.copy()
        after[:CELL, :CELL] = np.roll(before, 2, axis=1)[:CELL, :CELL]
        pyramids = [pyramid(picture, width, height, 1) for picture in (before, after)]
        placed = [
            type(p)(*(_surrounded(level, seed, seed % 3 * k) for level in p))
            for k, p in enumerate(pyramids)
        ]
        found.append(cell_motion(*placed, watched, CELL // 2, 0.0)[0].tolist())
    assert all(directions == found[0] for directions in found)


def _surrounded(image, seed, shift):
    """The same picture, contiguous, amid memory of something else that moves by `shift`."""
    around = np.roll(texture(256, 64, seed), shift, axis=1).ravel()
    inner = around[8192 : 8192 + image.size].reshape(image.shape)
    inner[:] = image
    return inner


@pytest.mark.parametrize(("width", "height", "padding"), [(16, 8, 0), (17, 9, 15), (160, 128, 32)])
def test_halve_is_the_rounded_mean_of_four(width, height, padding):
    image = np.random.default_rng(0).integers(0, 256, (height, width + padding), dtype=np.uint8)
    whole = image[: height // 2 * 2, : width // 2 * 2].astype(int)
    sums = whole.reshape(height // 2, 2, width // 2, 2).sum(axis=(1, 3))
    assert np.array_equal(halve(image, width, height), (sums + 2) // 4)


def test_a_pyramid_of_a_large_frame_starts_from_the_analysed_one():
    image = np.random.default_rng(0).integers(0, 256, (64, 96), dtype=np.uint8)
    half = halve(halve(image, 96, 64), 48, 32)
    found = pyramid(image, 96, 64, 2)
    assert np.array_equal(found.half, half)
    assert np.array_equal(found.quarter, halve(half, 24, 16))


@pytest.mark.parametrize("side", [2, 4, 8])
def test_cell_changes_are_sums_of_absolute_differences(side):
    rng = np.random.default_rng(side)
    rows, columns = 5, 7
    shape = (rows * side + 1, columns * side + 3)  # more than the cells cover
    one, other = (rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(2))
    one[:side, :side], other[:side, :side] = 0, 255
    apart = abs(one.astype(int) - other)[: rows * side, : columns * side]
    expected = apart.reshape(rows, side, columns, side).sum(axis=(1, 3))
    found = cell_changes(one, other, rows, columns, side)
    assert found[0, 0] == 255 * side * side
    assert np.array_equal(found, expected)


@njit
def difference_at(one, i, other, j, line):
    return block_difference(one, np.uint64(i), other, np.uint64(j), np.uint64(line))


@njit
def sums_at(one, i, other, j, line):
    return window_sums(one, np.uint64(i), other, np.uint64(j), np.uint64(line))


def pictures_to_sum():
    rng = np.random.default_rng(0)
    extremes = [np.zeros((20, 24), np.uint8), np.full((20, 24), 255, np.uint8)]
    checks = (np.indices((20, 24)).sum(axis=0) // 2 % 2 * 255).astype(np.uint8)
    noise = [rng.integers(0, 256, (20, 24), dtype=np.uint8) for _ in range(3)]
    return [*extremes, checks, 255 - checks, *noise]


PLACES = [(1, 1, 1, 1), (11, 15, 1, 1), (3, 7, 8, 2), (5, 5, 6, 15)]


@pytest.mark.parametrize(("y", "x", "v", "u"), PLACES)
def test_block_difference_equals_its_definition(y, x, v, u):
    for one in pictures_to_sum():
        for other in pictures_to_sum():
            a, b = one[y : y + SIDE, x : x + SIDE], other[v : v + SIDE, u : u + SIDE]
            expected = abs(a.astype(int) - b).sum()
            found = difference_at(one.ravel(), y * 24 + x, other.ravel(), v * 24 + u, 24)
            assert found == expected


@pytest.mark.parametrize(("y", "x", "v", "u"), PLACES)
def test_window_sums_equal_their_definition(y, x, v, u):
    for one in pictures_to_sum():
        for other in pictures_to_sum():
            a, b = (
                i.astype(int)[top - 1 : top + SIDE + 1, left - 1 : left + SIDE + 1]
                for i, top, left in ((one, y, x), (other, v, u))
            )
            gx = sum(i[1:-1, 2:] - i[1:-1, :-2] for i in (a, b))
            gy = sum(i[2:, 1:-1] - i[:-2, 1:-1] for i in (a, b))
            d = (b - a)[1:-1, 1:-1]
            expected = [
                term.sum() for term in (gx, gy, d, gx * gx, gx * gy, gy * gy, gx * d, gy * d, d * d)
            ]
            found = sums_at(one.ravel(), y * 24 + x, other.ravel(), v * 24 + u, 24)
            assert list(found) == expected
