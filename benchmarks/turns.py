"""Whose turn it is: rendered junctions with and without the turn as a cue.

    python benchmarks/turns.py [--seeds 531 532 533 611 612 613] [--minutes 5 30] [--folder FOLDER]

Scenes, anomalies and figures are those of `unseen.py`. Without the turn, the same model judges by
its other cues. With `--folder`, videos and corpora are kept there and used again.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import habitus
from habitus.evaluation.matching import found_at_rates
from habitus.evaluation.metrics import ScoredDocuments
from habitus.scene import SceneModel
from report import Cells, add_output, hand_on, kept_folder, progress
from unseen import RATES, SEEDS, Scene, figures, scenes

NEW_SEEDS = (611, 612, 613)
"""Scenes that were rendered once everything was chosen."""
OUT_OF_TURN = ("red-light", "jaywalker")


def without_turns(model: SceneModel) -> SceneModel:
    """Return a model in which the turn is no cue."""
    habits = model.habits
    assert habits is not None
    fusion = replace(habits.fusion, turn_scans=None, turn_gain=0.0)
    return replace(model, habits=replace(habits, turns=None, fusion=fusion))


def judged(scene: Scene, model: SceneModel) -> tuple[float, list[int], Counter[str]]:
    """Return average precision, events found at each of RATES, and the kinds of the first."""
    found = model.detector().judge_all(scene.test)
    reached = figures(scene, found.normality, found.judged)
    test, clear = scene.test, found.judged & ~scene.unclear
    scored = ScoredDocuments(found.normality, clear, test.times, test.clip)
    (at_rate,) = found_at_rates(scored, scene.spans, RATES[:1])
    kinds = Counter(kind for kind, hit in zip(scene.kinds, at_rate.found, strict=True) if hit)
    return reached.average_precision, list(reached.found), kinds


def measure(seeds: list[int], minutes: float, folder: Path) -> Iterator[Cells]:
    """Yield a row with turns and one without, of all scenes together."""
    known = list(scenes(seeds, minutes, folder))
    models = [habitus.learn(scene.train) for scene in known]
    progress(f"{minutes:g} minutes of {seeds}")
    n_events = sum(len(scene.spans) for scene in known)
    n_out = sum(kind in OUT_OF_TURN for scene in known for kind in scene.kinds)
    gains = [model.habits.fusion.turn_gain for model in models if model.habits is not None]
    for name, used in (("with", models), ("without", [*map(without_turns, models)])):
        rows = [judged(*pair) for pair in zip(known, used, strict=True)]
        events = np.sum([found for _, found, _ in rows], axis=0).tolist()
        out = sum(kinds[kind] for *_, kinds in rows for kind in OUT_OF_TURN)
        yield {
            "scenes": f"{seeds[0]} to {seeds[-1]}",
            "minutes learnt": minutes,
            "turn": name,
            "gain (nats)": f"{min(gains):.2f} to {max(gains):.2f}" if name == "with" else "",
            "area under PR": round(float(np.mean([value for value, *_ in rows])), 3),
            **{
                f"events at {rate:g} per hour": f"{n} of {n_events}"
                for rate, n in zip(RATES, events, strict=True)
            },
            f"red lights and jaywalkers at {RATES[0]:g}": f"{out} of {n_out}",
        }


def main() -> None:
    """Run the benchmark as a script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[*SEEDS, *NEW_SEEDS])
    parser.add_argument("--minutes", type=float, nargs="+", default=[5.0, 30.0], help="to learn")
    parser.add_argument("--folder", type=Path, help="where videos and corpora are kept")
    add_output(parser)
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        groups = [options.seeds[k : k + 3] for k in range(0, len(options.seeds), 3)]
        rows = [
            row
            for group in groups
            for minutes in options.minutes
            for row in measure(group, minutes, folder)
        ]
    hand_on(rows, options)


if __name__ == "__main__":
    main()
