"""Where a document is unusual: its least likely words, and boxes around them.

Why a document is unusual, in words: motion that fits no behaviour, or one out of its turn.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Array, Flags
from habitus.corpus.vocabulary import Direction, Vocabulary

# Cells at most this far apart, in cells, belong to one box: a vehicle's windows are still.
REACH = 2
# Boxes of a document, at most, and the share of the strongest's surprise that others need.
MOST_BOXES, WORTH = 3, 0.25


class Box(NamedTuple):
    """A part of the camera's frame, in its pixels."""

    left: int
    top: int
    right: int
    bottom: int


def least_likely(surprises: Array, counts: Array, n_top: int) -> NDArray[np.int64]:
    """Places of the `n_top` most surprising words, most surprising first.

    Words that training never showed surprise alike: of those, the one seen more often comes first.
    """
    return np.lexsort((-counts, -surprises))[:n_top]


def localisation_recall(ranked: Flags, n_top: ArrayLike) -> Array:
    """Return the paper's localisation recall of one document.

    Parameters
    ----------
    ranked
        Whether each word of the document is abnormal, the least likely word first.
    n_top
        One or more numbers of least likely words.

    Returns
    -------
    Array
        For each `n_top`: abnormal words among the `n_top` least likely ones, divided by
        min(n_top, abnormal words), the largest number possible; 1 without an abnormal word.

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


def groups_of(cells: NDArray[np.int64], columns: int, reach: int = REACH) -> list[list[int]]:
    """Places of cells that hang together, each at most `reach` from another of its group."""
    rows, places = cells // columns, cells % columns
    left = list(range(len(cells)))
    groups = []
    while left:
        group, fresh = [], [left.pop(0)]
        while fresh:
            here = fresh.pop()
            group.append(here)
            near = [
                k for k in left
                if max(abs(rows[k] - rows[here]), abs(places[k] - places[here])) <= reach
            ]  # fmt: skip
            left = [k for k in left if k not in near]
            fresh += near
        groups.append(sorted(group))
    return groups


def boxes_of(words: NDArray[np.integer], weights: Array, vocabulary: Vocabulary) -> list[Box]:
    """One or a few boxes around the given words, the heaviest first."""
    cells = np.asarray(words, dtype=np.int64) // vocabulary.per_cell
    groups = groups_of(cells, vocabulary.columns)
    heavy = sorted(groups, key=lambda group: -weights[group].sum())[:MOST_BOXES]
    enough = WORTH * max((weights[group].sum() for group in heavy), default=0.0)
    boxes = vocabulary.boxes(words)
    return [
        Box(*map(int, (*boxes[group, :2].min(axis=0), *boxes[group, 2:].max(axis=0))))
        for group in heavy
        if weights[group].sum() >= enough
    ]


# A thing under this share of another is as good as absent beside it.
HARDLY = 0.2
# A behaviour that was given less than one chance in twenty is out of its turn.
OUT_OF_TURN = float(np.log(20))
WAYS = {
    Direction.UP: ("upward", "up"),
    Direction.LEFT: ("leftward", "left"),
    Direction.DOWN: ("downward", "down"),
    Direction.RIGHT: ("rightward", "right"),
}


class Move(NamedTuple):
    """Which way things go, and how fast."""

    direction: Direction
    speed: int = 0
    """0 for slow, 1 for fast."""


class Expectation(NamedTuple):
    """What a scene shows, in a few cells."""

    by_behaviour: Array
    """p(word | behaviour), summed over the cells: behaviours x directions x speeds."""
    now: Array
    """p(z_t | x_{1:t-1}), behaviours."""
    usually: Array
    """Share of time of each behaviour."""
    even: float
    """What the cells would have if motion were spread evenly over those that ever move."""


def motion_in_words(move: Move, expected: Expectation) -> str:
    """What is odd about a move that is seen in a few cells."""
    seen, speed = move
    way, _ = WAYS[seen]
    by_direction = expected.by_behaviour.sum(axis=2)
    ever, now = expected.usually @ by_direction, expected.now @ by_direction
    if ever.sum() < HARDLY * expected.even:
        return f"{way} motion where the scene is usually still"
    usual = Direction(int(ever.argmax()))
    if usual != seen and ever[seen] < HARDLY * ever[usual]:
        return f"{way} motion where the scene moves {WAYS[usual][1]}"
    pace = expected.usually @ expected.by_behaviour[:, seen]
    if pace[speed] < HARDLY * pace.sum():
        usual_pace, own = ("slow", "fast") if speed else ("fast", "slow")
        return f"{own} {way} motion where it is usually {usual_pace}"
    owner = int(by_direction[:, seen].argmax())
    if now[seen] < HARDLY * by_direction[owner, seen]:
        current = int(expected.now.argmax())
        if owner != current:
            return (
                f"{way} motion that belongs to behaviour {owner + 1}, "
                f"during behaviour {current + 1}"
            )
    return f"more {way} motion than usual"


def turn_in_words(before: int, now: int, shift: float, transitions: Array) -> str | None:
    """What is odd about a behaviour's turn, if anything; `before` is -1 if nothing came before."""
    if before < 0 or shift < OUT_OF_TURN or before == now:
        return None
    times = transitions[now, before]
    often = "never" if times < 0.5 else "once" if times < 1.5 else f"{times:.0f} times"
    return f"behaviour {now + 1} right after behaviour {before + 1}: seen {often} in training"


def place_in_words(box: tuple[int, int, int, int], vocabulary: Vocabulary) -> str:
    """Which part of the frame a box is in."""
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
    """Cells of the group of words that weighs most, and the move that weighs most in it."""
    cells = np.asarray(words, dtype=np.int64) // vocabulary.per_cell
    group = max(
        groups_of(cells, vocabulary.columns), key=lambda places: float(weights[places].sum())
    )
    moves = np.asarray(words)[group] % vocabulary.per_cell
    by_move = np.bincount(moves, weights[group], minlength=vocabulary.per_cell)
    # The way first: a thing between slow and fast is still one thing.
    direction = int(by_move.reshape(len(Direction), -1).sum(axis=1).argmax())
    speed = int(by_move.reshape(len(Direction), -1)[direction].argmax())
    return np.unique(cells[group]), Move(Direction(direction), speed)


def expectation(
    cells: NDArray[np.int64], mixed: Array, now: Array, usually: Array, vocabulary: Vocabulary
) -> Expectation:
    """What is expected in the given cells; `mixed` is p(word | behaviour), words x behaviours."""
    by_cell = mixed.reshape(-1, len(Direction), vocabulary.speeds, mixed.shape[1])
    moving = by_cell.sum(axis=(1, 2)) @ usually
    # Cells that hold nearly all of the motion: the rest of the frame is sky and walls.
    n_active = int((np.cumsum(np.sort(moving)[::-1]) < 0.99).sum()) + 1
    here = np.moveaxis(by_cell[cells].sum(axis=0), -1, 0)
    return Expectation(here, now, usually, len(cells) / n_active)
