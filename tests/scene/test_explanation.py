"""What is said about motion and turns, by habits and by the topic model."""

from dataclasses import replace

import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.habits.counts import HabitCounts
from habitus.habits.evidence import STATISTICS, document_evidence
from habitus.habits.hours import HOUR, HOUR_STATISTICS
from habitus.habits.votes import Votes
from habitus.scene.explanation import find_unusual, heat_map
from habitus.scene.fusion import Fusion
from habitus.scene.habit_model import HabitJudgement, HabitModel
from habitus.scene.localisation import (
    Box,
    Move,
    expectation,
    heaviest,
    motion_in_words,
    place_in_words,
    turn_in_words,
)

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
        "behaviour 1 right after behaviour 2: never seen in training"
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


FINE = Vocabulary(30, 30, directions=12, speeds=16)
UP_12, LEFT_12, DOWN_12, RIGHT_12 = 1, 4, 7, 10
N = 200
EVEN = {"place": (1.0,) * 5, "direction": (1.0,) * 5, "speed": (1.0,) * 6}


def habits_of(*seen, vocabulary=FINE):
    """Habits of N documents, in which (cells, direction, speed) were seen so many times."""
    counts = HabitCounts.none(vocabulary)
    for cells, direction, speed, times in seen:
        counts = counts.adding(votes_at(cells, direction, speed), times)
    counts = replace(counts, n_documents=float(N))
    fusion = Fusion(np.zeros((1, len(STATISTICS))), np.array([True]), np.ones(len(STATISTICS)))
    return HabitModel(vocabulary, 1, counts, EVEN, np.zeros(4), fusion)


def votes_at(cells, direction, speed):
    cells = np.asarray(cells, dtype=np.int64)
    return Votes(cells, np.full_like(cells, direction), np.full_like(cells, speed))


def found(habits, votes, cue, gathering="scan"):
    """What is found where this cue was the strongest."""
    v = habits.vocabulary
    evidence = document_evidence(votes, habits.habits, habits.levels, v)
    rarities = np.zeros(len(STATISTICS))
    rarities[STATISTICS.index((cue, gathering))] = 9.0
    return find_unusual(HabitJudgement(-9.0, rarities, votes, evidence), habits)


ROW = 15 * FINE.columns + np.arange(30)
MIDDLE = ROW[15:16]


def sentence(habits, votes, cue, gathering="scan"):
    return found(habits, votes, cue, gathering).explanation


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (0, "in the middle: something small moving where nothing moved before (in 200 seconds)"),
        (
            3,
            "in the middle: something small moving where hardly anything moves "
            "(in 3 of 200 seconds)",
        ),
        (39, "in the middle: something small moving where little moves (in 39 of 200 seconds)"),
        (40, "in the middle: something small moving in a busy place (in 40 of 200 seconds)"),
    ],
)
def test_places_by_habits(times, words):
    habits = habits_of((MIDDLE, LEFT_12, 5, times), ([0], LEFT_12, 5, N))
    assert sentence(habits, votes_at(MIDDLE, LEFT_12, 5), "place") == words


@pytest.mark.parametrize(
    ("seen", "direction", "words"),
    [
        (
            [(RIGHT_12, 100)],
            LEFT_12,
            "moving to the left, where motion is to the right (0 of 100 times)",
        ),
        (
            [(RIGHT_12, 70), (LEFT_12, 1), (UP_12, 29)],
            LEFT_12,
            "moving to the left, where motion is mostly to the right (1 of 100 times)",
        ),
        (
            [(RIGHT_12, 40), (DOWN_12, 40), (UP_12, 20)],
            LEFT_12,
            "moving to the left, as hardly anything there does (0 of 100 times)",
        ),
        (
            [(RIGHT_12, 40), (DOWN_12, 40), (UP_12, 10), (LEFT_12, 10)],
            LEFT_12,
            "moving to the left, as little there does (10 of 100 times)",
        ),
        ([(LEFT_12, 100)], LEFT_12, "moving to the left, as much there does (100 of 100 times)"),
        (
            [(LEFT_12 - 1, 100)],
            LEFT_12 - 2,
            "moving up and to the left, but at an angle that is rare there (0 of 100 times)",
        ),
        ([], LEFT_12, "moving to the left, where nothing moved before"),
    ],
)
def test_directions_by_habits(seen, direction, words):
    habits = habits_of(*((MIDDLE, way, 5, times) for way, times in seen), ([0], UP_12, 5, N))
    said = sentence(habits, votes_at(MIDDLE, direction, 5), "direction")
    assert said == f"in the middle: something small {words}"


def test_cells_nearby_are_counted_where_a_cell_has_few_and_that_is_said():
    habits = habits_of((ROW[14:17], RIGHT_12, 5, 4))
    assert sentence(habits, votes_at(MIDDLE, LEFT_12, 5), "direction") == (
        "in the middle: something small moving to the left, where motion is to the right "
        "(0 of 12 times nearby)"
    )


@pytest.mark.parametrize(
    ("speed", "words"),
    [
        (5, "moving to the left at a usual speed"),
        (6, "moving to the left somewhat faster than usual there (so fast 10 of 100 times)"),
        (8, "moving to the left about twice as fast as usual there (so fast 10 of 100 times)"),
        (
            10,
            "moving to the left about three times as fast as usual there (so fast 0 of 100 times)",
        ),
        (12, "moving to the left about five times as fast as usual there (so fast 0 of 100 times)"),
        (
            15,
            "moving to the left at least 9.3 times as fast as usual there (so fast 0 of 100 times)",
        ),
        (2, "moving to the left at about 51 % of the usual speed there (so slow 0 of 100 times)"),
        (
            0,
            "moving to the left at no more than 33 % of the usual speed there "
            "(so slow 0 of 100 times)",
        ),
    ],
)
def test_speeds_by_habits(speed, words):
    habits = habits_of((MIDDLE, LEFT_12, 5, 90), (MIDDLE, LEFT_12, 9, 10))
    said = sentence(habits, votes_at(MIDDLE, LEFT_12, speed), "speed")
    assert said == f"in the middle: something small {words}"


def test_speeds_where_that_way_was_never_taken():
    habits = habits_of(([0], LEFT_12, 5, 90))
    assert sentence(habits, votes_at(MIDDLE, LEFT_12, 10), "speed") == (
        "in the middle: something small moving to the left about three times as fast as usual "
        "in this scene"
    )
    assert sentence(habits, votes_at(MIDDLE, RIGHT_12, 10), "speed") == (
        "in the middle: something small moving to the right, as nothing did before"
    )


def test_of_too_few_a_speed_is_not_made():
    habits = habits_of((MIDDLE, LEFT_12, 9, 3), ([0], UP_12, 5, N))
    assert sentence(habits, votes_at(MIDDLE, LEFT_12, 2), "speed") == (
        "in the middle: something small moving to the left, as hardly anything did there before "
        "(3 times nearby)"
    )


def test_one_car_is_not_everything():
    rows = np.arange(13, 18)[:, None] * FINE.columns + np.arange(12, 18)
    habits = habits_of((np.arange(FINE.n_cells), RIGHT_12, 5, 100))
    said = sentence(habits, votes_at(rows.ravel(), RIGHT_12, 9), "speed", "sum")
    assert said.startswith("in the middle: something moving to the right about 2.4 times as fast")
    large = np.arange(10, 20)[:, None] * FINE.columns + np.arange(10, 20)
    said = sentence(habits, votes_at(large.ravel(), RIGHT_12, 9), "speed", "sum")
    assert said.startswith("in the middle: something large moving to the right")


def test_speeds_of_coarse_words():
    coarse = Vocabulary(30, 30, speeds=2)
    habits = habits_of((MIDDLE, LEFT, 0, 99), (MIDDLE, LEFT, 1, 1), vocabulary=coarse)
    assert sentence(habits, votes_at(MIDDLE, LEFT, 1), "speed") == (
        "in the middle: something small moving to the left and fast, where motion is usually slow "
        "(so fast 1 of 100 times)"
    )


def test_cues_together_tell_the_heaviest_ones():
    habits = habits_of((ROW, RIGHT_12, 5, 100))
    said = sentence(habits, votes_at(MIDDLE, LEFT_12, 5), "together")
    assert (
        said == "in the middle: something small moving to the left, where motion is to the right "
        "(0 of 100 times)"
    )


@pytest.mark.parametrize(
    ("cue", "direction", "speed", "words"),
    [
        ("speed", RIGHT_12, 9, "everything moves faster than usual"),
        ("speed", RIGHT_12, 2, "everything moves slower than usual"),
        (
            "direction",
            LEFT_12,
            5,
            "many things move in unusual directions, all over the picture",
        ),
        ("place", RIGHT_12, 5, "more motion than usual, all over the picture"),
    ],
)
def test_the_whole_frame(cue, direction, speed, words):
    everywhere = np.arange(0, FINE.n_cells, 5 * FINE.columns + 5)
    habits = habits_of((everywhere, RIGHT_12, 5, 50))
    assert sentence(habits, votes_at(everywhere, direction, speed), cue, "sum") == words


def test_a_crowd_where_nothing_moved():
    habits = habits_of(([0], RIGHT_12, 5, N))
    assert sentence(habits, votes_at(ROW, RIGHT_12, 5), "place", "sum") == (
        "motion in many places where hardly anything moves, in the middle"
    )


def test_some_things_faster_are_not_everything():
    habits = habits_of((ROW, RIGHT_12, 5, 100))
    mixed = votes_at(ROW, RIGHT_12, 5)
    mixed.speeds[::3] = 11  # here and there: not one thing
    said = sentence(habits, mixed, "speed", "sum")
    assert said == "several things move faster than usual, in the middle"


def test_several_things_are_where_their_boxes_are():
    """Three walkers at the bottom, and a flicker here and there that has no box."""
    walkers = [(25, 12), (26, 15), (25, 18)]
    cells = np.array([row * FINE.columns + column for row, column in walkers] + [3, 420])
    ways = np.array([LEFT_12] * 3 + [UP_12] * 2)
    habits = habits_of((np.arange(FINE.n_cells), RIGHT_12, 5, 50), ([3, 420], UP_12, 5, 12))
    votes = Votes(cells, ways, np.full(len(cells), 5))
    said = sentence(habits, votes, "direction", "sum")
    assert said == "several things move in unusual directions, in the lower middle"


def test_a_document_as_usual_has_no_box():
    habits = habits_of((MIDDLE, RIGHT_12, 5, N))
    above = HabitModel(FINE, 1, habits.counts, EVEN, np.full(4, 99.0), habits.fusion)
    finding = found(above, votes_at(MIDDLE, RIGHT_12, 5), "speed")
    assert finding.explanation == "nothing beyond the usual"
    assert finding.boxes == ()
    assert not heat_map(finding, FINE).any()


def test_a_box_is_as_wide_as_the_thing_that_moves():
    """Of a thing three cells wide, one cell is where nothing moves; what is slower is apart."""
    habits = habits_of((ROW[:15], LEFT_12, 8, 150), (ROW[16:], LEFT_12, 8, 150))
    cells = ROW[12:20]
    speeds = np.array([3, 3, 8, 8, 9, 3, 3, 3])
    votes = Votes(cells, np.full(8, LEFT_12), speeds)
    finding = found(habits, votes, "place")
    assert finding.votes[0] == 3
    assert finding.boxes == (Box(14 * 8, 15 * 8, 17 * 8, 16 * 8),)
    warm = heat_map(finding, FINE)
    assert warm.argmax() == ROW[15]
    assert warm.sum() == pytest.approx(finding.heat.sum(), rel=1e-12)


def test_further_things_have_boxes_if_they_are_nearly_as_heavy():
    habits = habits_of((np.arange(FINE.n_cells), RIGHT_12, 5, 50))
    heavy, light, other = ROW[20:23], ROW[4:5], ROW[12:14]
    cells = np.concatenate([light, other, heavy])
    votes = Votes(cells, np.array([4, 1, 1, 4, 4, 4]), np.full(6, 5))
    boxes = found(habits, votes, "direction").boxes
    assert boxes == (
        Box(20 * 8, 120, 23 * 8, 128),
        Box(12 * 8, 120, 14 * 8, 128),
        Box(4 * 8, 120, 5 * 8, 128),
    )
    few = found(habits, votes_at(np.concatenate([ROW[4:5], ROW[18:26]]), LEFT_12, 5), "direction")
    assert few.boxes == (Box(18 * 8, 120, 26 * 8, 128),)


def test_the_thing_with_the_largest_excess_is_told_not_the_one_with_the_heaviest_vote():
    """One vote of nine nats beside a van whose votes have less each, and far more together."""
    van = np.add.outer(np.arange(14, 17) * FINE.columns, np.arange(14, 18)).ravel()
    beside = np.array([15 * FINE.columns + 13])
    habits = habits_of((van, RIGHT_12, 5, 40), (beside, RIGHT_12, 5, N))
    both = Votes(
        *(
            np.concatenate(parts)
            for parts in zip(votes_at(beside, LEFT_12, 5), votes_at(van, UP_12, 5), strict=True)
        )
    )
    told = found(habits, both, "direction")
    excess = document_evidence(both, habits.habits, habits.levels, FINE).excesses[:, 1]
    assert excess[0] > excess[1:].max()
    assert "moving up" in told.explanation
    side = FINE.cell_side
    assert told.boxes[0] == (14 * side, 14 * side, 18 * side, 17 * side)


def at_hours(*seen):
    """Habits in which the middle moved at (hour, of so many documents, so many times)."""
    counts = HabitCounts.none(FINE)
    for hour, n, times in seen:
        counts = counts.adding(votes_at(MIDDLE, LEFT_12, 5), times, hour)
        counts = counts.adding(votes_at([], LEFT_12, 5), n - times, hour)
    n_statistics = len(STATISTICS) + len(HOUR_STATISTICS)
    fusion = Fusion(np.zeros((1, n_statistics)), np.array([True]), np.ones(n_statistics))
    return HabitModel(FINE, 1, counts, EVEN | {HOUR: (1.0,) * 5}, np.zeros(4), fusion)


def by_hour(habits, clock, gathering="scan"):
    """What is found where the hour was the strongest cue."""
    judgement = habits.judge(votes_at(MIDDLE, LEFT_12, 5), clock=60 * 24 * 9 + clock)
    rarities = np.zeros(len(STATISTICS) + len(HOUR_STATISTICS))
    rarities[len(STATISTICS) + HOUR_STATISTICS.index((HOUR, gathering))] = 9.0
    return find_unusual(judgement._replace(rarities=rarities), habits)


DAYTIME = [(hour, 100, 50) for hour in range(6, 23)]


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            [*((hour, 90, 0) for hour in (23, 0, 1, 2, 3, 4, 5)), *DAYTIME],
            "moving at 03:12, when nothing moved before here (in 630 seconds between 23:00 and "
            "6:00)",
        ),
        (
            [(2, 90, 7), (3, 90, 0), (4, 90, 0), (5, 90, 9), *DAYTIME],
            "moving at 03:12, when nothing moved before here (in 180 seconds between 3:00 and "
            "5:00)",
        ),
        (
            [(3, 200, 1), *DAYTIME],
            "moving at 03:12, when less moves here than usual (in 0.5 % of the seconds between "
            "3:00 and 4:00, in 45 % of all)",
        ),
    ],
)
def test_hours_by_habits(seen, words):
    habits = at_hours(*seen)
    finding = by_hour(habits, 3 * 60 + 12)
    assert finding.explanation == f"in the middle: something small {words}"
    assert finding.cue == "hour, scan"
    assert finding.cells.tolist() == MIDDLE.tolist()
    assert by_hour(habits, 3 * 60 + 12, "sum").explanation == finding.explanation  # one thing
