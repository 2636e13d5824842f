"""Recall as it is estimated without labels, beside the true one, on the built-in junction.

A model is learnt from the first minutes of each scene; the estimate comes from those minutes alone.
Then the rest of the scene, which has labelled anomalies, is judged, and the kinds that correspond
are set beside each other. Breakdowns are left out: what stands still makes no words.

    python benchmarks/recall_estimate.py --folder /tmp/scenes 300 301 302 303
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from habitus.corpus.documents import Corpus
from habitus.evaluation.label_files import read_labels
from habitus.evaluation.matching import match
from habitus.ingest.extraction import extract_corpus
from habitus.lab import Junction, render, write_labels
from habitus.lab.tuning.recall import BUDGETS, STRENGTHS, estimate_recall, jeffreys
from habitus.scene import detect_events, learn_scene
from habitus.video import Source
from report import Cells, save, table

CORRESPONDS = {
    "wrong-way": "wrong way",
    "red-light": "out of turn",
    "jaywalker": "out of place",
    "pavement": "out of place",
    "u-turn": "foreign path",
}
NORMAL, SECONDS = 600, 1800

Counts = dict[tuple[str, float], list[int]]
"""Found and tried, by kind and budget (and strength, for the estimate)."""


def corpus_of(seed: int, folder: Path) -> Corpus:
    """Documents of a scene, made once."""
    made = folder / f"{seed}.corpus"
    if not made.exists():
        scene, video = (
            Junction(seed=seed, seconds=SECONDS, normal_for=NORMAL),
            folder / f"{seed}.mp4",
        )
        render(scene, video)
        write_labels(scene, folder / f"{seed}.csv")
        extract_corpus([Source(str(video))]).corpus.save(made)
    return Corpus.load(made)


def main() -> None:
    """Print a table, and a line of JSON with all counts."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folder", type=Path, required=True, help="keeps scenes and corpora")
    options.add_argument("--train", type=int, default=NORMAL, help="seconds to learn from")
    options.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS))
    options.add_argument("seeds", type=int, nargs="+")
    options.add_argument("--save", action="store_true", help="keep the rows for the documents")
    given = options.parse_args()
    truth: dict[tuple[str, float], list[int]] = defaultdict(lambda: [0, 0])
    estimate: dict[tuple[str, float, float | None], list[int]] = defaultdict(lambda: [0, 0])
    false = dict.fromkeys(given.budgets, 0)
    for seed in given.seeds:
        corpus = corpus_of(seed, given.folder)
        known = corpus.take(np.flatnonzero(corpus.times < given.train))
        later = corpus.take(np.flatnonzero(corpus.times >= NORMAL))
        scene = learn_scene(known, n_restarts=20, n_jobs=2, random_state=0)
        print(f"seed {seed}: learnt from {len(known)} documents {scene.notes or ''}", flush=True)
        recall = estimate_recall(scene, known, alerts_per_day=given.budgets)
        print(f"  {recall.n_tracks} tracks, {recall.typical:.0f} words a document", flush=True)
        for s in recall.shares:
            add(estimate[s.kind, s.alerts_per_day, s.strength], s.n_found, s.n_trials)
        labels = [a for a in read_labels(given.folder / f"{seed}.csv") if a.kind in CORRESPONDS]
        every = read_labels(given.folder / f"{seed}.csv")
        for budget in given.budgets:
            events = detect_events(scene.detector(alerts_per_day=budget), later).events
            false[budget] += len(match(events, every).false_alarms)
            for label, by in zip(labels, match(events, labels).found_by, strict=True):
                add(truth[label.kind, budget], by is not None, 1)
    for budget in given.budgets:
        rows = list(compared(budget, truth, estimate))
        print(f"\nat {budget:g} alerts per day, {false[budget]} false alarms in the footage judged")
        print(table(rows))
        if given.save:
            save(f"recall_estimate-{budget:g}", rows)
    print(json.dumps({"truth": listed(truth), "estimate": listed(estimate)}))


def add(pair: list[int], found: int, tried: int) -> None:
    """Count on."""
    pair[0] += found
    pair[1] += tried


def compared(budget: float, truth: Counts, estimate: dict) -> Iterator[Cells]:
    """Yield the estimate beside the truth, kind by kind, over all true anomalies, and its error."""
    expected, weights, found = np.zeros(len(STRENGTHS)), 0, 0
    for kind, made in CORRESPONDS.items():
        n_found, n = truth[kind, budget]
        shares = np.nan_to_num([ratio(estimate[made, budget, s]) for s in STRENGTHS])
        low, high = jeffreys(n_found, n)
        yield line(kind, f"{n_found} of {n} ({low:.2f} to {high:.2f})", shares, made)
        expected += n * shares
        weights, found = weights + n, found + n_found
    yield line("all, weighted by frequency", f"{found} of {weights}", expected / weights, "")
    yield line("error", "", (expected - found) / weights, "")


def line(kind: str, truly: str, shares: NDArray[np.float64], made: str) -> Cells:
    """Return one row of the table."""
    columns = {
        f"synthetic x {strength:g}": round(float(share), 2)
        for strength, share in zip(STRENGTHS, shares, strict=True)
    }
    return {"kind": kind, "truly found (90 % interval)": truly, **columns, "synthetic kind": made}


def ratio(pair: list[int]) -> float:
    """Share found; not a number if none was tried."""
    return pair[0] / pair[1] if pair[1] else float("nan")


def listed(counts: dict) -> list[list]:
    """For JSON."""
    return [[*key, *pair] for key, pair in counts.items()]


if __name__ == "__main__":
    main()
