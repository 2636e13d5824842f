"""What word ids mean: cells, directions, speeds, boxes."""

import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary, count_moves
from habitus.errors import InvalidInputError


def test_the_papers_vocabulary():
    assert Vocabulary(36, 45).n_words == 6480


@pytest.mark.parametrize("speeds", [1, 2])
def test_words_and_places_are_inverse(speeds):
    vocabulary = Vocabulary(5, 7, speeds=speeds)
    places = vocabulary.places(np.arange(vocabulary.n_words))
    assert np.array_equal(vocabulary.words(*places), np.arange(vocabulary.n_words))
    assert places.rows.max() == 4
    assert places.columns.max() == 6
    assert set(places.directions) == set(Direction)
    assert set(places.speeds) == set(range(speeds))
    assert vocabulary.n_words == 5 * 7 * 4 * speeds
    without = vocabulary.paper.places(np.arange(vocabulary.n_words) // speeds)
    assert all(np.array_equal(a, b) for a, b in zip(without[:3], places[:3], strict=True))


def test_there_are_one_or_two_speeds():
    with pytest.raises(InvalidInputError, match="speeds must be 1 or 2, found 3"):
        Vocabulary(5, 7, speeds=3)


@pytest.mark.parametrize("speeds", [1, 2])
def test_counting_moves_equals_the_words_of_the_vocabulary(speeds):
    grid = Vocabulary(5, 7, speeds=speeds)
    moves = np.random.default_rng(0).integers(-1, 8, (11, 5, 7)).astype(np.int8)
    _, rows, columns = np.nonzero(moves >= 0)
    move = moves[moves >= 0].astype(np.int64)
    expected = np.ones(grid.n_words, dtype=np.int64)  # counts are added to those that are there
    np.add.at(expected, grid.words(rows, columns, move % 4, move // 4 * (speeds - 1)), 1)
    counts = np.ones(grid.n_words, dtype=np.int64)
    count_moves(moves, speeds, counts)
    assert np.array_equal(counts, expected)


@pytest.mark.parametrize("speeds", [1, 2])
def test_cells_and_moves_number_the_places_of_words(speeds):
    vocabulary = Vocabulary(5, 7, speeds=speeds)
    words = np.random.default_rng(0).permutation(vocabulary.n_words)
    rows, columns, directions, fast = vocabulary.places(words)
    assert np.array_equal(vocabulary.cells(words), rows * 7 + columns)
    assert np.array_equal(vocabulary.moves(words), directions * speeds + fast)
    assert np.array_equal(
        vocabulary.paper_words(words), vocabulary.paper.words(rows, columns, directions)
    )
    assert vocabulary.n_cells * vocabulary.per_cell == vocabulary.n_words


@pytest.mark.parametrize("further", [(), (3,)])
def test_values_per_word_by_cell_and_summed_over_speeds(further):
    vocabulary = Vocabulary(2, 3, speeds=2)
    values = np.random.default_rng(0).random((vocabulary.n_words, *further))
    by_cell, summed = vocabulary.by_cell(values), vocabulary.summed_over_speeds(values)
    assert summed.shape == (vocabulary.paper.n_words, *further)
    for word in range(vocabulary.n_words):
        value = by_cell[vocabulary.cells(word), vocabulary.moves(word)]
        assert np.array_equal(value, values[word])
    for word in range(0, vocabulary.n_words, 2):
        expected = values[word] + values[word + 1]
        assert np.array_equal(summed[vocabulary.paper_words(word)], expected)


def test_boxes_lie_in_the_frame_of_the_camera():
    vocabulary = Vocabulary.of_frame(1280, 720, speeds=2)
    boxes = vocabulary.boxes(np.arange(vocabulary.n_words))
    assert vocabulary.cell_side == 16
    assert boxes.min() == 0
    assert boxes[:, 2].max() == 1280
    assert boxes[:, 3].max() == 720
    assert (boxes[:, 2:] - boxes[:, :2] == 16).all()
