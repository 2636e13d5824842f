"""What word ids mean: cells, directions, speeds, boxes."""

from dataclasses import replace

import numpy as np
import pytest

from habitus.corpus import vocabulary as module
from habitus.corpus.vocabulary import (
    FAST,
    KINDS,
    N_SPEEDS,
    SPEED_BOUNDS,
    Vocabulary,
    count_words,
)
from habitus.errors import InvalidInputError

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def grid_of(kind, rows=5, columns=7):
    directions, speeds = KINDS[kind]
    return Vocabulary(rows, columns, directions=directions, speeds=speeds)


def test_the_papers_vocabulary():
    assert Vocabulary(36, 45).n_words == 6480


@EVERY_KIND
def test_words_and_places_are_inverse(kind):
    vocabulary, (directions, speeds) = grid_of(kind), KINDS[kind]
    places = vocabulary.places(np.arange(vocabulary.n_words))
    assert np.array_equal(vocabulary.words(*places), np.arange(vocabulary.n_words))
    assert places.rows.max() == 4
    assert places.columns.max() == 6
    assert set(places.directions) == set(range(directions))
    assert set(places.speeds) == set(range(speeds))
    assert vocabulary.n_words == 5 * 7 * directions * speeds
    assert vocabulary.kind == kind


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"speeds": 3}, "speeds must be 1, 2 or 16, found 3"),
        ({"directions": 8}, "directions must be 4 or 12, found 8"),
        ({"scale": 0.25}, "scale of a vocabulary must be an integer from 1 to 65536, found 0.25"),
        ({"scale": 0.5, "cell": 5}, "cell must be even in a doubled frame, found 5"),
    ],
)
def test_other_words_and_scales_are_refused(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        Vocabulary(5, 7, **wrong)


def test_fast_of_the_first_version_is_a_bound_of_the_speeds():
    assert FAST == 31.0
    assert SPEED_BOUNDS[module.FIRST_FAST - 1] == FAST
    assert N_SPEEDS == len(SPEED_BOUNDS) + 1 == 16
    np.testing.assert_allclose(np.diff(np.log(SPEED_BOUNDS)), np.log(1.25), rtol=1e-12)


@EVERY_KIND
def test_a_fine_word_is_part_of_the_coarser_word_of_its_place(kind):
    fine = grid_of("fine", 2, 3)
    coarser = grid_of(kind, 2, 3)
    rows, columns, directions, speeds = fine.places(np.arange(fine.n_words))
    if kind != "fine":
        directions = directions // 3
        speeds = np.where(speeds >= 7, coarser.speeds - 1, 0)
    expected = coarser.words(rows, columns, directions, speeds)
    assert np.array_equal(fine.words_in(coarser, np.arange(fine.n_words)), expected)
    assert fine.refines(coarser)
    assert coarser.refines(fine) == (kind == "fine")


@pytest.mark.parametrize("other", [{"rows": 3}, {"cell": 16}, {"scale": 2}, {"width": 30}])
def test_words_of_another_grid_are_not_sums(other):
    fine = grid_of("fine", 2, 3)
    coarser = replace(fine.coarse, width=0, height=0)
    coarser = replace(coarser, **({"width": 0, "height": 0} | other))
    assert not fine.refines(coarser)
    with pytest.raises(InvalidInputError, match="cannot be summed"):
        fine.words_in(coarser, [0])


@pytest.mark.parametrize("n_pairs", [1, 11])
@EVERY_KIND
def test_counting_moves_equals_the_words_of_the_vocabulary(kind, n_pairs):
    grid = grid_of(kind)
    moves = np.random.default_rng(0).integers(-99, 192, (n_pairs, 5, 7)).clip(-1).astype(np.int16)
    _, rows, columns = np.nonzero(moves >= 0)
    directions, speeds = np.divmod(moves[moves >= 0].astype(np.int64), 16)
    fine = grid_of("fine").words(rows, columns, directions, speeds)
    expected = np.unique(grid_of("fine").words_in(grid, fine), return_counts=True)
    for found, wanted in zip(count_words(moves, grid), expected, strict=True):
        assert np.array_equal(found, wanted)


def test_nothing_that_moves_makes_no_words():
    words, counts = count_words(np.full((3, 5, 7), -1, dtype=np.int16), grid_of("fine"))
    assert len(words) == len(counts) == 0


@EVERY_KIND
def test_cells_and_moves_number_the_places_of_words(kind):
    vocabulary = grid_of(kind)
    words = np.random.default_rng(0).permutation(vocabulary.n_words)
    rows, columns, directions, speeds = vocabulary.places(words)
    assert np.array_equal(vocabulary.cells(words), rows * 7 + columns)
    assert np.array_equal(vocabulary.moves(words), directions * vocabulary.speeds + speeds)
    assert vocabulary.n_cells * vocabulary.per_cell == vocabulary.n_words


@pytest.mark.parametrize(
    ("width", "height", "scale", "side"),
    [(1280, 720, 2, 16), (360, 240, 1, 8), (320, 232, 0.5, 4), (160, 120, 0.5, 4)],
)
def test_boxes_lie_in_the_frame_of_the_camera(width, height, scale, side):
    vocabulary = Vocabulary.of_frame(width, height, words="coarse")
    boxes = vocabulary.boxes(np.arange(vocabulary.n_words))
    assert vocabulary.scale == scale
    assert vocabulary.cell_side == side
    assert boxes.min() == 0
    assert boxes[:, 2].max() == width
    assert boxes[:, 3].max() == height
    assert (boxes[:, 2:] - boxes[:, :2] == side).all()
    assert Vocabulary(**vocabulary.to_json()) == vocabulary


def test_an_unknown_kind_of_words_is_refused():
    with pytest.raises(InvalidInputError, match="fine, coarse, paper, found 'good'") as raised:
        Vocabulary.of_frame(360, 288, words="good")
    assert raised.value.parameter == "words"
