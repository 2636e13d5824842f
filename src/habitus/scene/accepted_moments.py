"""Moments that people called normal: counted beside what was learnt, and kept in the model's file.

They stay apart from the counts, so that one that is taken back leaves no trace.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.arrays import Indices
from habitus.corpus import Vocabulary
from habitus.corpus.clocks import NO_HOUR, hours_of
from habitus.corpus.stands import StandingCells
from habitus.errors import FileError
from habitus.habits.counts import HabitCounts
from habitus.habits.standing import StandingCounts
from habitus.habits.turns import TurnCounts
from habitus.habits.votes import Votes


class Moment(NamedTuple):
    """A document that an operator called normal."""

    votes: Votes
    hour: int = NO_HOUR
    """See `hours_of`."""
    times: float = 1.0
    """How often it is counted."""
    standing: StandingCells = StandingCells.unknown()
    after: bool = False
    """Whether it is of the event of the moment before."""

    def same(self, other: "Moment") -> bool:
        """Return whether two moments are one."""
        mine, others = (*self.votes, *self.standing[:2]), (*other.votes, *other.standing[:2])
        pairs = zip(mine, others, strict=True)
        return self.hour == other.hour and all(np.array_equal(one, two) for one, two in pairs)


def moment_of(
    votes: Votes, clock: int, standing: StandingCells | None, times: float = 1.0
) -> Moment:
    """Return votes, and what stands, as a moment of the hour of a clock."""
    hour = int(hours_of(np.array(clock)))
    return Moment(votes, hour, times, standing or StandingCells.unknown())


def with_accepted_moments(counts: HabitCounts, accepted: Sequence[Moment]) -> HabitCounts:
    """Return counts with moments that were accepted."""
    if not accepted:
        return counts
    return counts.adding_all((votes, times, hour) for votes, hour, times, *_ in accepted)


def with_accepted_turns(
    counts: TurnCounts | None, accepted: Sequence[Moment], vocabulary: Vocabulary
) -> TurnCounts | None:
    """Return counts by the turn likewise; None where the turn is no cue."""
    if counts is None or not accepted:
        return counts
    return counts.adding_all(((votes, times) for votes, _, times, *_ in accepted), vocabulary)


def with_accepted_standing(
    counts: StandingCounts | None, accepted: Sequence[Moment]
) -> StandingCounts | None:
    """Return counts of what stands likewise; None where that is no cue."""
    for moment in accepted:
        if counts is not None and moment.standing.known:
            counts = counts.adding(moment.standing, moment.times)
    return counts


def accepted_tensors(
    accepted: tuple[Moment, ...], vocabulary: Vocabulary
) -> dict[str, NDArray[Any] | None]:
    """Return the moments that were accepted as a file has them; None of what all have alike."""
    codes = [moment.votes.codes(vocabulary) for moment in accepted]
    hours, times = [moment.hour for moment in accepted], [moment.times for moment in accepted]
    stands = [moment.standing for moment in accepted]
    any_stands = any(standing.known for standing in stands)
    after = [moment.after for moment in accepted]
    return {
        "accepted": _whole(codes),
        "accepted_lengths": _whole([[len(words) for words in codes]]),
        "accepted_hours": np.array(hours) if set(hours) - {NO_HOUR} else None,
        "accepted_times": np.array(times) if set(times) - {1.0} else None,
        "accepted_after": _whole([after]) if any(after) else None,
        "accepted_cells": _whole([each.cells for each in stands]) if any_stands else None,
        "accepted_ages": _whole([each.ages for each in stands]) if any_stands else None,
        "accepted_stands": _whole([[len(each.cells) for each in stands]]) if any_stands else None,
    }


def accepted_moments(stored: dict[str, NDArray[Any]], vocabulary: Vocabulary) -> Iterator[Moment]:
    """Yield the moments of a file that were accepted."""
    codes, lengths = stored["accepted"], stored["accepted_lengths"]
    if codes.max(initial=-1) >= vocabulary.n_words or lengths.sum() != len(codes):
        raise FileError("the accepted moments do not fit the habits")
    parts = np.split(codes, np.cumsum(lengths)[:-1]) if len(lengths) else []
    hours = stored.get("accepted_hours", np.full(len(parts), NO_HOUR))
    times = stored.get("accepted_times", np.ones(len(parts)))
    after = stored.get("accepted_after", np.zeros(len(parts)))
    stands = _accepted_stands(stored, len(parts), vocabulary.n_cells)
    for part, hour, n, standing, of_it in zip(parts, hours, times, stands, after, strict=True):
        votes = Votes.of_codes(part, vocabulary)
        yield Moment(votes, int(hour), float(n), standing, bool(of_it))


def _accepted_stands(
    stored: dict[str, NDArray[Any]], n_moments: int, n_cells: int
) -> list[StandingCells]:
    """Return what stands in accepted moments, as a file has it."""
    if "accepted_stands" not in stored:
        return [StandingCells.unknown()] * n_moments
    lengths, cells, ages = (stored[f"accepted_{name}"] for name in ("stands", "cells", "ages"))
    if lengths.sum() != len(cells) or cells.max(initial=-1) >= n_cells:
        raise FileError("the accepted moments do not fit the habits")
    ends = np.cumsum(lengths)[:-1]
    pairs = zip(np.split(cells, ends), np.split(ages, ends), strict=True)
    return [StandingCells(*pair, len(pair[0]) > 0) for pair in pairs]


def _whole(parts: Sequence[ArrayLike]) -> Indices:
    """Return whole numbers of moments, one after the other."""
    return np.concatenate([np.empty(0), *parts]).astype(np.int64)
