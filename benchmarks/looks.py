"""Whether a scene is known again in any light, another is refused, and faults are told from light.

    python benchmarks/looks.py SCENE [SCENE ...] [--jobs 2] [--faults]

A scene is a folder: all videos in it and below are of one camera, in the order of their names; what
a folder directly below the scene holds is a day. Beside them, junctions are rendered in six lights.
Figures of 0.4 are by its likeness, with one picture for each model, and by its limits.
"""

import argparse
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain, combinations, groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from habitus.corpus.documents import Condition
from habitus.corpus.looks import LEAST_LIKENESS, best_likeness, edges_of, joined_looks, looks_of
from habitus.ingest import condition as limits
from habitus.ingest.clips import Document, DocumentSettings, cell_brightness, documents
from habitus.ingest.condition import ConditionMonitor
from habitus.lab import Junction
from habitus.lab.junction.painter import Painter
from habitus.lab.junction.recording import Simulation
from habitus.video import Source
from report import Cells, save, table

Picture = NDArray[np.uint8]
STILL_EVERY = 150
"""Documents from one still of a file to the next."""
SEEDS = range(50, 58)
BEFORE = {
    **{"SAME_VIEW": np.inf, "DARK_AFTER": 0.0, "FROZEN_STILL": 5.0, "FROZEN_FACTOR": 0.0},
    "ROLLED_ABOVE": np.inf,
}
"""Limits of 0.4 that differ."""


class Footage(NamedTuple):
    """What is measured of one file."""

    scene: str
    day: str
    picture: Picture
    """Median of all stills, grey: what a model of 0.4 keeps."""
    looks: Picture
    unusable: dict[str, list[tuple[str, int]]]
    """Condition and seconds of each time without judging, in 0.4 and now."""
    delays: dict[str, dict[str, float]]
    """Seconds until each fault is noticed, in 0.4 and now."""


@contextmanager
def limits_of(version: str) -> Iterator[None]:
    """Use the limits of a version."""
    kept = {name: getattr(limits, name) for name in BEFORE}
    try:
        for name, value in (BEFORE if version == "0.4" else {}).items():
            setattr(limits, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(limits, name, value)


def measured(task: tuple[str, Path]) -> Footage:
    """Read one file."""
    scene, file = task
    monitors = {version: ConditionMonitor() for version in ("0.4", "now")}
    found: dict[str, list[Condition]] = {version: [] for version in monitors}
    stills: list[Picture] = []
    for document in documents(Source(str(file)), DocumentSettings(still_every=STILL_EVERY)):
        if document.still is not None:
            stills.append(document.still)
        for version, monitor in monitors.items():
            with limits_of(version):
                found[version].append(monitor.judge(seen_by(version, document)))
    grey = [cv2.cvtColor(still, cv2.COLOR_RGB2GRAY) for still in stills]
    spans = {version: list(unusable(each)) for version, each in found.items()}
    day = file.parent.name if file.parent != Path(scene) else file.stem
    picture = np.median(grey, axis=0).astype(np.uint8)
    return Footage(scene, day, picture, looks_of(grey), spans, delays(file))


def seen_by(version: str, document: Document) -> Document:
    """Return a document as a version sees it: in 0.4 small frames had no finer thumbnail."""
    shown = document.thumbnail
    if version == "now" or min(shown.shape) > 32 or any(side % 2 for side in shown.shape):
        return document
    means = shown.reshape(shown.shape[0] // 2, 2, -1, 2).mean(axis=(1, 3))
    return document._replace(thumbnail=means.astype(np.uint8))


def unusable(conditions: Iterable[Condition]) -> Iterator[tuple[str, int]]:
    """Yield each time in which nothing is judged."""
    for each, group in groupby(conditions):
        if each is not Condition.USABLE:
            yield each.name.lower(), len(list(group))


def turned(share: float) -> Any:
    """Return a camera that is turned aside by a share of the width of its picture."""

    def view(picture: Picture) -> Picture:
        width = picture.shape[1]
        start = round(share * width)
        return picture[:, start : start + width * 7 // 8]

    return view


def rolled(degrees: float) -> Any:
    """Return a camera that is turned about the axis of its lens."""

    def view(picture: Picture) -> Picture:
        height, width = picture.shape
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
        whole = cv2.warpAffine(picture, turn, (width, height), borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(whole[:, : width * 7 // 8])

    return view


def covered(level: int) -> Any:
    """Return a camera with something before its lens."""
    return lambda picture: np.full_like(picture[:, : picture.shape[1] * 7 // 8], level)


FAULTS = {
    "turned by 3 % of the width": turned(0.03),
    "turned by 6 %": turned(0.06),
    "turned by 12 %": turned(0.12),
    "rolled by 3 degrees": rolled(3),
    "rolled by 6 degrees": rolled(6),
    "covered, grey": covered(110),
    "covered, black": covered(6),
}


def delays(file: Path) -> dict[str, dict[str, float]]:
    """Return how soon faults are noticed that begin after half a minute."""
    settings = DocumentSettings(still_every=1)
    stills = [d.still for d in documents(Source(str(file)), settings, stop=45)]
    shown = [cv2.cvtColor(each, cv2.COLOR_RGB2GRAY) for each in stills if each is not None]
    if len(shown) < 45:
        return {}
    usual = turned(0.0)
    rng = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {}
    for (name, fault), version in product(FAULTS.items(), ("0.4", "now")):
        views = [usual(each) for each in shown[:30]] + [fault(each) for each in shown[30:]]
        with limits_of(version):
            monitor = ConditionMonitor()
            told = [monitor.judge(drawn(view, version, rng)) for view in views][30:]
        late = next((n for n, each in enumerate(told, 1) if each is not Condition.USABLE), np.inf)
        found.setdefault(name, {})[version] = late
    return found


def drawn(view: Picture, version: str, rng: np.random.Generator) -> Document:
    """Return a document that shows a picture."""
    noisy = np.clip(view + rng.normal(0, 1, view.shape), 0, 255).astype(np.uint8)
    small = view.shape[0] < 192
    side = (4 if version == "0.4" else 2) if small else 8
    rows, columns = view.shape[0] // side, view.shape[1] // side
    none = np.empty(0, dtype=np.int64)
    shown = cell_brightness(np.ascontiguousarray(noisy), rows, columns, side)
    return Document(0, 0.0, none, none, 5, 1.0, shown, None)


def in_lights(seed: int) -> list[Picture]:
    """Return a junction at noon, in the evening, under clouds, at night, by lamps and in rain."""
    scene = Junction(seed=seed, seconds=20, fps=5)
    simulation = Simulation(scene)
    own, rng = simulation.light, np.random.default_rng(seed)
    angle = np.arctan2(own.sun[1], own.sun[0])

    def sun(turn: float, height: float) -> NDArray[np.float64]:
        flat = np.cos(height)
        return np.array([np.cos(angle + turn) * flat, np.sin(angle + turn) * flat, np.sin(height)])

    lights = [
        own._replace(sun=sun(0.0, 1.0), direct=0.5, gain=1.05),
        own._replace(sun=sun(2.6, 0.4), direct=0.4, gain=0.78),
        own._replace(direct=0.05, gain=0.85),
        own._replace(direct=0.04, gain=0.1, noise=4.0),
    ]
    painters = [Painter(simulation.camera, each, simulation.world.signals, seed) for each in lights]
    shots: list[list[Picture]] = [[] for _ in painters]
    for number, time, pair in simulation.frames():
        if number % 20 == 10:
            for painter, shot in zip(painters, shots, strict=True):
                shot.append(painter.frame(pair, number, time)[: scene.height].copy())
    pictures = [np.median(shot, axis=0).astype(np.uint8) for shot in shots]
    return [*pictures, by_lamps(pictures[2], rng), in_rain(pictures[2], rng)]


def by_lamps(picture: Picture, rng: np.random.Generator) -> Picture:
    """Return a picture that four lamps light in part."""
    y, x = np.mgrid[: picture.shape[0], : picture.shape[1]]
    light = np.full(picture.shape, 0.12)
    for _ in range(4):
        down, across, size = rng.uniform(0, y.max()), rng.uniform(0, x.max()), rng.uniform(25, 60)
        light += 0.9 * np.exp(-((y - down) ** 2 + (x - across) ** 2) / (2 * size**2))
    return np.clip(picture * light + rng.normal(0, 3, light.shape), 0, 255).astype(np.uint8)


def in_rain(picture: Picture, rng: np.random.Generator) -> Picture:
    """Return a picture with half its contrast, soft, and with streaks."""
    drops = rng.normal(0, 60, picture.shape) * (rng.random(picture.shape) < 0.1)
    streaks = 2 * cv2.GaussianBlur(drops, (0, 0), sigmaX=0.6, sigmaY=4.0)
    soft = cv2.GaussianBlur(picture, (0, 0), 1.5) * 0.5 + 70
    return np.clip(soft + streaks, 0, 255).astype(np.uint8)


def refused(known: Iterable[Picture], seen: Iterable[Picture]) -> bool:
    """Return whether footage is refused now: none of its looks is like one that is known."""
    pair = ([edges_of(look) for look in looks] for looks in (known, seen))
    return best_likeness(*pair) < LEAST_LIKENESS


def refused_before(known: Picture, seen: Picture) -> bool:
    """Return whether 0.4 refuses footage by its picture."""
    a, b = (edges_before(each) for each in (known, seen))
    if min(((each**2).sum(axis=0) > 0.5).mean() for each in (a, b)) < 0.1:
        return False
    centre = a[:, 4:-4, 4:-4]
    (rows, columns), best = centre.shape[1:], -1.0
    for dy, dx in product(range(9), repeat=2):
        moved = b[:, dy : dy + rows, dx : dx + columns]
        norm = np.sqrt((centre**2).sum() * (moved**2).sum())
        best = max(best, float((centre * moved).sum() / max(norm, 1e-9)))
    return best < 0.4


def edges_before(picture: Picture) -> NDArray[np.float64]:
    """Return the normalised gradients that 0.4 compares."""
    small = cv2.resize(picture, (160, 120), interpolation=cv2.INTER_AREA).astype(np.float64)
    smooth = cv2.GaussianBlur(small, (0, 0), 1.0)
    slopes = [cv2.Sobel(smooth, cv2.CV_64F, *axis, scale=1 / 8) for axis in ((1, 0), (0, 1))]
    length = np.sqrt(slopes[0] ** 2 + slopes[1] ** 2)
    return np.array(slopes) / np.sqrt(length**2 + (np.median(length) + 0.5) ** 2)


def compared(what: str, pairs: Sequence[tuple[Footage, Footage]]) -> Cells:
    """Return a row on how many pairs of a model's footage and other footage are refused."""
    return {
        "": what,
        "pairs": len(pairs),
        "refused by 0.4": sum(refused_before(a.picture, b.picture) for a, b in pairs),
        "refused": sum(refused(a.looks, b.looks) for a, b in pairs),
    }


def by_other_days(files: Sequence[Footage]) -> Cells:
    """Return a row on each file, as a model of all other days judges it."""
    before = after = 0
    for day in sorted({each.day for each in files}):
        others = [each for each in files if each.day != day]
        looks = joined_looks(chain.from_iterable(each.looks for each in others))
        for each in files:
            if each.day == day:
                before += refused_before(others[0].picture, each.picture)
                after += refused(looks, each.looks)
    name = f"{Path(files[0].scene).name}: files by a model of all other days"
    return {"": name, "pairs": len(files), "refused by 0.4": before, "refused": after}


def pairs_of(scenes: dict[str, list[Footage]]) -> Iterator[Cells]:
    """Yield the rows on pairs."""
    rendered = {name: each for name, each in scenes.items() if name.startswith("junction")}
    for name, files in scenes.items():
        if name not in rendered and len(files) > 1:
            yield compared(
                f"{Path(name).name}: any file by a model of any other", list(combinations(files, 2))
            )
        if len({each.day for each in files}) in range(3, len(files)):
            yield by_other_days(files)
    same = chain.from_iterable(combinations(files, 2) for files in rendered.values())
    yield compared("junctions: any light by a model of any other", list(same))
    few = {name: files[:: max(len(files) // 8, 1)] for name, files in scenes.items()}
    other = (product(one, two) for one, two in combinations(few.values(), 2))
    yield compared("two scenes", list(chain.from_iterable(other)))


def times_of(scenes: dict[str, list[Footage]]) -> Iterator[Cells]:
    """Yield the rows on time without judging, of each scene."""
    for name, files in scenes.items():
        row: dict[str, str | float | None] = {"": Path(name).name, "files": len(files)}
        for version in ("0.4", "now"):
            spans = [span for each in files for _, span in each.unusable[version]]
            row[f"seconds not judged, {version}"] = sum(spans)
            row[f"longest, {version}"] = max(spans, default=0)
        yield row


def faults_of(files: Sequence[dict[str, dict[str, float]]]) -> Iterator[Cells]:
    """Yield the rows on how soon faults are noticed."""
    for fault in FAULTS:
        row: dict[str, str | float | None] = {"": fault}
        for version in ("0.4", "now"):
            late = [each[fault][version] for each in files if each]
            noticed = [each for each in late if np.isfinite(each)]
            row["files"] = len(late)
            row[f"noticed in 15 s, {version}"] = len(noticed)
            row[f"seconds, median, {version}"] = float(np.median(noticed)) if noticed else None
            row[f"most, {version}"] = max(noticed) if noticed else None
        yield row


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", type=Path, nargs="+", help="folders, of one camera each")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--faults", action="store_true", help="the table of faults alone")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    if options.faults:
        files = [f for each in options.scenes for f in sorted(each.rglob("*.mp4"))]
        with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
            rows = list(faults_of(list(pool.map(delays, files))))
        print(table(rows), flush=True)
        if options.save:
            save("looks-faults", rows, "python benchmarks/looks.py --faults SCENE [SCENE ...]")
        return
    tasks = [(str(each), f) for each in options.scenes for f in sorted(each.rglob("*.mp4"))]
    scenes: dict[str, list[Footage]] = {}
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for found in pool.map(measured, tasks):
            scenes.setdefault(found.scene, []).append(found)
            print(found.scene, found.day, found.unusable, flush=True)
        filmed = dict(scenes)
        for seed, pictures in zip(SEEDS, pool.map(in_lights, SEEDS), strict=True):
            scenes[f"junction {seed}"] = [
                Footage("", "", picture, looks_of([picture]), {}, {}) for picture in pictures
            ]
    footage = list(chain.from_iterable(filmed.values()))
    results = [
        list(pairs_of(scenes)),
        list(times_of(filmed)),
        list(faults_of([each.delays for each in footage])),
    ]
    for rows in results:
        print(table(rows), flush=True)
    if options.save:
        for name, rows in zip(("looks", "looks-times", "looks-faults"), results, strict=True):
            save(name, rows, "python benchmarks/looks.py SCENE [SCENE ...]")


if __name__ == "__main__":
    main()
