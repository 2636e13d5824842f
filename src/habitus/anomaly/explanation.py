"""What habits find unusual, in an operator's words: where, which cue, and true counts."""

from typing import NamedTuple

import numpy as np

from habitus.anomaly.habit_model import HabitJudgement, HabitModel
from habitus.anomaly.localisation import Box, connected_groups, place_in_words
from habitus.arrays import Array, Flags, Indices
from habitus.corpus.vocabulary import N_DIRECTIONS, SPEED_RATIO
from habitus.habits.evidence import CUES, GATHERINGS, REACH, TOGETHER

PLACE, DIRECTION, SPEED = range(3)
MOST_BOXES = 3
WORTH = 0.25
"""Share of the heaviest group's excess that a further group needs for a box of its own, and of the
heaviest vote's that a vote of the group needs."""
ALSO = 0.35
"""Share of the excess that a second cue needs to be told."""
MOSTLY = 0.6
FEWEST = 5
"""Times that a cell moved under which the cells around it are counted too."""
RARELY = 0.02
"""Share of the documents under which a cell hardly ever moves."""
WAYS = (
    "up and to the right",
    "up",
    "up and to the left",
    "up and to the left",
    "to the left",
    "down and to the left",
    "down and to the left",
    "down",
    "down and to the right",
    "down and to the right",
    "to the right",
    "up and to the right",
)
"""Fine directions in words; of four directions, every third from the second on."""


class HabitFinding(NamedTuple):
    """Where a document is unusual by habits, and why."""

    votes: Indices
    """Numbers of the votes of the unusual things, the heaviest first."""
    excesses: Array
    """Of each of them, in nats."""
    boxes: tuple[Box, ...]
    """Around things, the heaviest first."""
    explanation: str
    cue: str
    """The cue that spoke and how it was gathered, such as "direction, scan"."""


def find_unusual(judgement: HabitJudgement, model: HabitModel) -> HabitFinding:
    """Return where a judged document is unusual, and why."""
    cue, gathering = divmod(judgement.strongest, len(GATHERINGS))
    excess = judgement.evidence.excesses[:, cue]
    name = f"{CUES[cue]}, {GATHERINGS[gathering]}"
    if not excess.any():
        return HabitFinding(np.empty(0, dtype=np.int64), np.empty(0), (), "nothing unusual", name)
    groups = _groups(judgement, model, cue, scan=gathering == 0)
    heavy = groups[0]
    boxes = tuple(_box(judgement.votes.cells[group], model) for group in groups)
    if gathering == 0:
        reason = _reasons(judgement, model, cue, heavy)
        where = place_in_words(boxes[0], model.vocabulary)
    else:
        reason = _frame_reason(judgement, model, cue, excess > 0)
        spread = excess[heavy].sum() < MOSTLY * excess.sum()
        where = "all over the picture" if spread else place_in_words(boxes[0], model.vocabulary)
    members = np.concatenate(groups)
    order = members[np.argsort(-excess[members], kind="stable")]
    return HabitFinding(order, excess[order], boxes, f"{reason}, {where}", name)


def heat(judgement: HabitJudgement, model: HabitModel) -> Array:
    """Return the excess of each cell by the cue that spoke, in nats: rows x columns."""
    picture = np.zeros(model.vocabulary.n_cells)
    cue = judgement.strongest // len(GATHERINGS)
    picture[judgement.votes.cells] = judgement.evidence.excesses[:, cue]
    return picture.reshape(model.vocabulary.rows, model.vocabulary.columns)


def _groups(judgement: HabitJudgement, model: HabitModel, cue: int, *, scan: bool) -> list[Indices]:
    """Return groups of neighbouring votes that move alike, the heaviest first.

    Of a scan, only the one with the heaviest vote of the window; of a sum, up to `MOST_BOXES`.
    """
    v, votes, excess = model.vocabulary, judgement.votes, judgement.evidence.excesses[:, cue]
    rows, columns = votes.cells // v.columns, votes.cells % v.columns
    candidates = excess > 0
    seed = int(excess.argmax())
    if scan:
        middle = int(judgement.evidence.windows[cue])
        near = np.maximum(abs(rows - middle // v.columns), abs(columns - middle % v.columns))
        seed = int(np.where(near <= REACH, excess, -1.0).argmax())
        candidates = _alike(votes.directions, seed, v.directions) & (excess >= WORTH * excess[seed])
    found = np.flatnonzero(candidates)
    groups = [found[own] for own in connected_groups(votes.cells[found], v.columns)]
    if scan:
        return [next(group for group in groups if seed in group)]
    groups.sort(key=lambda group: -excess[group].sum())
    least = WORTH * excess[groups[0]].sum()
    return [group for group in groups[:MOST_BOXES] if excess[group].sum() >= least]


def _alike(directions: Indices, seed: int, n_directions: int) -> Flags:
    """Return which directions are within 60 degrees of that of one vote."""
    turn = abs(directions - directions[seed])
    return np.asarray(np.minimum(turn, n_directions - turn) <= n_directions // 6)


def _box(cells: Indices, model: HabitModel) -> Box:
    v = model.vocabulary
    rows, columns, side = cells // v.columns, cells % v.columns, v.cell_side
    return Box(
        int(columns.min() * side),
        int(rows.min() * side),
        int((columns.max() + 1) * side),
        int((rows.max() + 1) * side),
    )


def _reasons(judgement: HabitJudgement, model: HabitModel, cue: int, group: Indices) -> str:
    """Say what is unusual about one thing; for cues together, the one or two heaviest."""
    excesses = judgement.evidence.excesses
    seed = int(group[excesses[group, cue].argmax()])
    if cue != TOGETHER:
        return _reason(judgement, model, cue, seed)
    shares = excesses[group, :TOGETHER].sum(axis=0)
    order = np.argsort(-shares, kind="stable")
    told = [
        _reason(judgement, model, int(k), int(group[excesses[group, k].argmax()]))
        for k in order
        if k == order[0] or shares[k] >= ALSO * shares.sum()
    ]
    return " and ".join(told[:2])


def _reason(judgement: HabitJudgement, model: HabitModel, cue: int, vote: int) -> str:
    """Say what is unusual about one vote."""
    cell, direction, speed = (int(part[vote]) for part in judgement.votes)
    if cue == PLACE:
        return _place_reason(model, cell)
    if cue == DIRECTION:
        return _direction_reason(model, cell, direction)
    return _speed_reason(model, cell, direction, speed)


def _place_reason(model: HabitModel, cell: int) -> str:
    counts = model.all_counts
    times, n = counts.moving[cell], counts.n_documents
    often = "nothing usually moves" if times < RARELY * n else "little usually moves"
    return f"motion where {often} ({_times(times, n)})"


def _direction_reason(model: HabitModel, cell: int, direction: int) -> str:
    here = _around(model.all_counts.direction, cell, model)
    step = len(WAYS) // model.vocabulary.directions
    offset = 1 if step > 1 else 0
    way, n = WAYS[direction * step + offset], here.sum()
    usual = int(here.argmax())
    if n == 0:
        return f"moving {way}, where nothing moved before"
    if here[usual] >= n / 3 and usual != direction:
        other = WAYS[usual * step + offset]
        mostly = "" if here[usual] > 0.9 * n else "mostly "
        if other != way:
            return f"moving {way}, where motion is {mostly}{other} ({_times(here[direction], n)})"
    return f"moving {way}, as hardly anything does there ({_times(here[direction], n)})"


def _speed_reason(model: HabitModel, cell: int, direction: int, speed: int) -> str:
    coarse = direction // (model.vocabulary.directions // N_DIRECTIONS)
    here = _around(model.all_counts.speed[:, coarse], cell, model)
    n = here.sum()
    if n == 0:
        here = model.all_counts.speed.sum(axis=(0, 1))
    usual = int((np.cumsum(here) >= here.sum() / 2).argmax())
    fast = speed >= usual
    as_much = here[speed:].sum() if fast else here[: speed + 1].sum()
    seen = f" ({_times(as_much, n)})" if n else ""
    if model.vocabulary.speeds == 2:
        return f"{'fast' if fast else 'slow'}, as motion there hardly is{seen}"
    ratio = SPEED_RATIO ** (speed - usual)
    if fast:
        return f"{_ratio_in_words(ratio)} as fast as usual there{seen}"
    return f"moving at {ratio:.0%} of the usual speed there{seen}".replace("%", " %")


def _frame_reason(judgement: HabitJudgement, model: HabitModel, cue: int, told: Flags) -> str:
    """Say what is unusual about the whole frame."""
    if cue == TOGETHER:
        cue = int(judgement.evidence.excesses[:, :TOGETHER].sum(axis=0).argmax())
    if cue == PLACE:
        return "motion in many places where little usually moves"
    if cue == DIRECTION:
        return "many things move in unusual directions"
    votes, excess = judgement.votes, judgement.evidence.excesses[:, SPEED]
    coarse = votes.directions // (model.vocabulary.directions // N_DIRECTIONS)
    by_place = model.all_counts.speed.sum(axis=0)[coarse]
    usual = (np.cumsum(by_place, axis=1) >= by_place.sum(axis=1)[:, None] / 2).argmax(axis=1)
    faster = excess @ (votes.speeds >= usual) >= excess.sum() / 2
    return f"everything moves {'faster' if faster else 'slower'} than usual"


def _around(counts: Array, cell: int, model: HabitModel) -> Array:
    """Return the counts of a cell; with those of the cells around it where it has few."""
    if counts[cell].sum() >= FEWEST:
        return np.asarray(counts[cell])
    v = model.vocabulary
    grid = counts.reshape(v.rows, v.columns, -1)
    row, column = divmod(cell, v.columns)
    rows = slice(max(row - 1, 0), row + 2)
    columns = slice(max(column - 1, 0), column + 2)
    return np.asarray(grid[rows, columns].sum(axis=(0, 1)))


def _times(times: float, n: float) -> str:
    """Return a count in words; counts that fade are rounded."""
    return f"{round(times):,} of {round(n):,} times"


def _ratio_in_words(ratio: float) -> str:
    if ratio < 1.4:
        return "somewhat more than"
    names = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
    nearest = round(ratio)
    if nearest in names and abs(ratio - nearest) < 0.26:
        return names[nearest]
    return f"{ratio:.1f} times"
