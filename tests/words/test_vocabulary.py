import numpy as np

from habitus.words import Direction, Vocabulary


def test_the_papers_vocabulary():
    assert Vocabulary(36, 45).n_words == 6480


def test_words_and_places_are_inverse():
    vocabulary = Vocabulary(5, 7)
    places = vocabulary.places(np.arange(vocabulary.n_words))
    assert np.array_equal(vocabulary.words(*places), np.arange(vocabulary.n_words))
    assert places.rows.max() == 4
    assert places.columns.max() == 6
    assert set(places.directions) == set(Direction)
