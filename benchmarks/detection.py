"""Detecting against extracting alone, and how soon after a clip's last frame `watch` has judged it.

Whole commands on ten minutes of 360x288, one process each, interleaved. The live part is a paced
TCP stream without B-frames, as cameras send it: first a plain PyAV loop says how long after it was
sent each frame is decoded, then the live documents of the same stream are judged; the difference is
what we add.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import median

import av

import clips
from footage import FPS
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import Job
from habitus.ingest.extraction import extract_corpus
from habitus.ingest.live import LiveDocument, LiveSource
from habitus.scene import EventJoiner, SceneModel, learn_scene
from habitus.video import Source
from report import Row, Target, main, progress
from timing import interleave

SERVER = Path(__file__).parents[1] / "tests" / "reference" / "stream_server.py"
COMMAND = [sys.executable, "-c", "from habitus.cli import main; main()"]
PORT = 47_113
N_CLIPS = 12


def measure(quick: bool) -> Iterator[Row]:
    """Rows: detect over extract, and the time that watch adds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short = clips.make(folder / "short.mp4")
        video = clips.repeat(short, folder / "video.mp4", 3 if quick else 15)
        corpus, _ = extract_corpus([Source(str(video))])
        scene = learn_scene(corpus, n_restarts=2, random_state=0)
        scene.save(folder / "scene.model")
        yield detecting(folder, 2 if quick else 5)
        yield watching(steady(short, folder / "live.ts"), scene)


def detecting(folder: Path, rounds: int) -> Row:
    """Whole commands."""

    def timed(*arguments: str) -> float:
        start = time.perf_counter()
        subprocess.run(
            [*COMMAND, *arguments, "--jobs", "1"], cwd=folder, check=True, capture_output=True
        )
        return time.perf_counter() - start

    timing = interleave(
        {
            "extract": lambda: timed("extract", "video.mp4", "-o", "x.corpus"),
            "detect": lambda: timed("detect", "video.mp4", "-m", "scene.model"),
        },
        rounds,
    )
    return Row(
        what="detect on a file: speed over extract alone",
        ours=timing.median("detect"),
        peer=timing.median("extract"),
        unit="s",
        ratio=timing.ratio("extract", "detect"),
        target=Target("at least", 0.8),
    )


def steady(video: Path, path: Path) -> Path:
    """The same pictures as a camera would send them."""
    with av.open(str(video)) as given, av.open(str(path), "w", format="mpegts") as out:
        stream = out.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 360, 288, "yuv420p"
        stream.options = {"preset": "ultrafast", "tune": "zerolatency", "g": "25"}
        for n, frame in enumerate(given.decode(video=0)):
            frame.pts, frame.time_base = n, Fraction(1, FPS)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def watching(stream: Path, scene: SceneModel) -> Row:
    """Seconds from a clip's last frame to its judgement, beyond those to its being decoded."""
    arguments = [SERVER, PORT, stream, "tcp", FPS, 0]
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            progress("plain decoding of a live stream")
            decoded = plain(N_CLIPS * FPS)
            start = float(server.stdout.readline())
            plainly = [at - start for at in decoded]
            progress("watching it")
            judged = live(scene)
            start = float(server.stdout.readline())
        finally:
            server.kill()
    added = [
        1e3 * (at - start - plainly[(n + 1) * FPS - 1])
        for n, at in judged.items()
        if 2 <= n < N_CLIPS
    ]
    return Row(
        what="watch: judged after the clip's last frame is decoded",
        ours=median(added),
        unit="ms",
        target=Target("at most", 50, "ours"),
        note=f"{min(added):.1f} to {max(added):.1f} ms over {len(added)} clips; a plain loop has a "
        f"frame {1e3 * median(t - k / FPS for k, t in enumerate(plainly)):.0f} ms after it is sent",
    )


def plain(n: int) -> list[float]:
    """When each of the first frames of the stream is decoded."""
    found: list[float] = []
    with av.open(f"tcp://127.0.0.1:{PORT}") as container:
        for _ in container.decode(video=0):
            found.append(time.monotonic())
            if len(found) == n:
                return found
    return found


def live(scene: SceneModel) -> dict[int, float]:
    """When each document of the stream is judged, by its number."""
    stop, detector = threading.Event(), scene.detector()
    joiner = EventJoiner(detector)
    found: dict[int, float] = {}
    source = Source(f"tcp://127.0.0.1:{PORT}")
    for arrival in LiveSource(Job(source, DocumentSettings(still_every=1)), stop=stop):
        if isinstance(arrival, LiveDocument):
            judgement = detector.step(arrival.document)
            joiner.add(arrival.time, arrival.document, judgement, detector.threshold)
            found[arrival.document.number] = time.monotonic()
            if len(found) >= N_CLIPS:
                stop.set()
    return found


if __name__ == "__main__":
    main(measure)
