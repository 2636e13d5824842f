"""Where a document is unusual and why: its least likely words, boxes around them, sentences."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Array, Flags
from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.schema import Pixels

REACH = 2
"""Cells at most this far apart belong to one box: the windows of a vehicle make no words."""
MOST_BOXES = 3
WORTH = 0.25
"""Share of the heaviest box's surprisal that a further box needs; by habits, of the heaviest
group's excess for a box of its own, and of the heaviest vote's for a vote of the group."""


class Box(NamedTuple):
    """A part of the camera's frame, in its pixels."""

    left: Pixels
    top: Pixels
    right: Pixels
    bottom: Pixels

    @classmethod
    def around(cls, boxes: NDArray[np.int64]) -> "Box":
        """Return the box around at least one box, each a row."""
        return cls(*map(int, (*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0))))


class Placement(NamedTuple):
    """What becomes of an abnormal document at a place."""

    zone: str = ""
    """Name of the zone that it is in."""
    threshold: float | None = None
    """Documents there of lower normality are alarms; None if all abnormal ones are."""
    listed: float = np.inf
    """Documents there of lower normality belong to events."""
    quiet: bool = False
    """Whether nothing there is an alarm now."""


class SceneNames:
    """What places and behaviours are called: here, by where they are and by their number.

    Whoever knows what people call them has a class of its own with these methods.
    """

    def place(self, box: tuple[int, int, int, int], vocabulary: Vocabulary) -> str:
        """Say where a box is."""
        return place_in_words(box, vocabulary)

    def behaviour(self, number: int) -> str:
        """Return what a behaviour is called, counted from 1; nothing if people gave no name."""
        return ""

    def placed(self, boxes: tuple[Box, ...]) -> Placement:
        """Return what becomes of a document that is unusual there."""
        return Placement()


UNNAMED = SceneNames()


def least_likely(surprisals: Array, counts: Array, n_top: int) -> NDArray[np.int64]:
    """Return the indices of the `n_top` words of highest surprisal, the highest first.

    Words that training never showed have the same surprisal: of those, the one that occurs more
    often comes first.

    Examples
    --------
    >>> least_likely(np.array([1.0, 7.0, 7.0]), np.array([5, 1, 2]), 2)
    array([2, 1])
    """
    return np.lexsort((-counts, -surprisals))[:n_top]


def localisation_recall(ranked: Flags, n_top: ArrayLike) -> Array:
    """Return the paper's localisation recall of one document, for each `n_top`.

    `ranked` says whether each word is abnormal, the least likely word first. The recall is the
    number of abnormal words among the `n_top` least likely ones, divided by the largest number
    possible, min(n_top, abnormal words); 1 without an abnormal word.

    Examples
    --------
    >>> localisation_recall(np.array([True, False, True, True]), [1, 2, 4])
    array([1. , 0.5, 1. ])
    """
    n_top, n_abnormal = np.asarray(n_top), int(ranked.sum())
    if n_abnormal == 0:
        return np.ones(n_top.shape)
    hits = np.cumsum(ranked)[np.minimum(n_top, len(ranked)) - 1]
    return np.asarray(hits / np.minimum(n_top, n_abnormal))


def random_recall(n_abnormal: int, n_words: int, n_top: ArrayLike) -> Array:
    """Return the expected `localisation_recall` of words in random order.

    >>> random_recall(2, 10, [1, 5, 20])
    array([0.2, 0.5, 1. ])
    """
    n_top = np.asarray(n_top)
    expected_hits = np.minimum(n_top, n_words) * n_abnormal / n_words
    return np.asarray(expected_hits / np.minimum(n_top, n_abnormal))


def connected_groups(cells: NDArray[np.int64], columns: int) -> list[list[int]]:
    """Return groups of indices of cells, each at most `REACH` cells from another of its group.

    Examples
    --------
    >>> connected_groups(np.array([0, 2, 9]), columns=10)
    [[0, 1], [2]]
    """
    rows, across = cells // columns, cells % columns
    left = list(range(len(cells)))
    groups = []
    while left:
        group, fresh = [], [left.pop(0)]
        while fresh:
            here = fresh.pop()
            group.append(here)
            apart = np.maximum(abs(rows - rows[here]), abs(across - across[here]))
            near = [k for k in left if apart[k] <= REACH]
            left = [k for k in left if apart[k] > REACH]
            fresh += near
        groups.append(sorted(group))
    return groups


def boxes_of(words: NDArray[np.integer], weights: Array, vocabulary: Vocabulary) -> list[Box]:
    """Return one or a few boxes around the given words, the heaviest first."""
    cells = np.asarray(words, dtype=np.int64) // vocabulary.per_cell
    groups = connected_groups(cells, vocabulary.columns)
    heavy = sorted(groups, key=lambda group: -weights[group].sum())[:MOST_BOXES]
    enough = WORTH * max((weights[group].sum() for group in heavy), default=0.0)
    boxes = vocabulary.boxes(words)
    return [Box.around(boxes[group]) for group in heavy if weights[group].sum() >= enough]


HARDLY = 0.2
"""What is under this share of something else is as good as absent beside it."""
OUT_OF_TURN = float(np.log(20))
"""Shift in nats from which a behaviour is out of its turn: its probability was under 1 in 20."""
WAYS = {
    Direction.UP: ("upward", "up"),
    Direction.LEFT: ("leftward", "left"),
    Direction.DOWN: ("downward", "down"),
    Direction.RIGHT: ("rightward", "right"),
}


class Move(NamedTuple):
    """A direction of motion and its speed."""

    direction: Direction
    speed: int = 0
    """0 for slow, 1 for fast."""


class Expectation(NamedTuple):
    """What is expected in a few cells."""

    by_behaviour: Array
    """p(word | behaviour), summed over the cells: behaviours x directions x speeds."""
    now: Array
    """p(z_t | x_{1:t-1}), behaviours."""
    long_run: Array
    """Share of time of each behaviour in the long run."""
    even: float
    """Probability of the cells if motion were spread evenly over those that ever move."""


def motion_in_words(move: Move, expected: Expectation, names: SceneNames = UNNAMED) -> str:
    """Say what is unusual about a move that is seen in a few cells."""
    seen, speed = move
    way, _ = WAYS[seen]
    by_direction = expected.by_behaviour.sum(axis=2)
    ever, now = expected.long_run @ by_direction, expected.now @ by_direction
    if ever.sum() < HARDLY * expected.even:
        return f"{way} motion where the scene is usually still"
    usual = Direction(int(ever.argmax()))
    if usual != seen and ever[seen] < HARDLY * ever[usual]:
        return f"{way} motion where the scene moves {WAYS[usual][1]}"
    pace = expected.long_run @ expected.by_behaviour[:, seen]
    if pace[speed] < HARDLY * pace.sum():
        usual_pace, pace_now = ("slow", "fast") if speed else ("fast", "slow")
        return f"{pace_now} {way} motion where it is usually {usual_pace}"
    owner, current = int(by_direction[:, seen].argmax()), int(expected.now.argmax())
    if now[seen] < HARDLY * by_direction[owner, seen] and owner != current:
        owner_called, now_called = _behaviour(owner, names), _behaviour(current, names)
        return f"{way} motion that belongs to {owner_called}, during {now_called}"
    return f"more {way} motion than usual"


def turn_in_words(
    before: int, now: int, shift: float, transitions: Array, names: SceneNames = UNNAMED
) -> str | None:
    """Say what is unusual about a behaviour's turn, if anything.

    Behaviours count from 0; `before` is -1 if nothing came before. `shift` is the surprise of the
    behaviour in nats, `transitions` are those expected in training, next x behaviours.
    """
    if before < 0 or shift < OUT_OF_TURN or before == now:
        return None
    times = transitions[now, before]
    seen = (
        "never seen" if times < 0.5 else "seen once" if times < 1.5 else f"seen {times:.0f} times"
    )
    return f"{_behaviour(now, names)} right after {_behaviour(before, names)}: {seen} in training"


def _behaviour(number: int, names: SceneNames) -> str:
    return names.behaviour(number + 1) or f"behaviour {number + 1}"


def place_in_words(box: tuple[int, int, int, int], vocabulary: Vocabulary) -> str:
    """Say which part of the frame a box is in."""
    x = (box[0] + box[2]) / 2 / vocabulary.width
    y = (box[1] + box[3]) / 2 / vocabulary.height
    side = "left" if x < 1 / 3 else "right" if x > 2 / 3 else ""
    height = "upper" if y < 1 / 3 else "lower" if y > 2 / 3 else ""
    if not side and not height:
        return "in the middle"
    if not side:
        return f"in the {height} middle"
    return f"in the {height} {side}" if height else f"on the {side}"


def heaviest(
    words: NDArray[np.integer], weights: Array, vocabulary: Vocabulary
) -> tuple[NDArray[np.int64], Move]:
    """Return the cells of the heaviest group of words, and the heaviest move in it."""
    cells = np.asarray(words, dtype=np.int64) // vocabulary.per_cell
    groups = connected_groups(cells, vocabulary.columns)
    group = max(groups, key=lambda members: float(weights[members].sum()))
    moves = np.asarray(words)[group] % vocabulary.per_cell
    by_move = np.bincount(moves, weights[group], minlength=vocabulary.per_cell)
    # The direction first: an object between slow and fast is still one object.
    by_direction = by_move.reshape(len(Direction), -1)
    direction = int(by_direction.sum(axis=1).argmax())
    speed = int(by_direction[direction].argmax())
    return np.unique(cells[group]), Move(Direction(direction), speed)


def expectation(
    cells: NDArray[np.int64],
    word_given_behaviour: Array,
    now: Array,
    long_run: Array,
    vocabulary: Vocabulary,
) -> Expectation:
    """Return what is expected in cells, given their numbers and p(word | behaviour)."""
    n_behaviours = word_given_behaviour.shape[1]
    by_cell = word_given_behaviour.reshape(-1, len(Direction), vocabulary.speeds, n_behaviours)
    moving = by_cell.sum(axis=(1, 2)) @ long_run
    # Cells that hold nearly all of the motion: the rest of the frame is sky and walls.
    n_active = int((np.cumsum(np.sort(moving)[::-1]) < 0.99).sum()) + 1
    here = np.moveaxis(by_cell[cells].sum(axis=0), -1, 0)
    return Expectation(here, now, long_run, len(cells) / n_active)
