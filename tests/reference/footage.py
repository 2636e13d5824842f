"""Footage to test on: a textured square that moves over a textured ground, drawn and encoded."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np

from habitus.video import Frame

WIDTH, HEIGHT = 160, 128
FPS = 25
SIDE = 48
"""Of the square."""
# Ticks that frame times are given in, fine enough for 29.97 frames a second.
TICK = Fraction(1, 90_000)

Picture = np.ndarray


def texture(width: int, height: int, seed: int, softness: float = 2.0) -> Picture:
    """Smooth noise: enough structure for motion to be seen, soft enough for any codec."""
    noise = np.random.default_rng(seed).normal(size=(height, width)).astype(np.float32)
    soft = cv2.GaussianBlur(noise, (0, 0), softness, borderType=cv2.BORDER_REFLECT)
    return np.clip(128 + 40 * soft / soft.std(), 20, 235).astype(np.uint8)


def moving_square(
    n: int,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    velocity: tuple[int, int] = (2, 0),
    start: tuple[int, int] = (0, 40),
    side: int = SIDE,
    seed: int = 0,
) -> list[Picture]:
    """Pictures of a square that goes `velocity` (right, down) pixels a frame, around and around."""
    ground, square = texture(width, height, seed), texture(side, side, seed + 1000)
    pictures = []
    for i in range(n):
        x = (start[0] + i * velocity[0]) % (width - side + 1)
        y = (start[1] + i * velocity[1]) % (height - side + 1)
        picture = ground.copy()
        picture[y : y + side, x : x + side] = square
        pictures.append(picture)
    return pictures


def encode(
    path: Path,
    pictures: Iterable[Picture],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    rate: Fraction | int = FPS,
    times: Sequence[float] | None = None,
    options: dict[str, str] | None = None,
    format: str | None = None,
) -> Path:
    """Write grey pictures as a video; `times` in seconds, or even at `rate`."""
    with av.open(str(path), "w", format=format) as container:
        write(
            container,
            pictures,
            codec=codec,
            pix_fmt=pix_fmt,
            rate=rate,
            times=times,
            options=options,
        )
    return path


def write(
    container: av.container.OutputContainer,
    pictures: Iterable[Picture],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    rate: Fraction | int = FPS,
    times: Sequence[float] | None = None,
    options: dict[str, str] | None = None,
) -> None:
    stream = container.add_stream(codec, rate=rate, options=options or {})
    base = TICK if times is not None else 1 / Fraction(rate)
    stream.codec_context.time_base = stream.time_base = base
    stream.codec_context.thread_count = 1
    stream.pix_fmt = pix_fmt
    for i, picture in enumerate(pictures):
        if i == 0:
            stream.height, stream.width = picture.shape
        frame = av.VideoFrame.from_ndarray(picture, format="gray").reformat(format=pix_fmt)
        frame.time_base, frame.pts = base, i if times is None else round(times[i] / base)
        container.mux(stream.encode(frame))
    container.mux(stream.encode())


def repeated(video: Path, path: Path, n: int) -> Path:
    """Write a video whose pictures are in order n times over, without encoding it again."""
    with av.open(str(video)) as once, av.open(str(path), "w") as container:
        (given,) = once.streams.video
        stream = container.add_stream_from_template(given)
        packets = [packet for packet in once.demux(given) if packet.dts is not None]
        for turn in range(n):
            for packet in packets:
                again = av.Packet(bytes(packet))
                again.dts = again.pts = packet.pts + turn * given.duration
                again.time_base, again.is_keyframe = packet.time_base, packet.is_keyframe
                again.stream = stream
                container.mux(again)
    return path


def limited(picture: Picture) -> np.ndarray:
    """The brightness that a grey picture has in a stream of limited range: 16 to 235."""
    return 16 + picture * (219 / 255)


class Drawn:
    """Pictures that stand for a reader: no file, no codec, any times."""

    def __init__(self, pictures: Sequence[Picture], times: Sequence[float], fps: float = FPS):
        self.pictures, self.times, self.fps = pictures, times, fps
        self.height, self.width = pictures[0].shape

    def __iter__(self) -> Iterator[Frame]:
        for time, picture in zip(self.times, self.pictures, strict=True):
            decoded = av.VideoFrame.from_ndarray(picture, format="gray")
            yield Frame(float(time), self.width, self.height, True, decoded)


def evenly(n: int, fps: float = FPS) -> np.ndarray:
    """Times of frames at an even rate."""
    return np.arange(n) / fps
