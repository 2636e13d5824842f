"""The least likely words, their boxes, and the paper's recall."""

from itertools import permutations

import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.scene.localisation import (
    boxes_of,
    connected_groups,
    least_likely,
    localisation_recall,
    random_recall,
)

GRID = Vocabulary.of_frame(720, 576)  # halved once: cells of 16 pixels


@pytest.mark.parametrize("n_top", [1, 3, 10, 50])
def test_least_likely_words_come_first_and_the_more_frequent_wins_a_tie(n_top):
    surprises = np.random.default_rng(0).integers(0, 6, 40).astype(float)
    counts = np.random.default_rng(1).integers(1, 4, 40).astype(float)
    found = least_likely(surprises, counts, n_top)
    expected = sorted(range(40), key=lambda i: (-surprises[i], -counts[i], i))[:n_top]
    assert found.tolist() == expected
    assert len(least_likely(np.empty(0), np.empty(0), n_top)) == 0


def test_recall_is_hits_over_what_could_be_found():
    ranked = np.array([False, True, True, False, True])
    assert localisation_recall(ranked, [1, 2, 3, 4, 5, 9]).tolist() == [
        0,
        1 / 2,
        2 / 3,
        2 / 3,
        1,
        1,
    ]
    assert localisation_recall(np.array([False, True]), 1) == 0
    assert localisation_recall(np.zeros(3, dtype=bool), [1, 3]).tolist() == [1, 1]


def test_recall_of_words_in_random_order_is_the_mean_over_all_orders():
    for n_top in (1, 2, 3, 4, 9):
        found = [
            localisation_recall(np.array(order), n_top)
            for order in permutations([True, True, False, False])
        ]
        assert random_recall(2, 4, n_top) == pytest.approx(np.mean(found), rel=1e-12)


def test_words_near_each_other_share_a_box_in_pixels_of_the_camera():
    left = GRID.words([10, 10, 11], [3, 5, 4], Direction.LEFT)
    right = GRID.words([20], [40], Direction.UP)
    words = np.concatenate([right, left])
    boxes = boxes_of(words, np.array([4.0, 3, 3, 3]), GRID)
    assert boxes == [(48, 160, 96, 192), (640, 320, 656, 336)]


def test_a_stray_word_beside_a_strong_group_gets_no_box():
    words = GRID.words([10, 10, 11, 30], [3, 4, 4, 40], 0)
    assert len(boxes_of(words, np.array([5.0, 5, 5, 1]), GRID)) == 1
    assert boxes_of(words[:0], np.empty(0), GRID) == []


@pytest.mark.parametrize("step", [(0, 1), (1, 0), (1, 1), (0, -1), (1, -1)])
def test_cells_belong_together_up_to_the_reach_and_no_further(step):
    start = np.array([20, 20])
    for apart, n_groups in ((2, 1), (3, 2)):
        rows, columns = np.stack([start, start + apart * np.array(step)], axis=1)
        words = GRID.words(rows, columns, Direction.LEFT)
        assert len(boxes_of(words, np.ones(2), GRID)) == n_groups
        cells = rows * GRID.columns + columns
        groups = connected_groups(cells, GRID.columns)
        assert len(groups) == n_groups
        assert sorted(k for group in groups for k in group) == [0, 1]


def test_cells_at_the_two_ends_of_a_row_are_not_neighbours():
    cells = np.array([5 * GRID.columns - 1, 5 * GRID.columns])
    assert connected_groups(cells, GRID.columns) == [[0], [1]]
