"""Extraction against decoding alone, against DIS, with two processes, in fast mode; and its memory.

One core, the same file for all sides, interleaved: PyAV decoding and dropping every frame, with its
own options (loop filter on, one thread); our documents, which leave out the decoding that they do
not need; decoding and gated DIS on every frame, as one would write it, and on the frames that we
compare. Two processes against one on an hour of video, whole commands, beside two that only decode.
Memory is that of the
largest process of `habitus extract`.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import av

import clips
from habitus.corpus.vocabulary import Vocabulary
from habitus.ingest.clips import LAG, DocumentSettings, documents
from habitus.video import Reader, Source
from motion_quality import GatedFlow
from report import Row, Target, main, progress
from timing import interleave, n_cores, repeated

SIZES: dict[str, tuple[int, int] | None] = {"360x288": None, "1280x720": (1280, 720)}
OF_DECODING = {"360x288": 0.85, "1280x720": 0.90}
# Rounds of extraction beside decoding for each round of everything else.
CLOSE = 5


def measure(quick: bool) -> Iterator[Row]:
    """Rows: each size against decoding and DIS; then processes, and memory."""
    with tempfile.TemporaryDirectory() as folder:
        cores = os.sched_getaffinity(0)
        for name, size in SIZES.items():
            progress(f"rendering {name}")
            path = clips.make(Path(folder, f"{name}.mp4"), size=size)
            os.sched_setaffinity(0, {max(cores)})
            yield from speed(name, path, 2 if quick else 5)
            os.sched_setaffinity(0, cores)
        small = Path(folder, "360x288.mp4")
        if n_cores() > 1:
            yield from two_processes(small, Path(folder, "long.mp4"), 10 if quick else 90)
        yield memory(small, Path(folder), quick)


def speed(name: str, path: Path, rounds: int) -> Iterator[Row]:
    """Frames a second of all sides."""
    n_frames = clips.SECONDS * clips.FPS
    sides: dict[str, Callable[[], object]] = {
        "decoding": partial(decode, path),
        "ours": partial(ours, path),
        "fast": partial(ours, path, fast=True),
        "ultrafast": partial(dis, path, "ultrafast", lag=0.0),
        "ultrafast, our frames": partial(dis, path, "ultrafast", lag=LAG),
    }
    if name == "360x288":
        sides["medium"] = partial(dis, path, "medium", lag=0.0)
    timed = {side: repeated(run, 1) for side, run in sides.items()}
    # The closest comparison, and a short one: other work on the machine weighs on it most.
    close = interleave({side: timed[side] for side in ("decoding", "ours")}, CLOSE * rounds)
    found = interleave({side: timed[side] for side in timed if side != "decoding"}, rounds)

    def row(what: str, side: str, over: str, target: Target | None = None, note: str = "") -> Row:
        times = close if over == "decoding" else found
        return Row(
            what=f"{name}: {what}",
            ours=n_frames / times.median(side),
            peer=n_frames / times.median(over),
            unit="/s",
            ratio=times.ratio(over, side),
            target=target,
            note=note or times.spread(over, side, unit="s"),
        )

    yield Row(
        what=f"{name}: hours of video extracted by one core in an hour",
        ours=n_frames / close.median("ours") / clips.FPS,
        unit="hours",
    )
    spread = close.spread("decoding", "ours", unit="s")
    yield row(
        "frames, extraction over decoding alone",
        "ours",
        "decoding",
        Target("at least", OF_DECODING[name]),
        spread,
    )
    same = found.ratio("ultrafast, our frames", "ours")
    yield row(
        "frames, over decoding and gated DIS ultrafast",
        "ours",
        "ultrafast",
        Target("at least", 4),
        f"on the frames that we compare: {same:.2f}",
    )
    if "medium" in sides:
        yield row(
            "frames, over decoding and gated DIS medium", "ours", "medium", Target("at least", 10)
        )
    yield row("frames, --fast over the default", "fast", "ours")


def decode(path: Path) -> int:
    """Decode, and drop every frame."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        return sum(1 for _ in container.decode(stream))


def ours(path: Path, *, fast: bool = False) -> int:
    """All documents."""
    source = Source(str(path), fast=fast)
    return sum(d.n_frames for d in documents(source, DocumentSettings(still_every=1000)))


def dis(path: Path, preset: str, *, lag: float) -> int:
    """Decode, and gated DIS."""
    n, before, last = 0, None, -1.0
    with Reader(Source(str(path))) as reader:
        motion = GatedFlow(Vocabulary.of_frame(reader.width, reader.height), preset)
        for frame in reader:
            if frame.time - last < lag:
                continue
            after = motion.prepare(frame)
            if before is not None:
                n += int((motion.between(before, after, frame.time - last)[0] >= 0).sum())
            before, last = after, frame.time
    return n


def two_processes(small: Path, long: Path, times: int) -> Iterator[Row]:
    """Whole commands with one and with two workers, beside processes that only decode."""
    clips.repeat(small, long, times)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    decoding: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(2):
        for jobs, each in seconds.items():
            start = time.perf_counter()
            _extract(long, jobs)
            each.append(time.perf_counter() - start)
            start = time.perf_counter()
            _decode_apart(small, jobs, times // 4)
            decoding[jobs].append(time.perf_counter() - start)
    ratios = sorted(a / b for a, b in zip(seconds[1], seconds[2], strict=True))
    limits = sorted(2 * a / b for a, b in zip(decoding[1], decoding[2], strict=True))
    minutes = times * clips.SECONDS // 60
    yield Row(
        what=f"{minutes} minutes of 360x288: two processes over one",
        ours=min(seconds[2]),
        peer=min(seconds[1]),
        unit="s",
        ratio=sum(ratios) / len(ratios),
        target=Target("at least", 1.8),
        note=f"whole commands, start-up included; {ratios[0]:.2f} to {ratios[-1]:.2f}; two that "
        f"only decode, apart from each other, do {limits[0]:.2f} to {limits[-1]:.2f} times as much",
    )
    yield Row(
        what="decoding alone: two processes that share nothing over one",
        ours=min(decoding[2]) / 2,
        peer=min(decoding[1]),
        unit="s",
        ratio=sum(limits) / len(limits),
        note="what this machine's two cores allow: no extraction can do better",
    )


def _decode_apart(path: Path, n: int, times: int) -> None:
    """Processes beside each other, each decoding the whole file so many times."""
    command = [sys.executable, __file__, "--decode", str(path), str(times)]
    for process in [subprocess.Popen(command) for _ in range(n)]:
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, command)


def memory(small: Path, folder: Path, quick: bool) -> Row:
    """Peak of the largest process, ten minutes against sixty."""
    peaks = []
    for times in (15, 30 if quick else 90):
        long = clips.repeat(small, folder / f"{times}.mp4", times)
        code = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
            "capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        command = [sys.executable, "-c", code, *_command(long, 1)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(answer.stdout) / 1024)
    return Row(
        what=f"peak memory, {(30 if quick else 90) * clips.SECONDS // 60} minutes over 10",
        ours=peaks[1],
        peer=peaks[0],
        unit="MiB",
        ratio=peaks[1] / peaks[0],
        target=Target("at most", 1.1),
        note="the largest process, the finished corpus in memory included",
    )


def _command(path: Path, jobs: int) -> list[str]:
    habitus = Path(sys.executable).with_name("habitus")
    return [str(habitus), "extract", str(path), "-o", f"{path}.corpus", "--jobs", str(jobs)]


def _extract(path: Path, jobs: int) -> None:
    subprocess.run(_command(path, jobs), check=True, capture_output=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--decode"]:
        for _ in range(int(sys.argv[3])):
            decode(Path(sys.argv[2]))
    else:
        main(measure)
