"""A day of eight cameras, end to end: read, learnt, judged and shown by `habitus archive`.

Some minutes of built-in junctions are rendered at 360x288, and their packets are repeated to an
hour. Every hour of every camera is a file of its own, a hard link to such an hour under another
name: nothing is read twice from anywhere but the disk's cache. The commands run as a user runs
them, each in a process of its own.

    python benchmarks/archive_day.py --table
    python benchmarks/archive_day.py --table --cameras 2 --hours 2 --minutes 2
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import av

from habitus.lab import Junction, render
from report import Row, add_output, hand_on, kept_folder, progress

CAMERAS, HOURS, MINUTES = 8, 24, 10
SEEDS = (521, 522)
"""Junctions that are rendered; cameras take turns."""
PATTERN = "{camera}/{date}/{hour}.mp4"


def measure(
    folder: Path, videos: Sequence[Path], n_cameras: int, n_hours: int, jobs: int
) -> Iterator[Row]:
    """Rows: how fast each command is, what workers send, and what is stored."""
    recordings, total = make(folder, videos, n_cameras, n_hours), n_cameras * n_hours
    site, pattern = folder / "site", str(recordings / PATTERN)
    learn = ["learn", pattern, "-o", site, "--jobs", jobs, "--timezone", "UTC", "--settled", 0]
    detect = ["detect", site, "--jobs", jobs, "--settled", 0]
    first = run(*learn)
    stored = shard_bytes(site)
    judged = run(*detect)
    report = run("report", site)
    whole = Cost(*(sum(parts) for parts in zip(first, judged, report, strict=True)))
    yield speed(f"learn: {total} hours of {n_cameras} cameras read and learnt", first, total)
    yield speed("detect: all of them judged", judged, total)
    yield Row("report: the page", report.seconds, "s")
    yield speed("all three", whole, total)
    yield Row("processor time of all three", whole.processor / total, "s per hour of video")
    yield Row("documents, sent and stored", stored / total / 1e6, "MB per hour")
    yield Row("video", video_bytes(recordings) / total / 1e6, "MB per hour")
    yield Row("model of a camera", model_bytes(site) / n_cameras / 1e6, "MB")
    yield Row("learn again: nothing is new", run(*learn).seconds, "s")
    yield Row("detect again: nothing is new", run(*detect).seconds, "s")


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    """Seconds of processor time of all its processes: these do not depend on what else runs."""


def speed(what: str, cost: Cost, hours: float) -> Row:
    """Row of a command: hours of video per hour of this machine."""
    busy = f"{cost.processor:.0f} s of processor time"
    note = f"{cost.seconds:.0f} s on {os.cpu_count()} cores, {busy}"
    return Row(what, hours * 3600 / cost.seconds, "hours per hour", note=note)


def rendered(folder: Path, minutes: float) -> Iterator[Path]:
    """Render the built-in junctions."""
    for seed in SEEDS:
        progress(f"rendering {minutes:g} minutes of junction {seed}")
        path = folder / f"{seed}.mp4"
        render(Junction(seed=seed, seconds=60 * minutes, width=360, height=288), path)
        yield path


def make(folder: Path, videos: Sequence[Path], n_cameras: int, n_hours: int) -> Path:
    """Write all recordings; return their folder."""
    hours = [repeated(video, folder / f"hour-{n}.mp4") for n, video in enumerate(videos)]
    for camera in range(n_cameras):
        for hour in range(n_hours):
            day, of_day = divmod(hour, 24)
            path = folder / f"recordings/camera-{camera + 1}/2026-11-{16 + day}/{of_day:02d}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.hardlink_to(hours[camera % len(hours)])
    return folder / "recordings"


def repeated(source: Path, path: Path, seconds: float = 3600.0) -> Path:
    """Copy the packets of a video again and again, up to so many seconds."""
    with av.open(str(path), "w") as made:
        copy, start = None, 0.0
        while start < seconds:
            with av.open(str(source)) as given:
                stream = given.streams.video[0]
                copy = copy or made.add_stream_from_template(stream)
                length = float(stream.duration * stream.time_base)
                shift = round(start / stream.time_base)
                for packet in given.demux(stream):
                    if packet.size and start + float(packet.pts * packet.time_base) < seconds:
                        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                        packet.stream = copy
                        made.mux(packet)
            start += length
    return path


def run(*arguments: object) -> Cost:
    """Run a command of an archive."""
    progress(f"habitus archive {arguments[0]}")
    started, before = time.perf_counter(), processor_seconds()
    command = [sys.executable, "-m", "habitus", "archive", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return Cost(time.perf_counter() - started, processor_seconds() - before)


def processor_seconds() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shard_bytes(site: Path) -> int:
    """Bytes of all shards, which are what workers sent."""
    return sum(path.stat().st_size for path in site.glob("*/shards/*.corpus"))


def model_bytes(site: Path) -> int:
    """Bytes of all models."""
    return sum(path.stat().st_size for path in site.glob("*/model.habitus"))


def video_bytes(recordings: Path) -> int:
    """Bytes of all recordings, each counted by its name."""
    return sum(path.stat().st_size for path in recordings.rglob("*.mp4"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cameras", type=int, default=CAMERAS)
    parser.add_argument("--hours", type=int, default=HOURS, help="of each camera")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="that are rendered")
    parser.add_argument("--videos", type=Path, nargs="*", help="to repeat, in place of junctions")
    parser.add_argument("--folder", type=Path, help="where everything is kept; it must be empty")
    parser.add_argument("--jobs", type=int, default=-1)
    add_output(parser)
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        videos = options.videos or list(rendered(folder, options.minutes))
        found = list(measure(folder, videos, options.cameras, options.hours, options.jobs))
    hand_on(found, options)
