"""A soak: live cameras with faults at random under one seed, and what `habitus watch` makes of it.

    python benchmarks/soak.py [--minutes 60] [--kills 100] [--seed 0] [--folder FOLDER]

Three cameras are drawn and encoded while they are watched: two lanes take turns, and now and then
something goes the wrong way. Each has a `habitus watch` of its own. Faults come at random: the
connection is cut, stalls, or is refused; bytes are lost; the picture is black, frozen, shifted, or
of another size; the decoding process is killed; files may not grow (a full disk); the file of
events is renamed; SIGHUP; nobody reads stderr. The last camera's watch is also ended, by SIGKILL or
SIGTERM, and started again. An anomaly is *clear* if it and the seconds around it arrived
undisturbed at a process that lived on: it must be told, once. Full disks and renamed files disturb
no anomaly: it must be told later. Prints the counts, and memory at the beginning and the end.

Before that, `habitus extract --jobs 2` is ended at random moments, by SIGKILL or SIGTERM to the
parent alone, or by SIGTERM to all its processes: no process may be left, the output is whole or
absent, and the run after the last one finds no temporary file that it does not delete.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

import habitus
from report import kept_folder, save, table
from staged import DISTURBING, Camera, Disturbance, counted, learnt

FAULTS_EVERY = (25.0, 70.0)
SETTLES = 15.0
"""Seconds from the end of a fault until anomalies must be told again."""
KINDS = ("mpegts", "mjpeg", "mpegts")
HARMLESS = ("full disk", "renamed", "hang-up")
CHILD = "decoder killed"
MARK = "HABITUS_SOAK"
"""Variable of the environment by which processes of the soak are known."""
DEADLY = ("SIGKILL", "SIGTERM")
SHARE_OF_ALL = 0.25
"""Of the commands that are ended, those whose processes are all told to end."""


class Watch:
    """A `habitus watch` of a camera, which may be ended and started again."""

    def __init__(self, camera: Camera, model: Path, folder: Path, *, unread: bool) -> None:
        self.camera, self.model, self.folder, self.unread = camera, model, folder, unread
        self.events = folder / "events.jsonl"
        self.n_renamed = 0
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "habitus", "watch", self.camera.address]
        command += ["--model", str(self.model), "--output", str(self.events), "--patience", "5"]
        stderr: Any = subprocess.PIPE if self.unread else (self.folder / "stderr").open("ab")
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)

    def end(self, number: int) -> None:
        """End the process by a signal, and wait for that."""
        self.process.send_signal(number)
        self.process.wait(60)

    def restart(self, number: int) -> None:
        """End the process by a signal, and start another."""
        self.end(number)
        self.process = self._start()

    def may_grow(self, allowed: bool) -> None:
        """Let the files of the process grow, or not: a full disk."""
        limit = resource.RLIM_INFINITY if allowed else 0
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    def rename(self) -> None:
        """Rename the file of events, as log rotation does."""
        if self.events.exists():
            self.n_renamed += 1
            self.events.rename(self.folder / f"events.{self.n_renamed}.jsonl")

    def memory(self) -> float:
        """Return the megabytes of the process and its children; what they share counts once."""
        own = psutil.Process(self.process.pid)
        every = [own, *own.children(recursive=True)]
        return sum(process.memory_full_info().pss for process in every) / 1e6

    def told(self) -> Iterator[float]:
        """Yield the start of every event that was told, in seconds since the epoch."""
        for path in sorted(self.folder.glob("events*.jsonl")):
            for line in path.read_text().splitlines():
                values = json.loads(line)
                if values["habitus"] == "event":
                    yield datetime.fromisoformat(values["clock"]).timestamp()


class Faults:
    """Faults of one camera and its watch, one after the other, at random."""

    def __init__(self, watch: Watch, rng: np.random.Generator, *, deadly: bool) -> None:
        self.watch, self.rng = watch, rng
        self.kinds = [*DISTURBING, CHILD, *HARMLESS, *(DEADLY * 2 if deadly else ())]
        self.happened: list[Disturbance] = []
        self.next = time.time() + 90.0
        self.disk_full_until = 0.0

    def step(self) -> None:
        """Start the next fault if its time has come."""
        now = time.time()
        if self.disk_full_until and now > self.disk_full_until:
            self.watch.may_grow(True)
            self.disk_full_until = 0.0
        if now < self.next:
            return
        kind = str(self.rng.choice(self.kinds))
        seconds = float(self.rng.uniform(2.0, 20.0))
        self.next = now + seconds + float(self.rng.uniform(*FAULTS_EVERY))
        self._start(kind, now, seconds)

    def _start(self, kind: str, now: float, seconds: float) -> None:
        settled = 0.0 if kind in HARMLESS else SETTLES
        if kind == "full disk":
            self.watch.may_grow(False)
            self.disk_full_until = now + seconds
        elif kind == "renamed":
            self.watch.rename()
        elif kind == "hang-up":
            self.watch.process.send_signal(signal.SIGHUP)
        elif kind == CHILD:
            for child in psutil.Process(self.watch.process.pid).children(recursive=True):
                child.kill()
        elif kind in DEADLY:
            self.watch.may_grow(True)
            self.watch.restart(getattr(signal, kind))
        else:
            self.watch.camera.disturb(kind, seconds)
        self.happened.append(Disturbance(now, time.time() + seconds + settled, kind))


class Kills(NamedTuple):
    """What was left by commands that were ended."""

    processes: int
    """Left ten seconds later."""
    torn: int
    """Outputs that cannot be read."""
    temporary: int
    """Temporary files and folders after a last run that was not ended."""


def kill_at_random(folder: Path, n_kills: int, rng: np.random.Generator) -> Kills:
    """End `extract` of a video by two workers at random moments, and count what is left."""
    place = folder / "kills"
    place.mkdir(exist_ok=True)
    video, output = folder / "lanes.mp4", place / "lanes.corpus"
    token = f"{MARK}={rng.integers(1 << 60)}"
    environment = {**os.environ, MARK: token.split("=")[1], "TMPDIR": str(place)}
    command = [sys.executable, "-m", "habitus", "extract", str(video), "--jobs", "2"]
    command += ["--output", str(output)]
    began = time.time()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    lasts, processes, torn = time.time() - began, 0, 0
    for _ in range(n_kills):
        output.unlink(missing_ok=True)
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            time.sleep(float(rng.uniform(0, lasts)))
            with contextlib.suppress(ProcessLookupError):
                if rng.random() < SHARE_OF_ALL:
                    os.killpg(process.pid, signal.SIGTERM)
                else:
                    process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        processes += _left(token)
        if output.exists():
            try:
                habitus.Corpus.load(output)
            except habitus.HabitusError:
                torn += 1
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return Kills(processes, torn, len(list(place.glob("**/.habitus-*"))))


def _left(token: str, patience: float = 10.0) -> int:
    """Return how many processes with this mark there are, once that is 0 or patience ends."""
    name, value = token.split("=")
    until = time.time() + patience
    while True:
        left = 0
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                left += process.environ().get(name) == value
        if not left or time.time() > until:
            return left
        time.sleep(0.2)


def soak(folder: Path, minutes: float, seed: int, keep: bool) -> bool:
    """Run, print the figures, and return whether nothing was lost."""
    model, rng = learnt(folder), np.random.default_rng(seed)
    cameras = [Camera(kind, each) for kind, each in zip(KINDS, rng.spawn(len(KINDS)), strict=True)]
    watches, faults = [], []
    for k, camera in enumerate(cameras):
        own = folder / f"camera{k}"
        own.mkdir(exist_ok=True)
        watches.append(Watch(camera, model, own, unread=k == 1))
        faults.append(Faults(watches[-1], rng.spawn(1)[0], deadly=k == 2))
    began, until = time.time(), time.time() + 60 * minutes
    early: list[float] = []
    while time.time() < until:
        time.sleep(0.25)
        for each in faults:
            each.step()
        if not early and time.time() > began + min(180.0, 30 * minutes):
            early = [watch.memory() for watch in watches]
        dead = [k for k, watch in enumerate(watches) if watch.process.poll() is not None]
        if dead:
            print(f"camera {dead[0]}: watch ended by itself: {watches[dead[0]].process.returncode}")
            return False
    late = [watch.memory() for watch in watches]
    for watch in watches:
        watch.may_grow(True)
        watch.end(signal.SIGTERM)
    return report(cameras, watches, faults, until, list(zip(early, late, strict=True)), keep)


def report(
    cameras: list[Camera],
    watches: list[Watch],
    faults: list[Faults],
    until: float,
    memory: list[tuple[float, float]],
    keep: bool,
) -> bool:
    """Print the table and the counts of faults; keep the table for the documents if asked to."""
    good, rows = True, []
    for k, (camera, watch, each) in enumerate(zip(cameras, watches, faults, strict=True)):
        disturbed = [fault for fault in each.happened if fault.kind not in HARMLESS]
        found, lost = counted(camera, disturbed, list(watch.told()), until)
        early, late = memory[k]
        rows.append(
            {
                "camera": f"{k}, {camera.kind}",
                "clear anomalies": found.clear,
                "told": found.clear_told,
                "told twice": found.twice,
                "disturbed": found.disturbed,
                "of these told": found.disturbed_told,
                "other events": found.unasked,
                "MB after 3 minutes": round(early),
                "MB at the end": round(late),
            }
        )
        for anomaly in lost:
            last = [d for d in each.happened if d.start < anomaly.start][-1:]
            print(f"  lost: {datetime.fromtimestamp(anomaly.start)}; last fault {last}")
        good &= not lost
    print(table(rows))
    if keep:
        save("soak", rows)
    kinds = Counter(d.kind for each in faults for d in each.happened)
    print("\nfaults: " + ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    return good


def main() -> None:
    """Run the soak; exit with 1 where a clear anomaly was not told."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where model and events are kept")
    parser.add_argument("--save", action="store_true", help="keep the rows for the documents")
    options = parser.parse_args()
    with kept_folder(options.folder) as folder:
        learnt(folder)
        kills = kill_at_random(folder, options.kills, np.random.default_rng(options.seed))
        print(
            f"{options.kills} times ended: {kills.processes} processes left, {kills.torn} torn "
            f"outputs, {kills.temporary} temporary files left\n",
            flush=True,
        )
        good = soak(folder, options.minutes, options.seed, options.save) and not any(kills)
        sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
