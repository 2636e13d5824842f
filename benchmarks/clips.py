"""Footage for timing: objects in traffic on a textured ground, encoded once, as long as wanted."""

from pathlib import Path

import av
import cv2

from footage import FPS, Case, render

SECONDS = 40


def make(path: Path, *, size: tuple[int, int] | None = None) -> Path:
    """Forty seconds of moving objects with a little noise, x264 crf 23, a keyframe every 2 s.

    Objects are sized so that a document has about as many words as the paper's: 720.
    """
    case = Case("traffic", (3.0, 1.0), noise=2.0, n_frames=SECONDS * FPS, size=0.8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height = size or (360, 288)
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "23", "preset": "fast", "g": str(2 * FPS)}
        for picture, _ in render(case):
            if size:
                picture = cv2.resize(picture, size, interpolation=cv2.INTER_CUBIC)
            frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def repeat(source: Path, path: Path, times: int) -> Path:
    """The same packets over and over, one after the other."""
    with av.open(str(path), "w") as out:
        stream = None
        for k in range(times):
            with av.open(str(source)) as container:
                given = container.streams.video[0]
                if stream is None:
                    stream = out.add_stream_from_template(given)
                shift = round(k * SECONDS / given.time_base)
                for packet in container.demux(given):
                    if packet.dts is None:
                        continue
                    packet.pts += shift
                    packet.dts += shift
                    packet.stream = stream
                    out.mux(packet)
    return path
