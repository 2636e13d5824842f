"""What a Dask cluster gains, costs and sends: two workers against one, and against plain processes.

Schedulers and workers are real processes of this machine. Speed is by the clock, so the machine has
to be otherwise idle: the load before each part is told in its note, and beside it the processor
time of the busiest worker, which others on the machine hardly change. Bytes are those that the
client writes to and reads from its connections, counted where Dask packs and unpacks messages; each
result also crosses once from its worker to the scheduler.

    python benchmarks/cluster.py --table
    python benchmarks/cluster.py --table --only learning --words 1e8
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import distributed.comm.tcp as tcp
import numpy as np
import psutil
from distributed import Client

import clips
import habitus
from habitus import MarkovClusteringTopicModel, ShardedCorpus
from habitus.jobs.cluster import open_workers
from out_of_core import SHARD_WORDS, make
from report import Row, Target, add_output, hand_on, progress
from timing import ONE_THREAD

PARTS = ("extraction", "learning", "overhead", "tasks")
RESTARTS, ITERATIONS = 4, 10
THREADS = 50
"""Threads of each of two workers that are given empty tasks."""
LOOPBACK = "127.0.0.1"
BUSY = "for _ in range({}): pass"
LOOPS_PER_MINUTE = 1_000_000
"""Of video: as long are processes busy that share nothing."""


def measure(parts: Sequence[str], minutes: float, words: float, n_tasks: int) -> Iterator[Row]:
    """Rows of the parts that are asked for."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if {"extraction", "overhead"} & set(parts):
            video = footage(folder, minutes)
        if "extraction" in parts:
            yield from extraction(video, minutes, folder)
        if "overhead" in parts:
            yield overhead(video, minutes)
        if "learning" in parts:
            yield from learning(make(folder, round(words / SHARD_WORDS)), words, folder)
        if "tasks" in parts:
            yield from tasks(n_tasks, folder)


def footage(folder: Path, minutes: float) -> Path:
    """Give a video of the rendered junction, repeated to that length."""
    progress(f"making {minutes:g} minutes of video")
    small = clips.make(folder / "small.mp4")
    return clips.repeat(small, folder / "long.mp4", max(1, round(minutes * 60 / clips.SECONDS)))


class Cluster(NamedTuple):
    """A scheduler and its workers."""

    address: str
    workers: list[psutil.Process]

    def processor_times(self) -> list[float]:
        """Seconds of processor time that each worker has used."""
        return [sum(worker.cpu_times()[:2]) for worker in self.workers]


@contextmanager
def cluster(folder: Path, n_workers: int, n_threads: int = 1) -> Iterator[Cluster]:
    """Give a scheduler with workers of so many threads each."""
    told, processes = folder / f"scheduler-{n_workers}-{time.monotonic_ns()}.json", []

    def start(what: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "dask", what, *arguments, "--no-dashboard"]
        processes.append(
            subprocess.Popen(
                command,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    try:
        start("scheduler", "--host", LOOPBACK, "--port", "0", "--scheduler-file", str(told))
        while not (told.exists() and told.read_text().endswith("}")):
            time.sleep(0.05)
        address = str(json.loads(told.read_text())["address"])
        for _ in range(n_workers):
            start(
                *("worker", address, "--nthreads", str(n_threads), "--no-nanny"),
                *("--host", LOOPBACK, "--local-directory", str(folder), "--memory-limit", "0"),
            )
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(n_workers)
        yield Cluster(address, [psutil.Process(process.pid) for process in processes[1:]])
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


class Traffic:
    """Bytes that this process has written to and read from connections of Dask."""

    def __init__(self) -> None:
        self.n_bytes = 0
        write, from_frames = tcp.TCP.write, tcp.from_frames

        async def counted_write(comm: Any, *arguments: Any, **options: Any) -> int:
            written = int(await write(comm, *arguments, **options))
            self.n_bytes += written
            return written

        async def counted_frames(frames: Any, *arguments: Any, **options: Any) -> Any:
            parts = [frames] if isinstance(frames, memoryview) else frames
            self.n_bytes += sum(memoryview(part).nbytes for part in parts)
            return await from_frames(frames, *arguments, **options)

        assert asyncio.iscoroutinefunction(write)
        tcp.TCP.write, tcp.from_frames = counted_write, counted_frames


def load() -> str:
    """Tell how busy the machine was in the last minute."""
    return f"load {os.getloadavg()[0]:.1f} before"


def ceiling(minutes: float) -> str:
    """Tell what two processes gain that share nothing: no two workers of this machine gain more.

    Processors of virtual machines may be two threads of one core.
    """
    seconds, code = {}, BUSY.format(round(minutes * LOOPS_PER_MINUTE))
    for n in (1, 2):
        start = time.perf_counter()
        busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(n)]
        for process in busy:
            process.wait()
        seconds[n] = time.perf_counter() - start
    return f"two processes that share nothing gain {2 * seconds[1] / seconds[2]:.2f}"


def extraction(video: Path, minutes: float, folder: Path) -> Iterator[Row]:
    """Rows: two workers over one, and what was sent."""
    before, traffic = f"{load()}; {ceiling(minutes)}", Traffic()
    seconds, busiest, sent = {}, {}, 0
    for n in (1, 2):
        progress(f"extracting with {n} worker(s)")
        with cluster(folder, n) as found:
            for _ in range(n):  # kernels are loaded
                habitus.extract(
                    video,
                    reading=habitus.ReadingSettings(duration=clips.SECONDS, cluster=found.address),
                )
            start, sent, used = time.perf_counter(), traffic.n_bytes, found.processor_times()
            habitus.extract(video, reading=habitus.ReadingSettings(cluster=found.address))
            seconds[n], sent = time.perf_counter() - start, traffic.n_bytes - sent
            busiest[n] = max(np.subtract(found.processor_times(), used))
    yield Row(
        what=f"extraction of {minutes:g} minutes of 360x288: two workers over one",
        ours=seconds[2],
        peer=seconds[1],
        unit="s",
        ratio=seconds[1] / seconds[2],
        target=Target("at least", 1.7),
        note=f"{before}; connecting included; processor time of the busiest worker "
        f"{busiest[2]:.1f} s over {busiest[1]:.1f} s",
    )
    yield Row(
        what="extraction: bytes to and from the client per hour of video",
        ours=sent / minutes * 60 / 1e6,
        unit="MB",
        note="chunks with thumbnails and stills, compressed; video is read by the workers",
    )


def learning(paths: Sequence[Path], words: float, folder: Path) -> Iterator[Row]:
    """Rows: two workers over one, the same to the bit, and what was sent."""
    before, bits, traffic = f"{load()}; {ceiling(60.0)}", {}, Traffic()
    seconds, busiest, sent = {}, {}, 0
    for n in (1, 2):
        progress(f"learning from {len(paths)} shards with {n} worker(s)")
        with cluster(folder, n) as started, open_workers(started.address) as workers:
            model().fit(ShardedCorpus.open(paths[:4]).with_workers(workers))  # kernels are loaded
            start, sent, used = time.perf_counter(), traffic.n_bytes, started.processor_times()
            found = model().fit(ShardedCorpus.open(paths).with_workers(workers))
            seconds[n], sent = time.perf_counter() - start, traffic.n_bytes - sent
            busiest[n] = max(np.subtract(started.processor_times(), used))
            bits[n] = b"".join(array.tobytes() for array in found.parameters_)
    if bits[1] != bits[2]:
        sys.exit("two workers learnt something else than one")
    yield Row(
        what=f"learning from {words:.0e} words in {len(paths)} shards: two workers over one",
        ours=seconds[2],
        peer=seconds[1],
        unit="s",
        ratio=seconds[1] / seconds[2],
        target=Target("at least", 1.6),
        note=f"{before}; {RESTARTS} x {ITERATIONS} EM iterations, the same to the bit; processor "
        f"time of the busiest worker {busiest[2]:.1f} s over {busiest[1]:.1f} s",
    )
    yield Row(
        what="learning: bytes to and from the client per pass over all shards",
        ours=sent / (ITERATIONS + 1) / 1e6,
        unit="MB",
        note=f"parameters and sums of {RESTARTS} restarts, whatever the number of words",
    )


def model() -> MarkovClusteringTopicModel:
    """Give the model that is learnt."""
    return MarkovClusteringTopicModel(
        8, 4, n_iterations=ITERATIONS, n_restarts=RESTARTS, random_state=0
    )


def overhead(video: Path, minutes: float) -> Row:
    """Row: whole commands with a cluster on this machine, over plain processes."""
    before, seconds = load(), {}
    for how in ([], ["--cluster", "local"]):
        progress(f"extracting with two processes {' '.join(how)}")
        command = [sys.executable, "-m", "habitus", "extract", str(video), "--jobs", "2", *how]
        start = time.perf_counter()
        subprocess.run(
            [*command, "-o", f"{video}{len(how)}.corpus"], check=True, capture_output=True
        )
        seconds[len(how)] = time.perf_counter() - start
    return Row(
        what=f"extraction of {minutes:g} minutes: --cluster local over plain --jobs 2",
        ours=seconds[2],
        peer=seconds[0],
        unit="s",
        ratio=seconds[2] / seconds[0],
        target=Target("at most", 1.1),
        note=f"{before}; whole commands, start-up of the cluster included",
    )


def tasks(n_tasks: int, folder: Path) -> Iterator[Row]:
    """Row: empty tasks per second, by Dask alone and by `Workers`, which start one per thread.

    A hundred threads take as many tasks at a time as a hundred workers do.
    """
    before = load()
    with cluster(folder, 2, n_threads=THREADS) as found:
        with Client(found.address, set_as_default=False) as client:
            client.gather(client.map(abs, range(100)))
            start = time.perf_counter()
            client.gather(client.map(abs, range(100, 100 + n_tasks)))
            plain = time.perf_counter() - start
        with open_workers(found.address) as workers:
            start = time.perf_counter()
            list(workers.as_completed(abs, range(n_tasks)))
            ours = time.perf_counter() - start
    yield Row(
        what="empty tasks: those of habitus over Dask's own",
        ours=n_tasks / ours,
        peer=n_tasks / plain,
        unit="tasks per second",
        ratio=plain / ours,
        note=f"{before}; {n_tasks} tasks, {2 * THREADS} at a time against all at once",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--minutes", type=float, default=60.0, help="of video")
    parser.add_argument("--words", type=float, default=1e7, help="to learn from")
    parser.add_argument("--tasks", type=int, default=5000)
    add_output(parser)
    given = parser.parse_args()
    rows = list(measure(given.only, given.minutes, given.words, given.tasks))
    hand_on(rows, given)
