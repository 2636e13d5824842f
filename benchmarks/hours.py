"""The cue of the hour: what it predicts, finds and costs on days of one camera.

    python benchmarks/hours.py PATH [--cache FOLDER]

PATH has a folder per day, named by its date, with a video per hour: DATE/HOUR.mp4. Folders with
less than half a day are left out. Each day is judged by habits of the other days, with and without
clocks:

- gain: nats per moving cell by which the hour predicts that day better than the place alone;
- alarms of that day at budgets of 1, 5 and 20 a day, by habits alone, at the threshold that the
  tail of normal footage has for the budget;
- visits that are found at 5 a day, of 300: ten seconds of that day, as if they were of an hour at
  which the other days show next to no motion at these cells (a tenth of the usual or less).
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import habitus
from habitus.arrays import Array, Indices
from habitus.corpus.clocks import clocks_since, parse_clock
from habitus.habits import HabitCounts, votes_of_corpus
from habitus.habits.hours import HOUR
from habitus.scene.fusion import CueColumns
from habitus.scene.habit_learning import learn_habits
from habitus.scene.habit_model import HabitModel, counted_hours
from habitus.scene.thresholds import runs
from reference.habits import hour_gain
from report import Cells, add_output, hand_on

BUDGETS = (1.0, 5.0, 20.0)
DAY, VISITS, SECONDS, QUIET = 86_400.0, 300, 10, 0.1
LEAST_HOURS, LEAST_VOTES = 12, 6


class Day(NamedTuple):
    """A day of a camera."""

    date: str
    corpus: habitus.Corpus


def hours_in(folder: Path) -> list[Path]:
    """Return the videos of a day."""
    return sorted(folder.glob("[0-9][0-9].mp4"))


def corpus_of_day(folder: Path, cache: Path | None) -> habitus.Corpus:
    """Return the documents of a day; they are kept in another folder, where that is given."""
    hours = []
    for video in hours_in(folder):
        corpus = _extracted(video, cache)
        start = parse_clock(f"{folder.name} {video.stem}:00")
        hours.append(replace(corpus, clocks=clocks_since(start, corpus.times)))
    return habitus.Corpus.joined(hours)


def days_of(path: Path, cache: Path | None) -> Iterator[Day]:
    """Yield the days of a folder."""
    for folder in sorted(path.iterdir()):
        if len(hours_in(folder)) >= LEAST_HOURS:
            yield Day(folder.name, corpus_of_day(folder, cache))


def _extracted(video: Path, cache: Path | None) -> habitus.Corpus:
    if cache is None:
        return habitus.extract(video).corpus
    kept = cache / video.parent.name / f"{video.stem}.corpus"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        habitus.extract(video, output=kept)
    return habitus.Corpus.load(kept)


def threshold(model: HabitModel, alerts_per_day: float) -> float:
    """Return the score from which on documents are alarms."""
    judged = model.fusion.judged
    return -model.fusion.tail.threshold(alerts_per_day, DAY * float(judged.mean()))


def scores(model: HabitModel, corpus: habitus.Corpus) -> Array:
    """Return the score of each document; 0 where it is not judged."""
    found = model.judge_all(corpus)
    return np.where(found.judged, model.fusion.scores(CueColumns(found.cues.statistics)), 0.0)


def gain(model: HabitModel, corpus: habitus.Corpus) -> float:
    """Return the nats per moving cell that the hour tells of a day."""
    votes = votes_of_corpus(corpus, model.least_words)
    seen = HabitCounts.of(votes, model.vocabulary, len(corpus), counted_hours(corpus))
    if HOUR not in model.concentrations:
        return 0.0
    own = model.concentrations[HOUR]
    return hour_gain(model.counts, seen, model.habits.place, own, model.vocabulary)


def visits(model: HabitModel, day: Day, rng: np.random.Generator) -> Iterator[Indices]:
    """Yield the documents of a visit, and the hour that it is moved to."""
    votes = votes_of_corpus(day.corpus, model.least_words)
    able = np.flatnonzero(np.diff(votes.indptr)[:-SECONDS] >= LEAST_VOTES)
    about, documents = (
        sum(np.roll(counts[..., :24] + counts[..., 24:], turn, axis=-1) for turn in (-1, 0, 1))
        for counts in (model.counts.hours, model.counts.hour_documents)
    )
    n = 0
    while n < VISITS:
        start = rng.choice(able)
        own = np.arange(start, start + SECONDS)
        cells = np.unique(votes.take(own).cells)
        share = about[cells].sum(axis=0) / np.maximum(documents, 1.0)
        usual = model.counts.hours[cells].sum() / model.counts.hour_documents.sum()
        quiet = np.flatnonzero((share <= QUIET * usual) & (documents > 0))
        if len(quiet):
            n += 1
            yield np.concatenate([own, [rng.choice(quiet)]])


def found(model: HabitModel, day: Day, moved: list[Indices], at: float) -> float:
    """Return the share of visits with a document that is an alarm."""
    n = 0
    for *own, hour in moved:
        corpus = day.corpus.take(own)
        n += bool((scores(model, replace(corpus, clocks=np.full(len(own), 60 * hour))) > at).any())
    return n / len(moved)


def figures(name: str, model: HabitModel, day: Day, moved: list[Indices]) -> Cells:
    """Return a row of the table."""
    reached = scores(model, day.corpus)
    limits = {budget: threshold(model, budget) for budget in BUDGETS}
    alarms = {
        f"alarms at {budget:g} a day": len(runs(reached > limit))
        for budget, limit in limits.items()
    }
    return {
        "day": f"{day.date}, {name}",
        "gain (nats)": round(gain(model, day.corpus), 3),
        **alarms,
        "visits found at 5 a day": round(found(model, day, moved, limits[5.0]), 3),
    }


def measure(path: Path, cache: Path | None) -> Iterator[Cells]:
    """Yield the rows of each day, with and without the cue."""
    days = list(days_of(path, cache))
    for number, day in enumerate(days):
        others = habitus.Corpus.joined([other.corpus for other in days if other is not day])
        model = learn_habits(others)
        moved = list(visits(model, day, np.random.default_rng(number)))
        yield figures("with", model, day, moved)
        without = learn_habits(replace(others, clocks=None))
        yield figures("without", without, day, moved)


def run(description: str | None, measure: Callable[[Path, Path | None], Iterator[Cells]]) -> None:
    """Run a benchmark of days as a script."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("path", type=Path)
    parser.add_argument("--cache", type=Path, help="where to keep documents")
    add_output(parser)
    options = parser.parse_args()
    hand_on(list(measure(options.path, options.cache)), options)


if __name__ == "__main__":
    run(__doc__, measure)
