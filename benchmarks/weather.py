"""Weather and night: words and false alarms beside the same footage without it.

    python benchmarks/weather.py [--seeds 31 32 33] [--minutes 15] [--folder FOLDER] [--table]

Junctions without anomalies are rendered with each kind of weather (240x192, 12.5 frames per second,
all of which are compared) and read. Habits are learnt from the first `--minutes` and judge as many
again: every alarm is false. Each kind is learnt with the weather, and without it (the first rain
that a camera sees); the traffic is the same, to the bit.

- words: relative to the footage that the kind stands beside;
- alarms per hour: counted at a budget of 60 per hour, all seeds together, beside those of the
  footage without it, and their ratio (of one alarm, where there is none without it);
- documents that are abnormal at that budget: where nearly all are, they join to few alarms;
- alarms per day: those to expect at a budget of 5, from the tail of the judged scores, in the mean.

With `--folder`, videos and corpora are kept there and used again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import habitus
from habitus.lab import Junction, render
from habitus.scene import learn_habits
from habitus.scene.fusion import CueColumns
from habitus.scene.habit_model import HabitModel
from habitus.scene.thresholds import Tail, runs
from report import Cells, add_output, hand_on, kept_folder, progress

SEEDS = (31, 32, 33)
MINUTES = 15.0
WIDTH, HEIGHT, FPS = 240, 192, 12.5
PER_HOUR, PER_DAY = 60.0, 5.0
DAY = 86_400.0
PLAIN: tuple[str, ...] = ()
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rain": (("rain",), PLAIN),
    "snow": (("snow",), PLAIN),
    "swaying leaves": (("leaves",), PLAIN),
    "shadows of clouds": (("clouds",), PLAIN),
    "camera shake": (("shake",), PLAIN),
    "night with headlights": (("night",), PLAIN),
    "insects, at night": (("night", "insects"), ("night",)),
}
"""Each kind, and the weather of the footage that it stands beside."""


class Alarms(NamedTuple):
    """False alarms of one model on the footage of one seed."""

    counted: int
    """At `PER_HOUR`."""
    share: float
    """Of the documents that are abnormal at it."""
    per_day: float
    """Expected at `PER_DAY`."""


def corpus_of(seed: int, weather: tuple[str, ...], minutes: float, folder: Path) -> habitus.Corpus:
    """Return the documents of a scene, rendered and extracted where that is not done yet."""
    name = "-".join([str(seed), f"{minutes:g}", *weather])
    video, stored = folder / f"{name}.mp4", folder / f"{name}.corpus"
    if not stored.exists():
        if not video.exists():
            size = {"width": WIDTH, "height": HEIGHT, "fps": FPS}
            seconds = 120 * minutes
            render(Junction(seed, seconds, **size, anomalies=(), weather=weather), video)
        habitus.extract(video, output=stored)
        progress(f"{name} read")
    return habitus.Corpus.load(stored)


def parts(corpus: habitus.Corpus) -> tuple[habitus.Corpus, habitus.Corpus]:
    """Return the documents to learn from, and those to judge."""
    middle = len(corpus) // 2
    return corpus.take(np.arange(middle)), corpus.take(np.arange(middle, len(corpus)))


def alarms(model: HabitModel, corpus: habitus.Corpus) -> Alarms:
    """Return the alarms of habits on normal footage."""
    found = model.judge_all(corpus)
    scores = np.where(found.judged, -model.fusion.scores(CueColumns(found.cues.statistics)), 0.0)
    per_day = DAY * float(model.fusion.judged.mean())
    often, seldom = (
        model.fusion.tail.threshold(budget, per_day) for budget in (24 * PER_HOUR, PER_DAY)
    )
    tail, abnormal = Tail.of(scores, found.judged), (scores < often) & found.judged
    return Alarms(
        len(runs(abnormal)),
        float(abnormal.mean()),
        tail.least_alerts(seldom, DAY * float(found.judged.mean())),
    )


def words_per_document(corpora: list[habitus.Corpus]) -> float:
    """Return the mean number of words of a document."""
    return float(np.mean([corpus.counts.sum() / len(corpus) for corpus in corpora]))


def row(name: str, words: float, found: dict[str, list[Alarms]], hours: float) -> Cells:
    """Return a row of the table: alarms of all seeds, by what was learnt."""
    counts = {how: sum(each.counted for each in all_) for how, all_ in found.items()}
    shares = {how: np.mean([each.share for each in all_]) for how, all_ in found.items()}
    per_day = {how: np.mean([each.per_day for each in all_]) for how, all_ in found.items()}
    return {
        "kind": name,
        "words": round(words, 2),
        f"alarms per hour at {PER_HOUR:g}": round(counts["known"] / hours, 1),
        "without the kind": round(counts["beside"] / hours, 1),
        "ratio": round(counts["known"] / max(counts["beside"], 1), 1),
        "learnt without it": round(counts["new"] / hours, 1),
        "% of documents abnormal": round(100 * float(shares["known"]), 1),
        "% without the kind": round(100 * float(shares["beside"]), 1),
        "% learnt without it": round(100 * float(shares["new"]), 1),
        f"alarms per day at {PER_DAY:g}": round(float(per_day["known"]), 1),
        "a day without the kind": round(float(per_day["beside"]), 1),
    }


def measure(seeds: list[int], minutes: float, folder: Path, kinds: list[str]) -> Iterator[Cells]:
    """Yield the rows of the table: footage without weather first."""
    wanted = {name: KINDS[name] for name in kinds}
    weathers = {PLAIN, *(each for pair in wanted.values() for each in pair)}
    corpora = {
        weather: [corpus_of(seed, weather, minutes, folder) for seed in seeds]
        for weather in sorted(weathers)
    }
    models = {w: [learn_habits(parts(c)[0]) for c in each] for w, each in corpora.items()}
    hours = len(seeds) * minutes / 60

    def judged(learnt: tuple[str, ...], weather: tuple[str, ...]) -> list[Alarms]:
        pairs = zip(models[learnt], corpora[weather], strict=True)
        return [alarms(model, parts(corpus)[1]) for model, corpus in pairs]

    plain = judged(PLAIN, PLAIN)
    yield row("none", 1.0, {"known": plain, "beside": plain, "new": plain}, hours)
    for name, (weather, beside) in wanted.items():
        words = words_per_document(corpora[weather]) / words_per_document(corpora[beside])
        found = {
            "known": judged(weather, weather),
            "beside": judged(beside, beside),
            "new": judged(beside, weather),
        }
        yield row(name, words, found, hours)


def main() -> None:
    """Run the benchmark as a script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="to learn from, and to judge"
    )
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--folder", type=Path, help="where videos and corpora are kept")
    add_output(parser)
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        rows = list(measure(options.seeds, options.minutes, folder, options.kinds))
    hand_on(rows, options)


if __name__ == "__main__":
    main()
