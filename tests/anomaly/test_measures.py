"""Measures against their formulas, and novelty as a distribution in its place."""

import numpy as np
import pytest

from habitus.anomaly.measures import ANYWHERE, KNOWN, MEASURES, anywhere_of, novelty_of
from habitus.corpus.vocabulary import Vocabulary
from habitus.model.online import filter_document, filter_tables
from reference.corpora import PAPER_SIZES, random_parameters


def test_measures_are_their_formulas():
    tables = filter_tables([random_parameters(PAPER_SIZES, 0)])
    rng = np.random.default_rng(1)
    words = np.sort(rng.choice(6480, 200, replace=False)).astype(np.int32)
    counts = rng.integers(1, 9, 200).astype(float)
    seen, n = filter_document(tables.log_pi, words, counts, tables), counts.sum()
    expected = {
        "mean": seen.log_evidence / n,
        "tail": -(counts * np.maximum(seen.surprisals - 8.5, 0)).sum() / np.sqrt(n),
    }
    assert expected.keys() == MEASURES.keys()
    for name, value in expected.items():
        assert MEASURES[name](seen, counts, 8.5) == pytest.approx(value, rel=1e-12)


def test_novelty_is_a_distribution_around_the_words_that_were_new():
    grid = Vocabulary(20, 30)
    counts = np.zeros(grid.n_words)
    counts[grid.words([5], [7], [2])] = 4
    share, probability = novelty_of(counts, grid)
    assert share == pytest.approx(1 - KNOWN)
    assert probability.sum() == pytest.approx(1, rel=1e-12)
    cells = probability.reshape(20, 30, 4)
    assert np.unravel_index(cells.sum(axis=2).argmax(), (20, 30)) == (5, 7)
    assert np.ptp(cells, axis=2).max() == 0  # any direction
    assert cells[19, 29, 0] == pytest.approx(ANYWHERE / grid.n_words, rel=1e-6)
    mixed = novelty_of(counts, grid).mixed(np.full((grid.n_words, 3), 1 / grid.n_words))
    np.testing.assert_allclose(mixed.sum(axis=0), 1, rtol=1e-12)
    assert np.ptp(novelty_of(counts, None).probability) == 0


def stretches_of_new_words(grid, middles):
    """In each stretch 40 new words, within two cells of its middle."""
    rng = np.random.default_rng(0)
    for row, column in middles:
        counts = np.zeros(grid.n_words)
        rows, columns = row + rng.integers(-2, 3, 40), column + rng.integers(-2, 3, 40)
        np.add.at(counts, grid.words(rows, columns, rng.integers(0, 4, 40)), 1)
        yield counts


def test_places_of_new_words_are_trusted_as_far_as_they_tell_of_others():
    grid = Vocabulary(40, 40)
    alike = list(stretches_of_new_words(grid, [(10, 10)] * 6))
    assert anywhere_of(alike, grid) == ANYWHERE
    apart = list(stretches_of_new_words(grid, [(5, 5), (5, 34), (34, 5), (34, 34), (20, 20)]))
    assert anywhere_of(apart, grid) > 0.99
    mixed = alike[:3] + apart[1:4]
    share = anywhere_of(mixed, grid)
    assert 0.3 < share < 0.7

    def log_likelihood(anywhere):
        total = np.sum(mixed, axis=0)
        return sum(
            own @ np.log(novelty_of(total - own, grid, anywhere).probability) for own in mixed
        )

    assert log_likelihood(share) >= max(map(log_likelihood, np.linspace(0.05, 0.95, 91)))
    assert anywhere_of([np.zeros(grid.n_words)] * 3, grid) >= ANYWHERE
    assert anywhere_of(alike, None) >= ANYWHERE
