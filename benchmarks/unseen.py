"""Rendered junctions that nothing was tuned on: events found, and every method beside chance.

    python benchmarks/unseen.py [--seeds 531 532 533] [--minutes 30 ...] [--folder FOLDER]

Each scene is 70 minutes of 360x288; the first 30 are normal. A method learns from the last
`--minutes` of those and scores the other 40. An anomaly counts where a person can see it: while it
is at least 12 pixels wide and high; documents in which one is smaller than that count neither way.
The paper's pipeline is EM with prior 1 on the paper's words, scored by the paper's measure. With
`--folder`, videos and corpora are kept there and used again.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import habitus
from habitus.arrays import Array, Flags
from habitus.evaluation.matching import Span, found_at_rates
from habitus.evaluation.metrics import ScoredDocuments, average_precision
from habitus.habits import STATISTICS
from habitus.lab import Junction, render
from habitus.lab.comparison.baselines import BASELINES, run_baseline
from habitus.lab.comparison.protocol import ComparisonProtocol, SplitFootage
from habitus.scene import learn_habits
from report import Cells, kept_folder, progress, save, table

SEEDS = (531, 532, 533)
NORMAL, TEST = 1800.0, 2400.0
LEAST_SIDE = 12
RATES = (6.0, 30.0)
PAPER_RUNS = 3


class Scene(NamedTuple):
    """Documents to learn from and to judge, with what there is to be found."""

    seed: int
    train: habitus.Corpus
    test: habitus.Corpus
    spans: list[Span]
    """Seconds of each anomaly that can be seen."""
    kinds: list[str]
    unclear: Flags
    """Test documents in which an anomaly is there but too small."""

    @property
    def abnormal(self) -> Flags:
        """Test documents in which an anomaly can be seen."""
        return overlapping(self.spans, self.test)


class Figures(NamedTuple):
    """What a method reaches on one scene."""

    average_precision: float
    found: tuple[int, ...]
    """Events at each of RATES."""


Method = Callable[[Scene], tuple[Array, Flags]]
"""Normality of the test documents, and which were judged."""


def scenes(
    seeds: list[int],
    minutes: float,
    folder: Path,
    normal: float = NORMAL,
    test: float = TEST,
    least_side: int = LEAST_SIDE,
    **settings: Any,
) -> Iterator[Scene]:
    """Yield the scenes, rendered and extracted where that is not done yet."""
    for seed in seeds:
        junction = Junction(seed=seed, seconds=normal + test, normal_for=normal, **settings)
        corpus = corpus_of(junction, folder / f"junction-{seed}")
        seen, hidden, kinds = [], [], []
        for anomaly in junction.truth():
            wide = anomaly.boxes[:, 3] - anomaly.boxes[:, 1] >= least_side
            high = anomaly.boxes[:, 4] - anomaly.boxes[:, 2] >= least_side
            times = anomaly.boxes[wide & high, 0] / junction.fps
            hidden.append(Span(anomaly.start, anomaly.end))
            if len(times):
                seen.append(Span(float(times[0]), float(times[-1])))
                kinds.append(anomaly.kind)
        split = round(normal / corpus.clip)
        judged = corpus.take(np.arange(split, len(corpus)))
        learnt = np.arange(split - round(minutes * 60 / corpus.clip), split)
        unclear = overlapping(hidden, judged) & ~overlapping(seen, judged)
        yield Scene(seed, corpus.take(learnt), judged, seen, kinds, unclear)


def corpus_of(junction: Junction, path: Path) -> habitus.Corpus:
    """Return the documents of a scene; video and corpus are kept beside `path`."""
    video, stored = path.with_suffix(".mp4"), path.with_suffix(".corpus")
    if not stored.exists():
        if not video.exists():
            render(junction, video)
        habitus.extract(video, output=stored)
    return habitus.Corpus.load(stored)


def overlapping(spans: list[Span], corpus: habitus.Corpus) -> Flags:
    """Return which documents overlap a span."""
    flags = np.zeros(len(corpus), dtype=np.bool_)
    for start, end in spans:
        flags |= (corpus.times < end) & (corpus.times + corpus.clip > start)
    return flags


def figures(scene: Scene, normality: Array, judged: Flags) -> Figures:
    """Return what scores reach; unclear documents are left out."""
    test = scene.test
    scored = ScoredDocuments(normality, judged & ~scene.unclear, test.times, test.clip)
    clear = ~scene.unclear
    precision = average_precision(scored.abnormality[clear], scene.abnormal[clear])
    found = found_at_rates(scored, scene.spans, RATES)
    return Figures(precision, tuple(int(each.found.sum()) for each in found))


def by_measure(measure: str) -> Method:
    """Judge by habitus with default options."""

    def judge(scene: Scene) -> tuple[Array, Flags]:
        found = habitus.learn(scene.train).detector(measure=measure).judge_all(scene.test)
        return found.normality, found.judged

    return judge


def by_statistic(number: int) -> Method:
    """Judge by one cue alone, gathered in one way."""

    def judge(scene: Scene) -> tuple[Array, Flags]:
        found = learn_habits(scene.train).judge_all(scene.test)
        return -found.cues.statistics[:, number], found.judged

    return judge


def by_paper(run: int) -> Method:
    """Judge as the paper does, on the paper's words."""

    def judge(scene: Scene) -> tuple[Array, Flags]:
        model = habitus.MarkovClusteringTopicModel(prior="1", n_restarts=1, random_state=run)
        model.fit(scene.train.paper)
        detector = habitus.Detector(model, measure="mean", threshold=-1.0)
        found = detector.judge_all(scene.test.paper)
        return found.normality, found.judged

    return judge


def by_baseline(name: str) -> Method:
    """Judge by a baseline of `habitus compare`."""

    def judge(scene: Scene) -> tuple[Array, Flags]:
        protocol = ComparisonProtocol()
        corpus = habitus.Corpus.joined([scene.train, scene.test])
        split = SplitFootage(corpus, len(scene.train), [])
        found = run_baseline(name, split, protocol, protocol.seed_of(name, 0))
        return found.normality, split.long_enough(protocol)[split.n_train :]

    return judge


def methods() -> dict[str, list[Method]]:
    """Return every method by name, with its runs."""
    return {
        "habitus (habits)": [by_measure("habits")],
        **{f"one cue: {cue}, {how}": [by_statistic(k)] for k, (cue, how) in enumerate(STATISTICS)},
        "habitus, tail": [by_measure("tail")],
        "habitus, mean": [by_measure("mean")],
        "the paper's pipeline": [by_paper(run) for run in range(PAPER_RUNS)],
        **{name: [by_baseline(name)] for name in BASELINES},
    }


def told(name: str, precisions: list[float], events: list[float], found: list[Scene]) -> Cells:
    """Return one row of the table: average precision of each scene, events of all scenes."""
    n_events = sum(len(scene.spans) for scene in found)
    each = {str(scene.seed): value for scene, value in zip(found, precisions, strict=True)}
    shares = [f"{n:g} ({n / n_events:.0%})".replace("%", " %") for n in events] or [""] * len(RATES)
    return {
        "method": name,
        **{seed: round(value, 3) for seed, value in each.items()},
        "mean": round(float(np.mean(precisions)), 3),
        **{f"events at {rate:g} per hour": n for rate, n in zip(RATES, shares, strict=True)},
    }


def averaged(runs: list[Figures]) -> Figures:
    """Return the mean over runs."""
    found = np.mean([run.found for run in runs], axis=0)
    precision = float(np.mean([run.average_precision for run in runs]))
    return Figures(precision, tuple(found.round(1).tolist()))


def by_kinds(found: list[Scene]) -> Iterator[Cells]:
    """Yield how many of each kind habits find at the first of RATES, and how many there are."""
    hits, all_ = Counter[str](), Counter[str]()
    for scene in found:
        normality, judged = by_measure("habits")(scene)
        clear = judged & ~scene.unclear
        scored = ScoredDocuments(normality, clear, scene.test.times, scene.test.clip)
        (at_rate,) = found_at_rates(scored, scene.spans, RATES[:1])
        all_.update(scene.kinds)
        hits.update(kind for kind, hit in zip(scene.kinds, at_rate.found, strict=True) if hit)
    for kind, n in all_.items():
        yield {"kind": kind, f"found at {RATES[0]:g} per hour": hits[kind], "of": n}


def main() -> None:
    """Print the tables: every method, and what is found of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--minutes", type=float, nargs="+", default=[30.0], help="to learn from")
    parser.add_argument("--folder", type=Path, help="where videos and corpora are kept")
    parser.add_argument(
        "--methods", nargs="*", help="parts of the names of methods; all by default"
    )
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        of = {length: list(scenes(options.seeds, length, folder)) for length in options.minutes}
    found = of[options.minutes[-1]]
    print(f"{sum(len(scene.spans) for scene in found)} anomalies that can be seen\n")
    chance = [float(scene.abnormal[~scene.unclear].mean()) for scene in found]
    rows = [told("chance", chance, [], found)]
    for length, known in of.items():
        after = f", {length:g} minutes" if len(of) > 1 else ""
        for name, runs in methods().items():
            if options.methods is None or any(part in name for part in options.methods):
                each = [averaged([figures(one, *judge(one)) for judge in runs]) for one in known]
                precisions = [row.average_precision for row in each]
                events = [sum(row.found[k] for row in each) for k in range(len(RATES))]
                rows.append(told(name + after, precisions, events, known))
                progress(f"{name}{after}: {events[0]:g} events")
    print(table(rows))
    kinds = list(by_kinds(found))
    print(f"\n{table(kinds)}")
    if options.save:
        save("unseen-minutes" if len(of) > 1 else "unseen", rows)
        save("unseen-kinds", kinds)


if __name__ == "__main__":
    main()
