"""What a viewer of a camera's live video costs the server of the console, beside pictures.

A camera plays a file of 25 frames per second. Viewers ask for what follows each half second, as a
page does; the peer is as many who ask for a picture each second. Processor time and memory are
those of the server's own process, beyond those that it takes with nobody looking.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

import clips
from report import Row, main, progress
from served import Served, pss

SIZES = {"360x288": (360, 288), "1280x720": (1280, 720)}
N_VIEWERS, PACE = 8, 0.5


def measure(quick: bool) -> Iterator[Row]:
    """Rows: processor time of a viewer at each size."""
    seconds = 10.0 if quick else 30.0
    for name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            video = clips.make(Path(folder, "video.mp4"), size=size)
            with Served(Path(folder, "data")) as served:
                idle, pictures, live, before, after = looked_at(served, video, seconds)
        progress(f"{name}: idle {idle:.4f}, pictures {pictures:.4f}, live {live:.4f}")
        yield Row(
            what=f"processor time of a viewer of {name} per second",
            ours=1000 * (live - idle) / N_VIEWERS,
            peer=1000 * (pictures - idle) / N_VIEWERS,
            unit="ms",
            ratio=(live - idle) / (pictures - idle),
            note=f"{N_VIEWERS} viewers, {seconds:g} s; memory of the server {before:.0f} MB "
            f"before the first, {after:.0f} MB with all; the peer sees a picture each second",
        )


def looked_at(
    served: Served, video: Path, seconds: float
) -> tuple[float, float, float, float, float]:
    """Processor seconds per second: alone, with pictures, with videos; memory before and after."""
    upload = served.client.post("/api/uploads", content=video.read_bytes()).json()["id"]
    camera = {"name": "Camera", "upload": upload, "kind": "playback"}
    address = "/api/cameras/" + served.client.post("/api/cameras", json=camera).json()["id"]
    until = time.monotonic() + 60
    while not served.json(f"{address}/recent")["spans"] and time.monotonic() < until:
        time.sleep(0.5)
    server = psutil.Process(served.pid)
    last = [""] * N_VIEWERS

    def follow(viewer: int) -> None:
        query = {"after": last[viewer]} if last[viewer] else {}
        answer = served.client.get(f"{address}/recent.mp4", params=query)
        last[viewer] = answer.headers.get("X-Last", last[viewer])

    idle = load(server, seconds, lambda viewer: None, PACE)
    before = pss(served.pid)
    pictures = load(server, seconds, lambda viewer: served.client.get(f"{address}/picture"), 1.0)
    live = load(server, seconds, follow, PACE)
    return idle, pictures, live, before, pss(served.pid)


def load(
    server: psutil.Process, seconds: float, look: Callable[[int], object], pace: float
) -> float:
    """Processor seconds of the server per second, while viewers look at that pace."""

    def spent() -> float:
        times = server.cpu_times()
        return times.user + times.system

    began, before = time.monotonic(), spent()
    while time.monotonic() - began < seconds:
        due = time.monotonic() + pace
        for viewer in range(N_VIEWERS):
            look(viewer)
        time.sleep(max(0.0, due - time.monotonic()))
    return (spent() - before) / (time.monotonic() - began)


if __name__ == "__main__":
    main(measure)
