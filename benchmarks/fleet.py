"""What a fleet is worth to a new camera: rendered junctions, each with the prior of all others.

    python benchmarks/fleet.py [--seeds 521 ...] [--minutes 2 5 30] [--folder FOLDER] [--real PATH]

Each junction is as of `unseen.py`. It is learnt from its last minutes of normal footage, without
and with the fleet of the *other* junctions, learnt from all of their normal footage, and judges 40
minutes. Everything else has default options. Told are average precision, events found where the
test footage itself sets the threshold for 6 false alarms per hour, and what a budget of 6 alerts
per hour comes to: false alarms that are raised per hour, and events found.

`--real` adds data sets as of `real.py`, with the fleet of all junctions: area under ROC per frame.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import habitus
import real
import unseen
from habitus.evaluation.matching import HOUR, Span, match
from habitus.scene import learn_habits
from habitus.scene.thresholds import runs
from report import Cells, kept_folder, progress, save, table
from unseen import Scene

SEEDS = (521, 522, 523, 524, 531, 532, 533, 534)
RATE = 6.0
"""False alarms, and alerts, per hour."""
SMALL = {"width": 160, "height": 128, "fps": 12.5, "anomalies_per_hour": 240, "least_side": 3}
"""Settings of junctions that take seconds."""


class Row(NamedTuple):
    """What one camera reaches after some minutes."""

    average_precision: float
    found: int
    """Events where the test footage sets the threshold."""
    false_alarms: float
    """Per hour, with a budget of alerts."""
    told: int
    """Events found with that budget."""


def with_fleet(scene: habitus.SceneModel, fleet: habitus.Fleet) -> habitus.SceneModel:
    """Return what the same footage gives with a fleet: only habits change."""
    corpus, calibration = scene.corpus, scene.calibration
    assert isinstance(corpus, habitus.Corpus)
    behaviours = calibration.plug_in.scores["tail"] if calibration else None
    return replace(scene, habits=learn_habits(corpus, behaviours=behaviours, fleet=fleet))


def row(scene: Scene, model: habitus.SceneModel) -> Row:
    """Judge the test footage."""
    detector = model.detector(alerts_per_day=24 * RATE)
    judged = detector.judge_all(scene.test)
    figures = unseen.figures(scene, judged.normality, judged.judged)
    clear, times, clip = judged.judged & ~scene.unclear, scene.test.times, scene.test.clip
    alarms = [
        Span(float(times[first]), float(times[last] + clip))
        for first, last in runs((judged.normality < detector.threshold) & clear)
    ]
    matched = match(alarms, scene.spans)
    hours = len(scene.test) * clip / HOUR
    n_false = len(matched.false_alarms)
    return Row(figures.average_precision, figures.found[0], n_false / hours, matched.n_found)


def rows(
    cameras: list[Scene], minutes: list[float], whole: list[habitus.SceneModel], n_restarts: int
) -> Iterator[tuple[float, str, list[Row]]]:
    """Yield the rows of all cameras for each length of footage, without and with a fleet."""
    each = [habitus.Fleet.of([scene]) for scene in whole]
    for length in minutes:
        without, beside = [], []
        for number, camera in enumerate(cameras):
            n = round(60 * length / camera.train.clip)
            own = whole[number]
            if n < len(camera.train):
                last = np.arange(len(camera.train) - n, len(camera.train))
                own = habitus.learn(
                    camera.train.take(last),
                    learning=habitus.LearningSettings(n_restarts=n_restarts),
                )
            first, *others = (one for k, one in enumerate(each) if k != number)
            without.append(row(camera, own))
            beside.append(row(camera, with_fleet(own, sum(others, first))))
        yield length, "alone", without
        yield length, "with the fleet", beside


def means(length: float, name: str, found: list[Row]) -> Cells:
    """Return one row of the table of means."""
    return {
        "footage": f"{length:g} min, {name}",
        "average precision": round(float(np.mean([each.average_precision for each in found])), 3),
        f"events at {RATE:g} per hour": sum(each.found for each in found),
        "budget: false alarms per hour": round(
            float(np.mean([each.false_alarms for each in found])), 1
        ),
        "budget: events": sum(each.told for each in found),
    }


def each_one(length: float, name: str, found: list[Row], cameras: list[Scene]) -> Cells:
    """Return one row of the table of junctions."""
    return {"footage": f"{length:g} min, {name}"} | {
        str(camera.seed): f"{r.average_precision:.3f}, {r.found}, {r.false_alarms:.0f}"
        for camera, r in zip(cameras, found, strict=True)
    }


def real_areas(
    path: Path, fleet: habitus.Fleet, n_restarts: int
) -> Iterator[tuple[str, float, float]]:
    """Yield the area under ROC of each data set, without and with the fleet."""
    for data in real.data_sets(path):
        scenes = [
            habitus.learn(fold.train, learning=habitus.LearningSettings(n_restarts=n_restarts))
            for fold in data.folds
        ]
        both = (scenes, [with_fleet(scene, fleet) for scene in scenes])
        areas = [real.figures(data, real.judged_by_habitus(data, s, "habits"), 0.0) for s in both]
        yield data.name, areas[0][0], areas[1][0]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--minutes", type=float, nargs="+", default=[2.0, 5.0, 30.0])
    parser.add_argument("--folder", type=Path, help="where videos and corpora are kept")
    parser.add_argument("--real", type=Path, help="data sets as of real.py")
    parser.add_argument("--restarts", type=int, default=20, help="of the topic model")
    parser.add_argument("--small", action="store_true", help="tiny junctions, to try it out")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    settings: dict[str, Any] = {}
    if options.small:
        settings = {"normal": 60.0, "test": 45.0, **SMALL}
    normal = settings.get("normal", unseen.NORMAL) / 60
    with kept_folder(options.folder) as folder:
        cameras = list(unseen.scenes(options.seeds, normal, folder, **settings))
    n_restarts = options.restarts
    whole = [
        habitus.learn(camera.train, learning=habitus.LearningSettings(n_restarts=n_restarts))
        for camera in cameras
    ]
    n_events = sum(len(camera.spans) for camera in cameras)
    print(f"{n_events} anomalies that can be seen; each fleet: the other {len(cameras) - 1}\n")
    together: list[Cells] = []
    apart: list[Cells] = [
        {"footage": "anomalies"} | {str(one.seed): str(len(one.spans)) for one in cameras}
    ]
    for length, name, found in rows(cameras, options.minutes, whole, n_restarts):
        together.append(means(length, name, found))
        apart.append(each_one(length, name, found, cameras))
        progress(f"{length:g} min, {name}")
    tables = {"fleet": together, "fleet-junctions": apart}
    if options.real is not None:
        areas = real_areas(options.real, habitus.Fleet.of(whole), n_restarts)
        tables["fleet-real"] = [
            {"real footage": data, "alone": round(alone, 3), "with the fleet": round(beside, 3)}
            for data, alone, beside in areas
        ]
    for name, made in tables.items():
        print(f"{table(made)}\n")
        if options.save:
            save(name, made)


if __name__ == "__main__":
    main()
