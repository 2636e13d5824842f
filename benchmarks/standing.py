"""What stands: a breakdown on a rendered road, a bag or a loiterer on a rendered plaza.

    python benchmarks/standing.py [--seeds 721 ...] [--scenes road plaza loiterer] [--folder FOLDER]

Each scene is 20 minutes of 256x192 pixels at 5 frames a second; its light drifts, and camera and
codec make noise. On the road, two lanes a way have a traffic light, at which vehicles queue; later
one breaks down for a minute, far from it, and others take the lane beside. On the plaza, people
walk from door to door, wait for half a minute at benches, or stop anywhere for some seconds; later
somebody leaves a bag for two minutes, or stands for a minute where nobody waits. The first 13
minutes are learnt, with default options, and the rest is judged, with and without standing as a
cue: how many are found at 2 false alarms an hour, of all scenes together, and at a budget of 2 per
hour, with the false alarms that come. With `--folder`, videos and corpora are kept there and used
again.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

import habitus
from habitus.evaluation.matching import Span, found_at_rates
from habitus.evaluation.metrics import ScoredDocuments
from habitus.scene import SceneModel, detect_events
from report import Cells, add_output, hand_on, kept_folder, progress

SEEDS = tuple(range(721, 731))
WIDTH, HEIGHT, FPS = 256, 192, 5
NORMAL, TEST = 780, 420
RATE = 2.0
"""False alarms per hour."""
CYCLE, GREEN = 60.0, 28.0
"""Seconds of a traffic light."""
BROKEN, LEFT, LOITERS = 60.0, 120.0, 60.0
"""Seconds for which the vehicle, the bag and the loiterer stand."""
WAYS = (1, -1)
LANES = (58, 82, 110, 134)
"""Middle row of each lane; the first two go to the right."""
STOP = 190
"""Pixels from the entrance of a lane to its light."""
BENCHES = ((60, 50), (200, 140))


class Sprite(NamedTuple):
    """Something drawn: its middle, and its pixels."""

    x: float
    y: float
    pixels: NDArray[np.float64]


class Scene(NamedTuple):
    """Documents to learn from and to judge, and when something stands."""

    train: habitus.Corpus
    test: habitus.Corpus
    span: Span


@dataclass
class Vehicle:
    """A vehicle on its lane: how far, how fast, how fast it would go."""

    at: float
    speed: float
    wished: float
    pixels: NDArray[np.float64]

    def go(self, room: float) -> None:
        """Go on for one frame, with so many pixels free ahead."""
        wished = min(self.wished, max(room, 0.0) / 0.6)
        self.speed += float(np.clip(wished - self.speed, -40 / FPS, 14 / FPS))
        self.speed = max(self.speed, 0.0) if room > 0.5 else 0.0
        self.at += self.speed / FPS


def texture(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float64]:
    """Return a thing's pixels: of one brightness, with darker and brighter parts."""
    shade = rng.choice([rng.uniform(20, 70), rng.uniform(150, 230)])
    parts = np.kron(rng.normal(0, 14, (height // 4 + 1, width // 4 + 1)), np.ones((4, 4)))
    return shade + parts[:height, :width]


def road(rng: np.random.Generator, start: float, onset: list[float]) -> Iterator[list[Sprite]]:
    """Yield the vehicles of each frame; one breaks down after `start`, at `onset`."""
    lanes: list[list[Vehicle]] = [[] for _ in LANES]
    due = [rng.exponential(7.0) for _ in WAYS]
    its_lane, its_place = int(rng.integers(len(LANES))), rng.uniform(40, 75)
    broken: Vehicle | None = None
    for frame in range((NORMAL + TEST) * FPS):
        time, drawn = frame / FPS, []
        blocked = broken is not None and not (onset and time > onset[0] + BROKEN)
        for way in range(len(WAYS)):
            lane = 2 * way + int(rng.integers(2))
            if blocked and lane == its_lane:  # others take the lane beside
                lane ^= 1
            if time >= due[way] and (not lanes[lane] or lanes[lane][-1].at > 45):
                size = (20, int(rng.integers(34, 44))) if rng.random() < 0.9 else (22, 62)
                lanes[lane].append(Vehicle(-30.0, 0.0, rng.uniform(28, 44), texture(rng, *size)))
                due[way] = time + 3.0 + rng.exponential(5.0)
                if broken is None and lane == its_lane and time >= start:
                    broken = lanes[lane][-1]
        for lane, row in enumerate(LANES):
            green, ahead = (time + 30 * (lane // 2)) % CYCLE < GREEN, np.inf
            for vehicle in lanes[lane]:
                half = vehicle.pixels.shape[1] / 2
                room = ahead - vehicle.at - half - 6
                if not green and vehicle.at + half <= STOP:
                    room = min(room, STOP - vehicle.at - half)
                if vehicle is broken and vehicle.at >= its_place:
                    onset += [] if onset else [time]
                    room = 0.0 if time < onset[0] + BROKEN else room
                vehicle.go(room)
                ahead = vehicle.at - half
                x = vehicle.at if WAYS[lane // 2] > 0 else WIDTH - vehicle.at
                drawn.append(Sprite(x, row, vehicle.pixels))
            lanes[lane] = [vehicle for vehicle in lanes[lane] if vehicle.at < WIDTH + 40]
        yield drawn


def plaza(rng: np.random.Generator, start: float, onset: list[float]) -> Iterator[list[Sprite]]:
    """Yield the people of each frame; one leaves a bag after `start`, at `onset`."""
    return _plaza(rng, start, onset, loiters=False)


def loiterer(rng: np.random.Generator, start: float, onset: list[float]) -> Iterator[list[Sprite]]:
    """Yield the people of each frame; one stands still after `start`, at `onset`."""
    return _plaza(rng, start, onset, loiters=True)


def _plaza(
    rng: np.random.Generator, start: float, onset: list[float], *, loiters: bool
) -> Iterator[list[Sprite]]:
    doors = [(0, 60), (WIDTH, 80), (70, HEIGHT), (180, 0), (0, 150), (WIDTH, 150)]
    people: list[list] = []  # position, targets with waits, speed, pixels, waiting until
    due, bag = 0.0, None
    for frame in range((NORMAL + TEST) * FPS):
        time = frame / FPS
        if time >= due:
            begin, end = rng.choice(len(doors), 2, replace=False)
            stops = []
            if rng.random() < 0.3:
                bench = np.array(BENCHES[rng.integers(2)]) + rng.uniform(-14, 14, 2)
                stops.append((bench, rng.uniform(10, 40)))
            elif rng.random() < 0.15:
                stops.append((rng.uniform([20, 20], [WIDTH - 20, HEIGHT - 20]), rng.uniform(2, 8)))
            stops.append((np.array(doors[end], dtype=float) + rng.uniform(-8, 8, 2), 0.0))
            at = np.array(doors[begin], dtype=float) + rng.uniform(-8, 8, 2)
            people.append([at, stops, rng.uniform(18, 30), texture(rng, 18, 10), -1.0])
            due = time + rng.exponential(4.0)
        for person in people:
            if time < person[4]:
                continue
            (target, wait), *rest = person[1]
            way = target - person[0]
            apart = float(np.hypot(*way))
            if apart < person[2] / FPS:
                person[1], person[4] = rest, time + wait
            else:
                person[0] = person[0] + way / apart * person[2] / FPS
        people = [person for person in people if person[1]]
        if not onset and time >= start:
            inside = [p for p in people if (np.abs(p[0] - [128, 96]) < [90, 60]).all()]
            far = [p for p in inside if min(np.hypot(*(p[0] - np.array(b))) for b in BENCHES) > 40]
            if far and loiters:
                far[0][4] = time + LOITERS
            elif far:
                bag = Sprite(*(far[0][0] + [0, 10]), texture(rng, 13, 16))
            onset += [time] if far else []
        drawn = [Sprite(*person[0], person[3]) for person in people]
        yield ([bag] if bag is not None and time < onset[0] + LEFT else []) + drawn


SCENES: dict[str, tuple[Callable[..., Iterator[list[Sprite]]], float]] = {
    "road": (road, BROKEN),
    "plaza": (plaza, LEFT),
    "loiterer": (loiterer, LOITERS),
}


def ground(kind: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the picture without anybody."""
    coarse = np.kron(rng.normal(0, 8, (HEIGHT // 16, WIDTH // 16)), np.ones((16, 16)))
    picture = 105 + coarse + rng.normal(0, 4, (HEIGHT, WIDTH))
    if kind == "road":
        picture[:44] += 30
        picture[148:] += 25
        picture[95:97] += 80
        for row in (70, 122):
            picture[row - 1 : row + 1] += np.where(np.arange(WIDTH) % 24 < 12, 80, 0)
        for way, rows in zip(WAYS, (slice(46, 94), slice(98, 146)), strict=True):
            stop = STOP if way > 0 else WIDTH - STOP
            picture[rows, stop : stop + 3] += 90
    return picture


def render(kind: str, seed: int, path: Path) -> Span:
    """Draw a scene into a video; return when something stands."""
    rng = np.random.default_rng([seed, len(kind)])
    start, onset = NORMAL + rng.uniform(60, 240), list[float]()
    picture, noise = ground(kind, rng), rng.normal(0, 2, (2 * HEIGHT, 2 * WIDTH))
    drift, phase = rng.uniform(4, 9), rng.uniform(0, 6)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(FPS))
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"crf": "23", "preset": "veryfast", "threads": "1", "g": str(2 * FPS)}
        for number, sprites in enumerate(SCENES[kind][0](rng, start, onset)):
            frame = picture.copy()
            for x, y, pixels in sprites:
                paste(frame, round(x), round(y), pixels)
            light = 1 + drift / 100 * np.sin(phase + number / FPS / 70)
            dy, dx = rng.integers(0, (HEIGHT, WIDTH))
            frame = frame * light + noise[dy : dy + HEIGHT, dx : dx + WIDTH]
            grey = np.clip(frame, 0, 255).astype(np.uint8)
            made = av.VideoFrame.from_ndarray(grey, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(made))
        container.mux(stream.encode())
    return Span(onset[0], onset[0] + SCENES[kind][1])


def paste(frame: NDArray[np.float64], x: int, y: int, pixels: NDArray[np.float64]) -> None:
    """Draw pixels around a place, as far as they are within the frame."""
    height, width = pixels.shape
    top, left = y - height // 2, x - width // 2
    above, before = max(-top, 0), max(-left, 0)
    seen = frame[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    seen[:] = pixels[above : above + seen.shape[0], before : before + seen.shape[1]]


def scene_of(kind: str, seed: int, folder: Path) -> Scene:
    """Return a scene, drawn and extracted where that is not done yet."""
    stored, video = folder / f"{kind}-{seed}.corpus", folder / f"{kind}-{seed}.mp4"
    truth = stored.with_suffix(".json")
    if not truth.exists():
        truth.write_text(json.dumps(render(kind, seed, video)))
    if not stored.exists():
        habitus.extract(video, output=stored)
    corpus = habitus.Corpus.load(stored)
    split = round(NORMAL / corpus.clip)
    train, test = corpus.take(np.arange(split)), corpus.take(np.arange(split, len(corpus)))
    return Scene(train, test, Span(*json.loads(truth.read_text())))


def without_standing(model: SceneModel) -> SceneModel:
    """Return a model in which standing is no cue."""
    habits = model.habits
    assert habits is not None
    fusion = replace(habits.fusion, standing=None, standing_trust=0.0)
    return replace(model, habits=replace(habits, stood=None, fusion=fusion))


def measure(kind: str, seeds: list[int], folder: Path) -> Iterator[Cells]:
    """Yield a row with standing and one without, of all scenes of a kind."""
    scenes, models = [], []
    for seed in seeds:
        scenes.append(scene_of(kind, seed, folder))
        models.append(habitus.learn(scenes[-1].train))
        progress(f"{kind} {seed}")
    for name, used in (("with", models), ("without", [*map(without_standing, models)])):
        found = [
            detect_events(model.detector(alerts_per_day=24 * RATE), scene.test)
            for model, scene in zip(used, scenes, strict=True)
        ]
        apart = [n * 10.0 * (NORMAL + TEST) for n in range(len(scenes))]
        together = ScoredDocuments(
            np.concatenate([each.normality for each in found]),
            np.concatenate([each.judged for each in found]),
            np.concatenate([scene.test.times + t for scene, t in zip(scenes, apart, strict=True)]),
            1.0,
        )
        spans = [
            Span(scene.span.start + t, scene.span.end + t)
            for scene, t in zip(scenes, apart, strict=True)
        ]
        (at_rate,) = found_at_rates(together, spans, [RATE])
        n_found, n_all = int(at_rate.found.sum()), len(spans)
        met, false = 0, 0
        for each, scene in zip(found, scenes, strict=True):
            hits = [e.start < scene.span.end and e.end > scene.span.start for e in each.events]
            met, false = met + any(hits), false + len(hits) - sum(hits)
        hours = len(scenes) * TEST / 3600
        trust = [model.habits.fusion.standing_trust for model in used if model.habits]
        yield {
            "scene": kind,
            "standing": name,
            "trust": f"{min(trust):.2f} to {max(trust):.2f}" if name == "with" else "",
            f"found at {RATE:g} false alarms per hour": f"{n_found} of {n_all}",
            f"found at a budget of {RATE:g} per hour": f"{met} of {n_all}",
            "false alarms per hour": round(false / hours, 1),
        }


def main() -> None:
    """Run the benchmark as a script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--folder", type=Path, help="where videos and corpora are kept")
    add_output(parser)
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        rows = [row for kind in options.scenes for row in measure(kind, options.seeds, folder)]
    hand_on(rows, options)


if __name__ == "__main__":
    main()
