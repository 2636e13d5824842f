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
