"""What stands for long: survival by brute force, things by their cells, sums to the bit."""

from itertools import pairwise

import numpy as np
import pytest

from habitus.corpus import Vocabulary
from habitus.corpus.stands import StandingCells, StandingWords
from habitus.habits.standing import (
    AT_ONCE,
    EDGES,
    LARGEST,
    LEAST_AGE,
    LEAST_CELLS,
    N_CLASSES,
    SMALL,
    StandingCounts,
    classes_of,
    fit_standing,
    gather_standing,
    implant_statistic,
    standing_evidence,
    standing_surprisals,
)

GRID = Vocabulary(8, 12)
POINT = Vocabulary(1, 1)
ALONE = (1e-9,) * 5
"""Concentrations by which a cell goes by its own counts."""


def random_words(n, seed=0, vocabulary=GRID, share=0.25):
    rng = np.random.default_rng(seed)
    documents = []
    for _ in range(n):
        cells = np.flatnonzero(rng.random(vocabulary.n_cells) < share)
        documents.append(StandingCells(cells, rng.integers(3, 400, len(cells)), rng.random() < 0.9))
    known = [each if each.known else StandingCells.unknown() for each in documents]
    return StandingWords.of(known, vocabulary.n_cells)


def spells(lengths, gap=5):
    """One cell in which something stands for so many documents, again and again."""
    ages = [age for length in lengths for age in (*[0] * gap, *range(1, length + 1))]
    none = np.empty(0, dtype=np.int64)
    return [
        StandingCells(np.array([0]), np.array([age]), True)
        if age >= EDGES[0]
        else StandingCells(none, none, True)
        for age in ages
    ]


def test_survival_is_the_share_of_documents_in_which_it_stood_as_long():
    lengths = [4, 9, 9, 30, 120]
    documents = spells(lengths)
    words = StandingWords.of(documents, 1)
    counts = StandingCounts.of(words, np.ones(len(documents), dtype=bool), POINT)
    found = np.exp(-standing_surprisals(counts, ALONE, POINT)[0])
    for k, edge in enumerate(EDGES):
        as_long = sum(max(length - edge + 1, 0) for length in lengths)
        share = as_long / len(documents) if edge >= LEAST_AGE else 1.0
        assert found[k] == pytest.approx(share, abs=1e-9)


def test_what_has_stood_for_some_seconds_only_surprises_nowhere():
    assert LEAST_AGE in EDGES
    counts = StandingCounts(np.zeros((GRID.n_cells, N_CLASSES)), 600.0)
    surprisals = standing_surprisals(counts, (10.0,) * 5, GRID)
    bag = np.array([40, 41, 52, 53])
    of_ages = [StandingCells(bag, np.full(4, age), True) for age in (LEAST_AGE - 1, LEAST_AGE)]
    young, old = gather_standing(StandingWords.of(of_ages, GRID.n_cells), surprisals, GRID)
    assert young == 0
    assert old > 3


def test_documents_of_unknown_backgrounds_or_of_a_camera_out_of_order_do_not_count():
    words, usable = random_words(60), np.random.default_rng(1).random(60) < 0.7
    counts = StandingCounts.of(words, usable, GRID)
    assert counts.documents == (words.known & usable).sum()
    expected = np.zeros((GRID.n_cells, N_CLASSES))
    for t in np.flatnonzero(usable):
        for cell, age in zip(*words.cells(t)[:2], strict=True):
            expected[cell, classes_of(np.array(age))] += 1
    assert np.array_equal(counts.stood, expected)


def test_counts_add_up_and_are_taken_back_to_the_bit():
    words, every = random_words(50), np.ones(50, dtype=bool)
    whole = StandingCounts.of(words, every, GRID)
    parts = [
        StandingCounts.of(words.take(np.arange(*ends)), every[slice(*ends)], GRID)
        for ends in pairwise([0, 7, 30, 50])
    ]
    total = parts[0] + parts[1] + parts[2]
    assert np.array_equal(total.stood, whole.stood)
    assert total.documents == whole.documents
    assert np.array_equal((whole - parts[1]).stood, (parts[0] + parts[2]).stood)
    moment = StandingCells(np.array([3, 9]), np.array([5, 70]), True)
    assert np.array_equal(whole.adding(moment).adding(moment, -1.0).stood, whole.stood)


def defined_statistic(standing, surprisals, vocabulary):
    """The heaviest thing, found by joining any two neighbours of about one age."""
    cells, ages = [np.asarray(part).tolist() for part in standing[:2]]
    thing = list(range(len(cells)))
    for _ in cells:
        for i, one in enumerate(cells):
            for j, other in enumerate(cells):
                rows, columns = (divmod(cell, vocabulary.columns) for cell in (one, other))
                beside = max(abs(rows[0] - columns[0]), abs(rows[1] - columns[1])) <= 1
                if beside and abs(ages[i] - ages[j]) <= AT_ONCE:
                    thing[i] = thing[j] = min(thing[i], thing[j])
    heaviest = 0.0
    for number in set(thing):
        members = [i for i in range(len(cells)) if thing[i] == number]
        if LEAST_CELLS <= len(members) <= LARGEST * vocabulary.n_cells:
            values = [surprisals[cells[i], classes_of(np.array(ages[i]))] for i in members]
            heaviest = max(heaviest, min(values) * len(members) / (len(members) + SMALL))
    return heaviest


def test_things_are_found_as_defined_one_at_a_time_or_all_at_once():
    rng = np.random.default_rng(0)
    surprisals = rng.exponential(3.0, (GRID.n_cells, N_CLASSES))
    documents = []
    for _ in range(40):
        cells = np.flatnonzero(rng.random(GRID.n_cells) < rng.uniform(0, 0.4))
        documents.append(StandingCells(cells, rng.choice([10, 11, 13, 60], len(cells)), True))
    found = gather_standing(StandingWords.of(documents, GRID.n_cells), surprisals, GRID)
    assert (found > 0).any()
    for t, standing in enumerate(documents):
        expected = defined_statistic(standing, surprisals, GRID)
        assert found[t] == pytest.approx(expected, rel=1e-12)
        evidence = standing_evidence(standing, surprisals, GRID)
        assert evidence.statistic == found[t]
        assert (found[t] > 0) == (len(evidence.cells) >= LEAST_CELLS)


def test_a_lorry_over_a_usual_place_is_usual_and_the_same_elsewhere_is_not():
    """Cells 0 to 11 are a lane in which vehicles queue; in all others people stop for a moment."""
    lane, pavement = np.arange(12), np.arange(12, GRID.n_cells)
    queue = [StandingCells(lane, np.full(12, age), True) for age in range(3, 40)] * 5
    stops = [StandingCells(pavement, np.full(len(pavement), age), True) for age in (3, 4, 5)] * 9
    counts = StandingCounts.of(
        StandingWords.of([*queue, *stops], GRID.n_cells),
        np.ones(len(queue) + len(stops), dtype=bool),
        GRID,
    )
    surprisals = standing_surprisals(counts, (10.0,) * 5, GRID)

    def statistic(cells, age):
        standing = StandingCells(np.array(sorted(cells)), np.full(len(cells), age), True)
        return standing_evidence(standing, surprisals, GRID).statistic

    car, lorry, away = [3, 4, 5, 6], [3, 4, 5, 15, 16, 17], [75, 76, 77, 78]
    assert statistic(lorry, 20) < 1.2 * statistic(car, 20) < 0.5 * statistic(away, 20)
    assert statistic(car, 20) < 0.5 * statistic(car, 200)


def test_an_implant_weighs_what_the_same_thing_in_a_document_does():
    surprisals = np.random.default_rng(0).exponential(3.0, (GRID.n_cells, N_CLASSES))
    middle = 3 * GRID.columns + 5
    cells = np.sort((middle + GRID.columns * np.arange(-1, 2)[:, None] + np.arange(-1, 2)).ravel())
    document = StandingCells(cells, np.full(9, 60), True)
    found = standing_evidence(document, surprisals, GRID).statistic
    assert implant_statistic(surprisals, middle, 60, GRID.columns) == pytest.approx(found)


def test_concentrations_trust_places_where_they_differ():
    rng = np.random.default_rng(0)
    busy = rng.random(GRID.n_cells) < 0.3

    def part(places):
        documents = []
        for _ in range(100):
            cells = np.flatnonzero(places & (rng.random(GRID.n_cells) < 0.3))
            documents.append(StandingCells(cells, rng.integers(3, 30, len(cells)), True))
        words = StandingWords.of(documents, GRID.n_cells)
        return StandingCounts.of(words, np.ones(100, dtype=bool), GRID)

    apart = fit_standing([part(busy) for _ in range(4)], GRID)
    alike = fit_standing([part(np.ones(GRID.n_cells, dtype=bool)) for _ in range(4)], GRID)
    assert apart[-1] < alike[-1]


def test_the_longest_stay_is_told_by_the_end_of_its_class():
    words = StandingWords.of(spells([9]), 1)
    counts = StandingCounts.of(words, np.ones(len(words.known), dtype=bool), POINT)
    assert counts.longest(np.array([0])) == EDGES[classes_of(np.array(9)) + 1]
    assert (counts - counts).longest(np.array([0])) == 0
