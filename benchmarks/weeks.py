"""A fortnight of one rendered camera, judged and learnt night after night.

    python benchmarks/weeks.py [--weather] [--seeds 7 5] [--folder FOLDER] [--table] [--save]

Fourteen days from a Wednesday on. An hour is a minute of video (240x192, 12.5 frames per second)
with the traffic of that hour, less of it at week-ends, and headlights by night. A road that was
closed, of three lanes, is used from day 6 on; from day 9 on a works fence stands on a lane of
another one. There are anomalies in every third hour. Each night `archive detect` judges the day by
the model of the night before, at a budget of 5 for such a day of 24 minutes, and `archive learn`
then learns from it:

- nightly, with older footage fading, as by default (a half-life of 14 such days);
- not any more after the night of day 5.

Counted are alarms outside of anomalies, and the anomalies that an alarm meets.

With `--weather` lanes stay as they are, there are no anomalies, and each day of the week has
weather of its own, so that the days of the second week have one that was seen for a day, a week
before: every alarm is false.

With `--folder`, videos are kept there and used again.
"""

import argparse
import math
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple

from habitus.lab import KINDS, Junction, render
from habitus.lab.junction.traffic import LANES
from habitus.settings import LearningSettings
from habitus.site.operations import detect_archive, learn_archive
from report import Cells, add_output, hand_on, kept_folder, progress
from timing import n_cores

FIRST, N_DAYS = date(2026, 6, 3), 14
ROAD_FROM, FENCE_FROM = 6, 9
ROADS = {7: ("east", "north left"), 5: ("north", "west left")}
"""Scenes by their seeds: the new road and the lane with the fence, both in view."""
SECONDS, EVERY = 60.0, 3
"""Length of an hour, and every how many of them there are anomalies."""
DAY = 86_400.0
BUDGET = 5.0
ALERTS_PER_DAY = BUDGET * DAY / (24 * SECONDS)
HALF_LIFE = 14 * 24 * SECONDS
LAST_LEARNT = {"nightly": N_DAYS, "days 1 to 5": 5}
"""The ways, and the last day after which each learns."""
NEWS = {ROAD_FROM: ": a new road", FENCE_FROM: ": a works fence"}
WEATHER: list[tuple[str, ...]] = [
    (),
    ("rain",),
    ("snow",),
    ("leaves",),
    ("clouds",),
    ("shake",),
    ("insects",),
]
"""Of the days of the week; insects by night alone."""
RESTARTS = 5
"""Of learning topics: a quarter of the default, for the time it takes."""
MARGIN = 1.0
"""Seconds around an anomaly in which an alarm meets it."""


class Count(NamedTuple):
    """Alarms of a day."""

    false: int
    found: int
    n_anomalies: int


def scene(seed: int, day: int, hour: int, weather: bool) -> Junction:
    """Return an hour of a day, counted from 1."""
    weekend = (FIRST + timedelta(days=day - 1)).weekday() >= 5
    busy = 0.08 + 0.9 * math.exp(-(((hour - 8) / 2.5) ** 2)) + math.exp(-(((hour - 17) / 3) ** 2))
    quiet = 0.08 + 0.6 * math.exp(-(((hour - 14) / 4) ** 2))
    night = ("night",) if hour < 6 or hour >= 20 else ()
    common = Junction(
        seed,
        SECONDS,
        width=240,
        height=192,
        fps=12.5,
        density=quiet if weekend else busy,
        anomalies=(),
        weather=night,
        traffic=100 * day + hour,
    )
    if weather:
        own = WEATHER[(day - 1) % 7]
        return replace(common, weather=(*night, *own) if own != ("insects",) or night else ())
    new, fenced = ROADS[seed]
    return replace(
        common,
        anomalies=KINDS if hour % EVERY == 0 else (),
        anomalies_per_hour=90.0,
        normal_for=5.0,
        closed=tuple(f"{new} {lane}" for lane in LANES) if day < ROAD_FROM else (),
        fenced=(fenced,) if day >= FENCE_FROM else (),
    )


def name(day: int, hour: int) -> str:
    """Return the name of a recording."""
    return f"{FIRST + timedelta(days=day - 1)}/{hour:02}.mp4"


def _render(junction: Junction, path: Path) -> list[tuple[float, float]]:
    """Render an hour where that is not done yet; return the times of its anomalies."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        render(junction, path)
    return [(anomaly.start, anomaly.end) for anomaly in junction.truth()]


Truth = dict[tuple[int, int], list[tuple[float, float]]]


def rendered(seed: int, folder: Path, weather: bool) -> Truth:
    """Render all hours; return the times of anomalies by day and hour."""
    hours = [(day, hour) for day in range(1, N_DAYS + 1) for hour in range(24)]
    with ProcessPoolExecutor(n_cores()) as pool:
        waiting = [
            pool.submit(_render, scene(seed, *each, weather), folder / name(*each))
            for each in hours
        ]
        found = [each.result() for each in waiting]
    return dict(zip(hours, found, strict=True))


def nights(way: str, videos: Path, truth: Truth) -> Iterator[Count]:
    """Yield the alarms of each day from the second on."""
    with tempfile.TemporaryDirectory() as folder:
        pattern, site = f"{folder}/{{camera}}/{{date}}/{{hour}}.mp4", Path(folder, "site")
        for day in range(1, N_DAYS + 1):
            for hour in range(24):
                link = Path(folder, "junction", name(day, hour))
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to((videos / name(day, hour)).resolve())
            if day > 1:
                yield judged(site, day, truth)
            if day <= LAST_LEARNT[way]:
                learn_archive(
                    [pattern],
                    output=site,
                    half_life=HALF_LIFE,
                    learning=LearningSettings(n_restarts=RESTARTS),
                    timezone="UTC",
                    settled=0.0,
                )


def judged(site: Path, day: int, truth: Truth) -> Count:
    """Judge the new day, and count."""
    alarms = detect_archive(site, alerts_per_day=ALERTS_PER_DAY, settled=0.0).alarms
    midnight = datetime.combine(FIRST, time(), UTC).timestamp() + (day - 1) * DAY
    false, met = 0, set()
    for event in alarms:
        if not midnight <= event.start < midnight + DAY:
            continue
        hour = int((event.start - midnight) // 3600)
        first, last = (at - midnight - 3600 * hour for at in (event.start, event.end))
        hit = {
            (hour, n)
            for n, (start, end) in enumerate(truth[day, hour])
            if first < end + MARGIN and last > start - MARGIN
        }
        met |= hit
        false += not hit
    return Count(false, len(met), sum(len(truth[day, hour]) for hour in range(24)))


def measure(seeds: list[int], folder: Path, weather: bool) -> Iterator[Cells]:
    """Yield a row for each day, of all seeds together."""
    ways = list(LAST_LEARNT)[:1] if weather else list(LAST_LEARNT)
    found: dict[str, list[list[Count]]] = {way: [] for way in ways}
    for seed in seeds:
        videos = folder / f"{seed}{'-weather' * weather}"
        truth = rendered(seed, videos, weather)
        for way in ways:
            progress(f"scene {seed}, {way}")
            found[way].append(list(nights(way, videos, truth)))
    for n in range(N_DAYS - 1):
        day, row = n + 2, dict[str, str | float | None]()
        today = FIRST + timedelta(days=day - 1)
        if weather and day <= 7:
            continue
        row["day"] = f"{day}, {today:%a}{NEWS.get(day, '') if not weather else ''}"
        if weather:
            row["weather"] = ", ".join(WEATHER[(day - 1) % 7]) or "none"
        for way, counts in found.items():
            own = [each[n] for each in counts]
            row[f"false alarms, {way}"] = round(sum(each.false for each in own) / len(seeds), 1)
            met, n_anomalies = (sum(each[k] for each in own) for k in (1, 2))
            if weather:  # of the first day of that kind
                first = [each[n - 7].false for each in counts] if n >= 7 else []
                row["a week before"] = round(sum(first) / len(seeds), 1) if first else None
            else:
                row[f"found, {way}"] = f"{met} of {n_anomalies}"
        yield row


def main() -> None:
    """Run the benchmark as a script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", choices=list(ROADS), default=list(ROADS))
    parser.add_argument("--weather", action="store_true", help="days with weather instead")
    parser.add_argument("--folder", type=Path, help="where videos are kept")
    add_output(parser)
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        rows = list(measure(options.seeds, folder, options.weather))
    hand_on(rows, options, "weeks-weather" if options.weather else None)


if __name__ == "__main__":
    main()
