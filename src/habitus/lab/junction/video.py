"""Scenes as files: H.264 video, and tables of what is true of it."""

import csv
import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from queue import Queue
from threading import Event, Thread

import av
import av.error

from habitus.errors import InvalidInputError
from habitus.files import written_whole
from habitus.lab.junction.raster import Plane
from habitus.lab.junction.scene import Junction

OPTIONS = {
    "preset": "veryfast",
    "crf": "23",
    "threads": "1",
    "x264-params": "ref=1:me=dia:subme=1:rc-lookahead=10:trellis=0",
}
"""One thread, so that the same scene gives the same bytes; a search as short as a camera's own."""
KEYFRAMES = 2.0
"""Seconds between keyframes."""
AHEAD = 32
"""Frames that may be rendered before they are encoded."""

Path = str | os.PathLike[str]


def render(
    scene: Junction, path: Path, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Write a scene as H.264 video, whole or not at all; `progress` gets frames done and in all."""
    with written_whole(path) as temporary:
        try:
            _encode(scene, str(temporary), progress or (lambda done, total: None))
        except (av.error.FFmpegError, ValueError) as error:
            raise InvalidInputError(f"cannot write {path} as H.264 video: {error}") from error


def _encode(scene: Junction, path: str, progress: Callable[[int, int], None]) -> None:
    rate = Fraction(scene.fps).limit_denominator(1001)
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = scene.width, scene.height, "yuv420p"
        stream.gop_size = max(1, round(KEYFRAMES * scene.fps))
        stream.thread_count, stream.options = 1, dict(OPTIONS)
        for done, picture in enumerate(_ahead(scene.frames()), start=1):
            frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
            container.mux(stream.encode(frame))
            progress(done, scene.n_frames)
        container.mux(stream.encode())


def _ahead(pictures: Iterable[Plane]) -> Iterator[Plane]:
    """The same, rendered in a thread of its own: kernels and encoder leave each other alone."""
    waiting: Queue[Plane | BaseException | None] = Queue(AHEAD)
    over = Event()

    def work() -> None:
        try:
            for picture in pictures:
                waiting.put(picture)
                if over.is_set():
                    return
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    worker = Thread(target=work, daemon=True)
    worker.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        while worker.is_alive():
            while not waiting.empty():
                waiting.get()
            worker.join(0.01)


def write_labels(scene: Junction, path: Path) -> None:
    """Write a CSV table of the anomalies: when, of what kind, and the box around all its boxes."""
    rows = [(_s(a.start), _s(a.end), a.kind, *a.box) for a in scene.truth()]
    _write(path, ("start", "end", "kind", "left", "top", "right", "bottom"), rows)


def write_boxes(scene: Junction, path: Path) -> None:
    """Write a CSV table of the anomalies' boxes, frame by frame."""
    rows = [
        (frame, _s(frame / scene.fps), event, anomaly.kind, *box)
        for event, anomaly in enumerate(scene.truth())
        for frame, *box in anomaly.boxes.tolist()
    ]
    head = ("frame", "time", "event", "kind", "left", "top", "right", "bottom")
    _write(path, head, sorted(rows))


def _s(seconds: float) -> str:
    return f"{seconds:.3f}"


def _write(path: Path, head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with written_whole(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *rows])
