"""What habits find unusual, in an operator's words: where, which cue, and true counts."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from habitus.arrays import Array, Flags, Indices
from habitus.corpus.clocks import N_HOURS, clock_text, hours_of
from habitus.corpus.stands import STANDING
from habitus.corpus.vocabulary import N_DIRECTIONS, SPEED_RATIO, Vocabulary
from habitus.habits.evidence import CUES, GATHERINGS, REACH, TOGETHER
from habitus.habits.hours import HOUR
from habitus.habits.standing import StandingCounts, StandingEvidence
from habitus.habits.turns import TURN, TurnCounts
from habitus.rarity import counted
from habitus.scene.habit_model import HabitJudgement, HabitModel
from habitus.scene.localisation import (
    MOST_BOXES,
    UNNAMED,
    WORTH,
    Box,
    SceneNames,
    connected_groups,
)

PLACE, DIRECTION, SPEED, BY_HOUR = *range(3), len(CUES)
ALSO = 0.35
"""Share of the excess that a second cue needs to be named."""
MOSTLY, NEARLY_ALL = 0.6, 0.9
MANY = 0.25
"""Share of the votes from which on they are many."""
SMALL, LARGE = 0.005, 0.06
"""Shares of the picture under which a thing is small, and above which it is large."""
WIDEST = 0.5
"""Share of the picture's width or height up to which something can be one thing, and of the picture
beyond which something is all over it."""
MARGIN = 0.1
"""Share of the excess at each side that does not count where most of it is looked for."""
FEWEST = 5
"""Times that a cell moved under which the cells around it are counted too."""
HARDLY, LITTLE = 0.02, 0.2
"""Shares of the moments under which hardly anything, and little, moves in a cell; and of the motion
there under which hardly any, and little of it goes one way."""
RARE_WAY = 0.02
"""Probability under which a direction is unusual: a quarter of an even share."""
SLOW_OR_FAST = ("slow", "fast")
SLIGHTLY = 1.4
"""Ratio of speeds under which it is not worth a word."""
SAME_SPEED = 2
"""Classes of speed by which parts of one thing differ at most."""
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
    cells: Indices
    """Cells with an excess by that cue."""
    heat: Array
    """Excess of each of these cells, in nats."""


def unit_of(clip: float) -> str:
    """Return what documents of `clip` seconds are called in a sentence.

    >>> unit_of(1.0), unit_of(2.0)
    ('second', 'moment')
    """
    return "second" if clip == 1.0 else "moment"


def find_unusual(
    judgement: HabitJudgement,
    model: HabitModel,
    clip: float = 1.0,
    names: SceneNames = UNNAMED,
) -> HabitFinding:
    """Return where a judged document of `clip` seconds is unusual, and why."""
    unit = unit_of(clip)
    stands, stood = judgement.standing_evidence, model.all_stood
    if judgement.by_standing and stands is not None and stood is not None:
        return _find_standing(stands, stood, judgement, model, clip, names, unit)
    cue, gathering = divmod(judgement.strongest, len(GATHERINGS))
    cue_name, by_turn = (*CUES, HOUR)[cue], judgement.turn_evidence if judgement.by_turn else None
    if by_turn is not None:
        judgement = judgement._replace(evidence=by_turn)
        cue, gathering, cue_name = 0, 0, TURN
    excess, cells = judgement.evidence.excesses[:, cue], judgement.votes.cells
    name, hot = f"{cue_name}, {GATHERINGS[gathering]}", np.flatnonzero(excess)
    if not len(hot):
        return HabitFinding(
            hot, excess[hot], (), "nothing beyond the usual", name, hot, excess[hot]
        )
    groups = _groups(judgement, model, cue, scan=gathering == 0)
    v, heavy = model.vocabulary, groups[0]
    things = (_whole(judgement, model, cue, group) for group in groups)
    boxes = tuple(Box.around(v.boxes(v.per_cell * thing)) for thing in things)
    where = names.place(boxes[0], v)
    if by_turn is not None and model.all_turns is not None:
        vote = int(heavy[excess[heavy].argmax()])
        reason = _turn_reason(judgement, model.all_turns, v, vote, names, unit)
        explanation = f"{where}: {_subject(boxes[0], v)} {reason}"
    elif gathering == 0 or _is_one(boxes[0], excess[heavy].sum() / excess.sum(), v):
        reason = _reasons(judgement, model, cue, heavy, unit)
        explanation = f"{where}: {_subject(boxes[0], v)} {reason}"
    else:
        everywhere = _is_everywhere(boxes, cells, excess, v)
        where = "all over the picture" if everywhere else names.place(_hull(boxes), v)
        reason = _frame_reason(judgement, model, cue, unit, everywhere=everywhere)
        explanation = reason if reason.startswith("everything") else f"{reason}, {where}"
    members = np.concatenate(groups)
    order = members[np.argsort(-excess[members], kind="stable")]
    return HabitFinding(order, excess[order], boxes, explanation, name, cells[hot], excess[hot])


def _find_standing(
    evidence: StandingEvidence,
    stood: StandingCounts,
    judgement: HabitJudgement,
    model: HabitModel,
    clip: float,
    names: SceneNames,
    unit: str,
) -> HabitFinding:
    """Return where something stands for too long, and for how long anything stands there."""
    v, cells, none = model.vocabulary, evidence.cells, np.empty(0, dtype=np.int64)
    box = Box.around(v.boxes(v.per_cell * cells))
    seconds = evidence.age * clip
    since = ""
    if judgement.clock >= 0:
        since = f", since {clock_text(judgement.clock - int(seconds // 60))[-5:]}"
    longest = stood.longest(cells) * clip
    usual = f"nothing stands longer than {_duration(longest)}"
    if longest == 0:
        usual = "nothing stood before"
    elif longest > seconds:
        usual = "hardly anything stands as long"
    seen = f"(in {counted(round(stood.documents), unit, ',')})"
    said = f"something has stood for {_duration(seconds)}{since}; here {usual} {seen}"
    return HabitFinding(
        none,
        np.empty(0),
        (box,),
        f"{names.place(box, v)}: {said}",
        STANDING,
        cells,
        evidence.surprisals,
    )


def _duration(seconds: float) -> str:
    """Return a time in words.

    >>> _duration(64.0), _duration(700.0)
    ('64 s', '12 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} minutes"


def _subject(box: Box, v: Vocabulary) -> str:
    """Return what moves, by its share of the picture."""
    share = (box.right - box.left) * (box.bottom - box.top) / (v.width * v.height)
    return (
        "something small" if share < SMALL else "something large" if share > LARGE else "something"
    )


def _is_one(box: Box, share: float, v: Vocabulary) -> bool:
    """Return whether one thing has nearly all of the excess of a frame, and is no crowd."""
    wide = max((box.right - box.left) / v.width, (box.bottom - box.top) / v.height)
    return bool(share >= NEARLY_ALL and wide <= WIDEST)


def _hull(boxes: tuple[Box, ...]) -> Box:
    return Box.around(np.array(boxes))


def _is_everywhere(boxes: tuple[Box, ...], cells: Indices, excess: Array, v: Vocabulary) -> bool:
    """Return whether boxes, or where most of the excess is, span more than half of the picture."""
    hull = _hull(boxes)
    if (hull.right - hull.left) * (hull.bottom - hull.top) > WIDEST * v.width * v.height:
        return True
    sides = []
    for places, size in ((cells % v.columns, v.columns), (cells // v.columns, v.rows)):
        below = np.cumsum(np.bincount(places, weights=excess, minlength=size))
        first, last = np.searchsorted(below, (MARGIN * below[-1], (1 - MARGIN) * below[-1]))
        sides.append((last + 1 - first) / size)
    return bool(sides[0] * sides[1] > WIDEST)


def heat_map(finding: HabitFinding, vocabulary: Vocabulary) -> Array:
    """Return the excess of each cell by the cue that spoke, in nats: rows x columns."""
    picture = np.zeros(vocabulary.n_cells)
    picture[finding.cells] = finding.heat
    return picture.reshape(vocabulary.rows, vocabulary.columns)


def _groups(judgement: HabitJudgement, model: HabitModel, cue: int, *, scan: bool) -> list[Indices]:
    """Return up to `MOST_BOXES` groups of neighbouring votes that move alike.

    The first has the largest excess, of a scan in the window; the others follow by their excess.
    """
    excess = judgement.evidence.excesses[:, cue]
    counted = np.where(_in_window(judgement, model, cue), excess, 0.0) if scan else excess
    things = list(_things(judgement, model, cue, int(counted.argmax())))
    first = max(things, key=lambda group: float(counted[group].sum()))
    least = WORTH * excess[first].sum()
    others = [group for group in things if group is not first and excess[group].sum() >= least]
    others.sort(key=lambda group: -excess[group].sum())
    return [first, *others[: MOST_BOXES - 1]]


def _in_window(judgement: HabitJudgement, model: HabitModel, cue: int) -> Flags:
    """Return which votes are in the heaviest window of a cue."""
    columns = model.vocabulary.columns
    row, column = divmod(int(judgement.evidence.windows[cue]), columns)
    cells = judgement.votes.cells
    away = np.maximum(abs(cells // columns - row), abs(cells % columns - column))
    return np.asarray(away <= REACH)


def _things(judgement: HabitJudgement, model: HabitModel, cue: int, seed: int) -> Iterator[Indices]:
    """Yield groups of neighbouring votes that move alike, that of the vote `seed` first."""
    v, votes, excess = model.vocabulary, judgement.votes, judgement.evidence.excesses[:, cue]
    left = np.where(excess >= WORTH * excess[seed], excess, 0.0)
    while left[seed] > 0:
        alike = np.flatnonzero(_alike(votes.directions, seed, v.directions) & (left > 0))
        parts = (alike[members] for members in connected_groups(votes.cells[alike], v.columns))
        group = next(part for part in parts if seed in part)
        yield group
        left[group] = 0.0
        seed = int(left.argmax())


def _whole(judgement: HabitJudgement, model: HabitModel, cue: int, group: Indices) -> Indices:
    """Return the cells of a whole thing, given its unusual votes.

    The votes around them that move as the heaviest one does, as fast and that way, belong to it.
    """
    cells, directions, speeds = judgement.votes
    seed = int(group[judgement.evidence.excesses[group, cue].argmax()])
    alike = _alike(directions, seed, model.vocabulary.directions)
    alike &= abs(speeds - speeds[seed]) <= SAME_SPEED
    alike[group] = True
    members = np.flatnonzero(alike)
    together = connected_groups(cells[members], model.vocabulary.columns)
    return np.asarray(next(cells[members[part]] for part in together if seed in members[part]))


def _alike(directions: Indices, seed: int, n_directions: int) -> Flags:
    """Return which directions are within 60 degrees of that of one vote."""
    turn = abs(directions - directions[seed])
    return np.asarray(np.minimum(turn, n_directions - turn) <= n_directions // 6)


def _reasons(
    judgement: HabitJudgement, model: HabitModel, cue: int, group: Indices, unit: str
) -> str:
    """Say what is unusual about one thing; for cues together, the one or two heaviest."""
    excesses = judgement.evidence.excesses
    seed = int(group[excesses[group, cue].argmax()])
    if cue != TOGETHER:
        return _reason(judgement, model, cue, seed, unit)
    shares = excesses[group, :TOGETHER].sum(axis=0)
    order = np.argsort(-shares, kind="stable")
    reasons = [
        _reason(judgement, model, int(k), int(group[excesses[group, k].argmax()]), unit)
        for k in order
        if k == order[0] or shares[k] >= ALSO * shares.sum()
    ]
    return " and ".join(reasons[:2])


def _reason(judgement: HabitJudgement, model: HabitModel, cue: int, vote: int, unit: str) -> str:
    """Say what is unusual about one vote, of documents that are called `unit`."""
    cell, direction, speed = (int(part[vote]) for part in judgement.votes)
    if cue == PLACE:
        return _place_reason(model, cell, unit)
    if cue == BY_HOUR:
        return f"moving{_hour_reason(model, np.array([cell]), judgement.clock, unit)}"
    if cue == DIRECTION:
        return _direction_reason(model, cell, direction)
    return _speed_reason(model, cell, direction, speed)


def _place_reason(model: HabitModel, cell: int, unit: str) -> str:
    counts = model.all_counts
    times, n = counts.moving[cell], counts.n_documents
    if round(times) == 0:
        return f"moving where nothing moved before (in {counted(round(n), unit, ',')})"
    seen = f"(in {round(times):,} of {counted(round(n), unit, ',')})"
    if times < HARDLY * n:
        return f"moving where hardly anything moves {seen}"
    if times < LITTLE * n:
        return f"moving where little moves {seen}"
    return f"moving in a busy place {seen}"


def _turn_reason(
    judgement: HabitJudgement,
    counts: TurnCounts,
    v: Vocabulary,
    vote: int,
    names: SceneNames,
    unit: str,
) -> str:
    """Say how seldom a cell moves this way while the scene does as it does now."""
    ways, turn = WAYS[1::3], judgement.turn
    cell, direction = int(judgement.votes.cells[vote]), int(judgement.votes.directions[vote])
    way = direction // (v.directions // N_DIRECTIONS)
    by_way = counts.moved[:, :, turn].sum(axis=0)
    order = np.argsort(-by_way, kind="stable")
    others = [ways[k] for k in order if by_way[k] > by_way.max() / 2]
    when = f"while others move {' or '.join(others)}"
    if ways[way] in others:
        when = "out of its turn"
    n_behaviours = round(len(counts.documents) ** 0.5)
    if name := names.behaviour(turn % n_behaviours + 1):
        when = f"during {name}"
    such = counted(round(counts.documents[turn]), f"such {unit}", ",")
    return f"moving {ways[way]} {when} (in {round(counts.moved[cell, way, turn]):,} of {such})"


def _hour_reason(model: HabitModel, cells: Indices, clock: int, unit: str) -> str:
    """Say how seldom cells move at this hour of the day, given the local minute.

    Where nothing ever moved in them at this hour, hours around it of which that is true are named.
    """
    weekend, hour = divmod(int(hours_of(np.array(clock))), N_HOURS)
    days, when = [0, 1], ""
    if model.weeks_apart:
        days, when = [weekend], " at week-ends" if weekend else " on workdays"
    sums = model.all_counts.hours[cells].sum(axis=0), model.all_counts.hour_documents
    moved, documents_at = (counts.reshape(2, N_HOURS)[days].sum(axis=0) for counts in sums)
    first, n = _quiet_hours(np.round(moved) + (np.round(documents_at) == 0), hour)
    hours = (first + np.arange(max(n, 1))) % N_HOURS
    times, documents = moved[hours].sum(), documents_at[hours].sum()
    between = f"between {hours[0]}:00 and {(hours[-1] + 1) % N_HOURS}:00{when}"
    at, rest = f" at {clock_text(clock)[-5:]}", moved.sum() - times
    if round(times) == 0:
        such = counted(round(documents), unit, ",")
        return f"{at}, when nothing moved before here (in {such} {between})"
    share = times / max(documents * len(cells), 1.0)
    usual = (times + rest) / max(documents_at.sum() * len(cells), 1.0)
    return (
        f"{at}, when less moves here than usual (in {_share(share)} of the {unit}s {between}, in "
        f"{_share(usual)} of all)"
    )


def _quiet_hours(counts: Array, hour: int) -> tuple[int, int]:
    """Return the first of the hours around one in which nothing is counted, and their number."""
    around = np.roll(counts, -hour)
    if around[0] or not counts.any():
        return hour, 0 if around[0] else N_HOURS
    after, before = int((around > 0).argmax()), int((around[::-1] > 0).argmax())
    return (hour - before) % N_HOURS, before + after


def _share(share: float) -> str:
    return f"{100 * share:.2g} %"


def _direction_reason(model: HabitModel, cell: int, direction: int) -> str:
    ways = WAYS if len(WAYS) == model.vocabulary.directions else WAYS[1::3]
    here, nearby = _around(model.all_counts.direction, cell, model)
    way, n, times = ways[direction], here.sum(), here[direction]
    if round(n) == 0:
        return f"moving {way}, where nothing moved before"
    seen = _times(times, n, nearby)
    by_way = {name: sum(here[d] for d, other in enumerate(ways) if other == name) for name in ways}
    usual = max(by_way, key=lambda name: by_way[name])
    if times < LITTLE * n and times < by_way[way] / 2:
        return f"moving {way}, but at an angle that is rare there {seen}"
    if usual != way and by_way[usual] > n / 2:
        mostly = "" if by_way[usual] > NEARLY_ALL * n else "mostly "
        return f"moving {way}, where motion is {mostly}{usual} {seen}"
    scarce = "hardly anything" if times < HARDLY * n else "little"
    others = scarce if times < LITTLE * n else "much"
    return f"moving {way}, as {others} there does {seen}"


def _speed_reason(model: HabitModel, cell: int, direction: int, speed: int) -> str:
    v = model.vocabulary
    coarse = direction // (v.directions // N_DIRECTIONS)
    moving, there = f"moving {WAYS[1::3][coarse]}", "there"
    here, nearby = _around(model.all_counts.speed[:, coarse], cell, model)
    seen = here.sum()
    if 0 < round(seen) < FEWEST:
        times = counted(round(seen), "time")
        return f"{moving}, as hardly anything did there before ({times} nearby)"
    if round(seen) == 0:
        here, there = model.all_counts.speed[:, coarse].sum(axis=0), "in this scene"
    if round(here.sum()) == 0:
        return f"{moving}, as nothing did before"
    usual = int((np.cumsum(here) >= here.sum() / 2).argmax())
    if speed == usual:
        return f"{moving} at a usual speed"
    so, as_much = ("fast", here[speed:]) if speed > usual else ("slow", here[: speed + 1])
    how_often = f" {_times(as_much.sum(), seen, nearby, f'so {so} ')}" if seen else ""
    if v.speeds == 2:
        return f"{moving} and {so}, where motion is usually {SLOW_OR_FAST[so == 'slow']}{how_often}"
    ratio = SPEED_RATIO ** abs(speed - usual)
    if ratio < SLIGHTLY:
        return f"{moving} somewhat {so}er than usual {there}{how_often}"
    # The first and the last class of speed have no end: the ratio is at least that of the classes.
    open_ended = bool({speed, usual} & {0, v.speeds - 1})
    if so == "fast":
        about = "at least" if open_ended else "about"
        return f"{moving} {about} {_ratio_in_words(ratio)} as fast as usual {there}{how_often}"
    about = "no more than" if open_ended else "about"
    return f"{moving} at {about} {100 / ratio:.0f} % of the usual speed {there}{how_often}"


def _frame_reason(
    judgement: HabitJudgement, model: HabitModel, cue: int, unit: str, *, everywhere: bool
) -> str:
    """Say what is unusual about the whole frame, or about several things in a part of it."""
    cells, directions, speeds = judgement.votes
    if cue == TOGETHER:
        cue = int(judgement.evidence.excesses[:, :TOGETHER].sum(axis=0).argmax())
    if cue == PLACE:
        counts = model.all_counts
        if (counts.moving[cells] < HARDLY * counts.n_documents).mean() >= MANY:
            return "motion in many places where hardly anything moves"
        usual = counts.moving.sum() / max(counts.n_documents, 1.0)
        return "more motion than usual" if len(cells) > usual else "motion in less usual places"
    if cue == BY_HOUR:
        unusual = np.flatnonzero(judgement.evidence.excesses[:, cue])
        return f"motion{_hour_reason(model, cells[unusual], judgement.clock, unit)}"
    if cue == DIRECTION:
        rare = model.habits.direction[cells, directions] > -np.log(RARE_WAY)
        many = "many" if rare.mean() >= MANY else "some"
        return f"{many if everywhere else 'several'} things move in unusual directions"
    coarse = directions // (model.vocabulary.directions // N_DIRECTIONS)
    below = np.cumsum(np.exp(-model.habits.speed[cells, coarse]), axis=1)
    usual_speeds = (below >= 0.5).argmax(axis=1)
    shares = {"faster": (speeds > usual_speeds).mean(), "slower": (speeds < usual_speeds).mean()}
    word = max(shares, key=lambda name: shares[name])
    if shares[word] == 0:
        return "motion at unusual speeds"
    if not everywhere:
        return f"several things move {word} than usual"
    if shares[word] >= NEARLY_ALL:
        return f"everything moves {word} than usual"
    amount = "most things move" if shares[word] >= MOSTLY else "some things move"
    return f"{amount} {word} than usual"


def _around(counts: Array, cell: int, model: HabitModel) -> tuple[Array, bool]:
    """Return the counts of a cell, or those of the cells around it too where it has few.

    Also returns whether the cells around it are part.
    """
    if counts[cell].sum() >= FEWEST:
        return np.asarray(counts[cell]), False
    v = model.vocabulary
    grid = counts.reshape(v.rows, v.columns, -1)
    row, column = divmod(cell, v.columns)
    rows = slice(max(row - 1, 0), row + 2)
    columns = slice(max(column - 1, 0), column + 2)
    return np.asarray(grid[rows, columns].sum(axis=(0, 1))), True


def _times(times: float, n: float, nearby: bool, what: str = "") -> str:
    """Return a count in words; counts that fade are rounded."""
    return (
        f"({what}{round(times):,} of {counted(round(n), 'time', ',')}{' nearby' if nearby else ''})"
    )


def _ratio_in_words(ratio: float) -> str:
    names = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}
    nearest = round(ratio)
    if nearest in names and abs(ratio - nearest) < 0.26:
        return names[nearest]
    return f"{ratio:.1f}".removesuffix(".0") + " times" if ratio < 10 else f"{ratio:.0f} times"
