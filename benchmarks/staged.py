"""Cameras with staged anomalies, drawn while they are watched, and a model of their scene.

Two lanes take turns, and now and then something goes the wrong way, at a time that is known.
"""

import contextlib
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np

import habitus

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference.footage import Picture, encode
from reference.two_lanes import FPS, lanes_at, wrong_at

TRAINING = 300
LASTS = 3.0
"""Seconds of an anomaly."""
EVERY = (20.0, 45.0)
"""Seconds between anomalies."""
JPEG_HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=--next\r\n\r\n"
JPEG_PART = b"--next\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n"
BEFORE, AFTER = 8.0, 6.0
"""Seconds around an anomaly that must be undisturbed for it to be clear."""
SLACK = 4.0
"""Seconds by which an event may be told to start before or after its anomaly."""
DISTURBING = ("cut", "stall", "refuse", "garbage", "black", "frozen", "shifted", "resized")
"""Faults of a camera."""


class Anomaly(NamedTuple):
    """Something that went the wrong way, in seconds since the epoch."""

    start: float
    end: float


class Disturbance(NamedTuple):
    """When anomalies may be missed, and why."""

    start: float
    end: float
    kind: str


class Camera:
    """A scene that is drawn in real time and sent to whoever connects.

    Parameters
    ----------
    kind
        "mjpeg" over HTTP, without times, or "mpegts" over TCP.
    rng
        Chooses when anomalies happen.
    """

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.kind, self.rng = kind, rng
        self.server = socket.create_server(("127.0.0.1", 0), backlog=4)
        self.port = self.server.getsockname()[1]
        self.fault, self.fault_until = "", 0.0
        self.anomalies: list[Anomaly] = []
        self.next = time.time() + 60.0
        self.sent: list[float] = []
        """Seconds in which all frames were sent."""
        self.frozen: Picture | None = None
        self.stop = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """Where to connect."""
        scheme = "http" if self.kind == "mjpeg" else "tcp"
        return f"{scheme}://127.0.0.1:{self.port}"

    def disturb(self, kind: str, seconds: float) -> None:
        """Start a fault."""
        self.fault, self.fault_until = kind, time.time() + seconds

    def _serve(self) -> None:
        while not self.stop.is_set():
            connection, _ = self.server.accept()
            with contextlib.suppress(OSError, av.error.FFmpegError), connection:
                if self._now() != "refuse":
                    connection.settimeout(20.0)
                    self._play(connection)

    def _now(self) -> str:
        return self.fault if time.time() < self.fault_until else ""

    def _play(self, connection: socket.socket) -> None:
        """Send pictures in real time until the connection breaks or a fault cuts it."""
        send = _jpeg_sender(connection) if self.kind == "mjpeg" else _stream_sender(connection)
        due = time.time()
        while not self.stop.is_set():
            fault = self._now()
            if fault in ("cut", "refuse"):
                return
            if fault == "stall":
                time.sleep(0.2)
                due = time.time()
                continue
            if fault == "garbage":
                connection.sendall(bytes(np.random.default_rng(int(due)).bytes(2000)))
                time.sleep(0.1)
            send(self._picture(due, fault))
            due += 1 / FPS
            time.sleep(max(0.0, due - time.time()))
            self.sent.append(due)

    def _picture(self, now: float, fault: str) -> Picture:
        """Draw the scene; an anomaly begins when its time has come."""
        if now >= self.next:
            self.anomalies.append(Anomaly(now, now + LASTS))
            self.next = now + LASTS + self.rng.uniform(*EVERY)
        picture = lanes_at(now)
        if self.anomalies and now < self.anomalies[-1].end:
            wrong_at(picture, now - self.anomalies[-1].start)
        if fault == "black":
            return np.full_like(picture, 16)
        if fault == "frozen":
            self.frozen = picture if self.frozen is None else self.frozen
            return self.frozen
        self.frozen = None
        if fault == "shifted":
            return np.roll(picture, 40, axis=1)
        return picture[:96, :128].copy() if fault == "resized" else picture


def _jpeg_sender(connection: socket.socket) -> Callable[[Picture], None]:
    import cv2

    connection.recv(65536)
    connection.sendall(JPEG_HEAD)

    def send(picture: Picture) -> None:
        data = cv2.imencode(".jpg", picture)[1].tobytes()
        connection.sendall(JPEG_PART % len(data) + data + b"\r\n")

    return send


def _stream_sender(connection: socket.socket) -> Callable[[Picture], None]:
    """Return a function that encodes and sends; another size begins another stream."""
    found: dict[tuple[int, ...], Any] = {}
    start, last = time.time(), [-1]

    def send(picture: Picture) -> None:
        if picture.shape not in found:
            found.clear()
            container = av.open(_Wire(connection), "w", format="mpegts")
            stream = container.add_stream("libx264", rate=FPS)
            stream.height, stream.width = picture.shape
            stream.pix_fmt = "yuv420p"
            stream.options = {"preset": "ultrafast", "tune": "zerolatency", "g": str(FPS)}
            found[picture.shape] = container, stream
        container, stream = found[picture.shape]
        frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format="yuv420p")
        # Frames that were late follow each other fast; an encoder takes no time twice.
        last[0] = frame.pts = max(last[0] + 1, round((time.time() - start) * FPS))
        container.mux(stream.encode(frame))

    return send


class _Wire:
    """A connection as a file that can be written to."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def write(self, data: bytes) -> int:
        self.connection.sendall(data)
        return len(data)


class Counts(NamedTuple):
    """What became of the anomalies of one camera."""

    clear: int
    clear_told: int
    disturbed: int
    disturbed_told: int
    twice: int
    """Clear anomalies that two events tell of."""
    unasked: int
    """Events far from any anomaly, and from any disturbance."""


def counted(
    camera: Camera, disturbed: list[Disturbance], told: list[float], until: float
) -> tuple[Counts, list[Anomaly]]:
    """Compare what was sent with what was told; also return the clear ones that were not."""
    sent = np.array(camera.sent)
    n: Counter[str] = Counter()
    lost = []
    for anomaly in camera.anomalies:
        start, end = anomaly.start - BEFORE, anomaly.end + AFTER
        if end > until:
            continue
        times = sent[(sent > start) & (sent < end)]
        whole = len(times) and np.diff(times, prepend=start, append=end).max() < 1.0
        clear = whole and not any(d.start < end and d.end > start for d in disturbed)
        hits = [t for t in told if anomaly.start - SLACK < t < anomaly.end + SLACK]
        kind = "clear" if clear else "disturbed"
        n[kind] += 1
        n[f"{kind} told"] += bool(hits)
        n["twice"] += clear and len(hits) > 1
        if clear and not hits:
            lost.append(anomaly)
    near = [(a.start - SLACK, a.end + SLACK) for a in camera.anomalies]
    near += [(d.start - SLACK, d.end + SLACK) for d in disturbed]
    unasked = sum(not any(start < t < end for start, end in near) for t in told)
    found = [n[name] for name in ("clear", "clear told", "disturbed", "disturbed told", "twice")]
    return Counts(*found, unasked), lost


def learnt(folder: Path) -> Path:
    """Learn the scene without anomalies, and return the model."""
    model = folder / "lanes.model"
    if not model.exists():
        video = folder / "lanes.mp4"
        encode(video, (lanes_at(i / FPS) for i in range(TRAINING * FPS)), rate=FPS)
        habitus.learn(str(video), output=str(model))
    return model
