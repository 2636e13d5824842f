"""Memory of a camera of the console, beside `habitus watch` of the same file.

Cameras play a file at its own speed, and judge it by a model. A camera is its process and its
decoder, both forked from the fork server. What it costs is by how much the memory of that server
and of all that it forked grows with each camera: the sum of their proportional set sizes (PSS), in
which pages that several processes share count once. The peer is the largest PSS that `habitus
watch` of the same file has, and its decoder. The fork server is there once, whatever the number of
cameras.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import clips
import habitus
from habitus.jobs.fork_server import ForkServer
from habitus.site.pipe_messages import JudgedDocument
from habitus.site.process import PRELOAD, CameraJob, CameraProcess
from report import Row, Target, main, progress

SIZES = {"360x288": (360, 288), "1280x720": (1280, 720)}
N_CAMERAS = 3
MB = 1e6


def measure(quick: bool) -> Iterator[Row]:
    """Rows: a camera at each size, and the fork server."""
    with tempfile.TemporaryDirectory() as folder:
        for name, size in SIZES.items():
            video = clips.make(Path(folder, f"{name}.mp4"), size=size)
            model = Path(folder, f"{name}.habitus")
            habitus.learn(video, output=model, learning=habitus.LearningSettings(n_restarts=1))
            seconds = 20 if quick else 120
            camera, fork_server = of_camera(video, model, Path(folder), seconds)
            plain = of_watch(video, model)
            yield Row(
                what=f"memory that a camera of {name} costs in the console",
                ours=camera / MB,
                peer=plain / MB,
                unit="MB",
                ratio=camera / plain,
                target=Target("at most", 80, "ours"),
                note=f"after {seconds} s, by {N_CAMERAS} cameras; the fork server alone has "
                f"{fork_server / MB:.0f} MB, once; the peer is habitus watch",
            )


def of_camera(video: Path, model: Path, folder: Path, seconds: float) -> tuple[float, int]:
    """Bytes that a camera costs, and those of the fork server alone."""
    with ForkServer(PRELOAD) as fork_server:
        fork_server.ask("builtins:len", "loaded", within=600)
        alone, cameras = pss(fork_server.pid or 0), []
        for n in range(N_CAMERAS):
            own = folder / f"{video.stem}-{n}"
            own.mkdir()
            job = CameraJob(f"camera-{n}", own, str(video), kind="playback", model=str(model))
            cameras.append(CameraProcess(job, fork_server))
        judged = listen(cameras, seconds)
        progress(f"documents judged: {judged}")
        assert min(judged) > seconds / 2, "a camera does not keep up"
        together = sum(map(pss, [fork_server.pid or 0, *children(fork_server.pid or 0)]))
        for camera in cameras:
            camera.kill()
    return (together - alone) / N_CAMERAS, alone


def listen(cameras: list[CameraProcess], seconds: float) -> list[int]:
    """Number of documents that each camera judges in so many seconds."""
    until, judged = time.monotonic() + seconds, [0] * len(cameras)
    while time.monotonic() < until:
        for n, camera in enumerate(cameras):
            judged[n] += sum(isinstance(report, JudgedDocument) for report in camera.reports())
        time.sleep(0.2)
    return judged


def children(pid: int) -> list[int]:
    """Process ids of all that a process has started and that run."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def pss(pid: int) -> int:
    """Proportional set size of a process in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def of_watch(video: Path, model: Path) -> int:
    """Largest number of bytes of `habitus watch` and of its decoder."""
    command = [sys.executable, "-m", "habitus", "watch", str(video), "--model", str(model)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watch:
        largest = 0
        while watch.poll() is None:
            with suppress(OSError, StopIteration):  # one of them has just ended
                largest = max(largest, sum(map(pss, [watch.pid, *children(watch.pid)])))
            time.sleep(0.2)
    return largest


if __name__ == "__main__":
    main(measure)
