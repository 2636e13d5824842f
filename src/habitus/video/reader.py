"""One picture of a video: its time and its brightness.

When each frame of a stream is shown.

Opening a source: its container and its video stream, or an error that says what is wrong.

Packets of a stream -> its pictures: what is damaged is left out, what is not wanted spared.

Reading a source: its frames in time order.
"""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import av
import av.error
import numpy as np
from av.video.plane import VideoPlane

from habitus.arrays import Image
from habitus.errors import VideoError
from habitus.video.source import Source, image_paths

# Formats whose first plane is the brightness in eight bits.
EIGHT_BIT_LUMA = {"gray", "nv12", "nv21", "nv16", "nv24"}
EIGHT_BIT_LUMA |= {f"yuv{j}{n}p" for j in ("", "j", "a") for n in (410, 411, 420, 422, 440, 444)}


class Frame(NamedTuple):
    """A decoded picture."""

    time: float
    """Seconds since the start of the video."""
    width: int
    height: int
    """The size of the video's first frame, to which all are brought."""
    intact: bool
    """Whether the decoder found no damage in it."""
    decoded: Any
    """PyAV's own frame; None where it was not wanted."""

    def luma(self) -> Image:
        """Brightness: rows x at least `width` columns; those beyond `width` are padding.

        Without a copy where that can be, so it is valid as long as the frame is.
        """
        return _luma(self.decoded, self.width, self.height)

    def colours(self, width: int, height: int) -> Image:
        """Red, green and blue at another size: height x width x 3."""
        picture: Image = self.decoded.to_ndarray(width=width, height=height, format="rgb24")
        return picture


def _luma(decoded: Any, width: int, height: int) -> Image:
    as_it_is = decoded.width == width and decoded.height == height
    if not as_it_is or decoded.format.name not in EIGHT_BIT_LUMA:
        decoded = decoded.reformat(width=width, height=height, format="gray")
    plane: Any = VideoPlane(decoded, 0)  # `planes` would make the other two as well, each time
    line = plane.line_size
    if line < width:  # stored upside down
        return np.ascontiguousarray(decoded.to_ndarray(format="gray"))
    return np.ndarray((height, line), np.uint8, plane)


class Clock:
    """Times of frames since the first, rising whatever the stream says."""

    def __init__(self, stream: Any, fps: float | None) -> None:
        rate = stream.average_rate or stream.guessed_rate
        self.fps = float(fps or rate or 25)
        base = stream.time_base or Fraction(1, 1000)
        self.ticks, self.per = base.numerator, base.denominator
        self.ignored = fps is not None and stream.average_rate is None
        self.zero, self.last, self.offset, self.n = 0.0, -1.0, 0.0, 0
        self.started, self.interlaced = False, False

    def start(self, picture: Any) -> None:
        """Make this the frame at time zero."""
        self.started, self.interlaced = True, picture.interlaced_frame
        if picture.pts is not None:
            self.zero = picture.pts * self.ticks / self.per

    def pts(self, time: float) -> int:
        """The stream's own count of a time."""
        return int((time + self.zero) * self.per / self.ticks)

    def at(self, pts: int) -> float:
        """Seconds since the first frame, by the stream's own count."""
        return pts * self.ticks / self.per - self.zero + self.offset

    def time(self, pts: int | None, *, peek: bool = False) -> tuple[float, bool]:
        """Seconds since the first frame, and whether the stream's times jumped back."""
        time = self.n / self.fps if pts is None or self.ignored else self.at(pts)
        jumped = self.last >= 0 and time <= self.last
        if jumped:
            later = self.last + 1 / self.fps
            if not peek:
                self.offset += later - time
            time = later
        if not peek:
            self.last, self.n = time, self.n + 1
        return time, jumped


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """PyAV's container of a source, closed in the end."""
    if not source.is_live:
        path = Path(source.address)
        if not path.exists():
            raise VideoError(f"{source.name}: no such file")
        if path.stat().st_size == 0:
            raise VideoError(f"{source.name}: the file is empty")
    address = "pipe:0" if source.address == "-" else source.address
    options = {"rtsp_transport": "tcp"} if address.startswith("rtsp") else {}
    try:
        container = av.open(address, timeout=source.timeout, options=options)
    except av.error.ExitError:
        raise VideoError(f"{source.name}: no answer within {source.timeout:g} s") from None
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise VideoError(
            f"{source.name}: not a video that can be opened: {reason_of(error)}"
        ) from error
    try:
        yield container
    finally:
        container.close()


def video_stream(container: Any, source: Source) -> Any:
    """The first video stream of a container, set up for decoding."""
    streams = container.streams.video
    if container.format.name == "tty":  # FFmpeg would draw any text
        raise VideoError(f"{source.name}: text, not video")
    if not streams:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise VideoError(f"{source.name}: no video in it, only {kinds}")
    stream = streams[0]
    if stream.codec_context is None:
        raise VideoError(f"{source.name}: its video is cut off before the first frame")
    stream.codec_context.thread_count = 1  # parallel work is by stretches of the video
    stream.thread_type = "NONE"
    # Frames that no other is predicted from are left unsmoothed: a tenth of the time, no drift.
    stream.codec_context.options = {"skip_loop_filter": "all" if source.fast else "noref"}
    if source.fast:
        stream.codec_context.skip_frame = "NONREF"
    return stream


def duration_of(container: Any, stream: Any) -> float | None:
    """In seconds, where the stream or its container tells."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def reason_of(error: Exception) -> str:
    """What FFmpeg says went wrong, in one line."""
    return str(getattr(error, "strerror", None) or error).split("\n")[0]


# Codecs of which a frame that no other is predicted from can be left out without a trace.
SPARING = frozenset(["h264", "hevc", "mpeg2video", "mpeg4"])
# Packets of a file that are looked at together before they are decoded.
AHEAD = 64

Pace = Callable[[float], bool]
"""Whether the frame of a time is wanted; asked frame by frame, in the order of time."""


class Pictures:
    """PyAV's frames of a stream; damaged packets are left out and noted, unwanted ones spared."""

    def __init__(
        self,
        source: Source,
        container: Any,
        stream: Any,
        clock: Clock,
        *,
        pace: Callable[[], Pace] | None,
        notes: list[str],
    ) -> None:
        self.source, self.codec, self.clock, self.notes = source, stream.codec_context, clock, notes
        self._spared: deque[int] = deque()
        self._unwanted: set[int] = set()
        packets = container.demux(stream)
        able = not (source.is_live or source.fast or clock.ignored) and self.codec.name in SPARING
        self._sparing = able and pace is not None
        if self._sparing and pace:
            packets = chain.from_iterable(self._ahead(packets, pace()))
        self._decoded = self._decode(packets)

    def __iter__(self) -> Iterator[Any]:
        return self._decoded

    def __next__(self) -> Any:
        return next(self._decoded)

    def spared_before(self, pts: int | None) -> Iterator[int]:
        """Frames that were left out before one that was not, or all that remain."""
        while self._spared and (pts is None or self._spared[0] <= pts):
            spared = self._spared.popleft()
            if spared != pts:
                yield spared

    def _decode(self, packets: Iterator[Any]) -> Iterator[Any]:
        damaged = 0
        while True:
            packet = None
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                if self._sparing:
                    self._tell(packet.pts)
                yield from packet.decode()
            except av.error.EOFError:
                break
            except av.error.ExitError:
                raise VideoError(
                    f"{self.source.name}: nothing came for {self.source.timeout:g} s"
                ) from None
            except av.error.FFmpegError as error:
                damaged += 1
                if packet is not None and packet.pts in self._spared:
                    self._spared.remove(packet.pts)
                if not isinstance(error, av.error.InvalidDataError) and damaged > 3:
                    self.notes.append(f"reading ended early: {reason_of(error)}")
                    break
        if damaged:
            self.notes.append(f"{damaged} damaged packet(s) were left out")

    def _tell(self, pts: int | None) -> None:
        """Tell the decoder whether the frame of the next packet is wanted."""
        if pts in self._unwanted:
            self._unwanted.remove(pts)
            self.codec.skip_frame = "NONREF"
        else:
            self.codec.skip_frame = "DEFAULT"

    def _ahead(self, packets: Iterator[Any], wanted: Pace) -> Iterator[list[Any]]:
        """Packets in their order, after it is known which of their frames are wanted."""
        held: list[Any] = []
        judge = _Judge(self.clock, wanted)
        error, ended = None, False
        while not ended:
            try:
                ended = True
                for packet in packets:
                    held.append(packet)
                    if len(held) >= AHEAD or not self.clock.started:
                        ended = False
                        break
            except av.error.FFmpegError as found:
                error = found
            known, unwanted = judge.known(held, complete=ended)
            self._spared.extend(unwanted)
            self._unwanted.update(unwanted)
            yield held[:known]
            del held[:known]
        if error is not None:
            raise error


class _Judge:
    """Which frames are wanted, from the times of their packets.

    A packet comes before those of earlier frames that are predicted from it. But no frame is shown
    before the time at which its packet is decoded: up to there, the times are all known.
    """

    def __init__(self, clock: Clock, wanted: Pace) -> None:
        self.clock, self.wanted = clock, wanted
        self.times: list[int] = []
        self.too_late: set[int] = set()
        self.n_seen = 0

    def known(self, held: list[Any], *, complete: bool) -> tuple[int, list[int]]:
        """How many of the packets can be decoded now, and which frames are known as unwanted."""
        if self.clock.interlaced:  # a frame may have two packets
            return len(held), []
        self.times += [p.pts for p in held[self.n_seen :] if p.pts is not None]
        if not self.clock.started:
            self.too_late.update(self.times)
            return len(held), []
        decoded = held[-1].dts if held and not complete else None
        until = math.inf if decoded is None else decoded
        self.times.sort()
        n = bisect_right(self.times, until)
        unwanted = [pts for pts in self.times[:n] if not self.wanted(self.clock.at(pts))]
        del self.times[:n]
        later = (i for i, p in enumerate(held) if p.pts is not None and p.pts > until)
        known = next(later, len(held))
        self.n_seen = len(held) - known
        return known, [pts for pts in unwanted if pts not in self.too_late]


# Decoding from a keyframe this much earlier than needed finds every frame whole.
RUN_UP = 1.0


class Reader:
    """The frames of a source, from a given time on; iterate once, inside `with`.

    The first frame is at most as late as `since`, or the first of all. What is damaged is left
    out; `notes` tells of it afterwards. With `pace`, frames of a file that it does not want, and
    that no other frame needs, come without their picture: it is never decoded.
    """

    def __init__(
        self, source: Source, *, since: float = 0.0, pace: Callable[[], Pace] | None = None
    ) -> None:
        self.source, self.since, self.pace = source, since, pace
        self.notes: list[str] = []
        self._frames = self._read()
        first = next(self._frames, None)
        if first is None:
            raise VideoError(f"{source.name}: no frame could be decoded{self._because()}")
        self._first: Frame | None = first
        self.width, self.height = first.width, first.height

    fps: float = 25.0
    """Nominal frames a second."""
    duration: float | None = None
    """In seconds, where the source tells."""
    seekable: bool = False
    """Whether reading can start in the middle."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self._frames.close()

    def __iter__(self) -> Iterator[Frame]:
        if self._first is not None:
            yield self._first
            self._first = None
        yield from self._frames

    def _because(self) -> str:
        return f" ({self.notes[-1]})" if self.notes else ""

    def _read(self) -> Generator[Frame]:
        if self.source.is_images:
            yield from self._read_images()
            return
        for since in (self.since, 0.0):  # from the start, where nothing earlier can be sought
            with opened(self.source) as container:
                stream = video_stream(container, self.source)
                clock = Clock(stream, self.source.fps)
                self.fps = clock.fps
                self.duration = duration_of(container, stream)
                pictures = self._pictures(container, stream, clock)
                first: Any = next(pictures, None)
                if first is None:
                    return
                clock.start(first)
                self.seekable = not self.source.is_live and first.pts is not None
                size = (first.width, first.height)
                if since == 0 or not self.seekable:
                    yield from self._frames_of(first, pictures, clock, size)
                    return
                found = self._sought(container, stream, clock)
                if found is not None:
                    yield from self._frames_of(*found, clock, size)
                    return

    def _pictures(self, container: Any, stream: Any, clock: Clock) -> Pictures:
        return Pictures(self.source, container, stream, clock, pace=self.pace, notes=self.notes)

    def _frames_of(
        self, first: Any, pictures: Pictures, clock: Clock, size: tuple[int, int]
    ) -> Iterator[Frame]:
        broken = False
        width, height = size
        for picture in chain([first], pictures):
            for pts in pictures.spared_before(picture.pts):
                yield Frame(clock.time(pts)[0], width, height, True, None)
            time, jumped = clock.time(picture.pts)
            resized = picture.width != width or picture.height != height
            if resized and not broken:
                self.notes.append(
                    f"the frame size changes from {width}x{height} to {picture.width}x"
                    f"{picture.height} at {time:.2f} s: resized to the first"
                )
            intact = not (picture.is_corrupt or jumped or resized != broken)
            yield Frame(time, width, height, intact, picture)
            broken = resized
        for pts in pictures.spared_before(None):
            yield Frame(clock.time(pts)[0], width, height, True, None)

    def _sought(self, container: Any, stream: Any, clock: Clock) -> tuple[Any, Pictures] | None:
        """Frames from a keyframe not after `since`; further back until one serves, or None."""
        run_up = RUN_UP
        while (target := self.since - run_up) > 0:
            container.seek(clock.pts(target), stream=stream, backward=True)
            pictures = self._pictures(container, stream, clock)
            first: Any = next(pictures, None)
            timed = first is not None and first.pts is not None
            if timed and clock.time(first.pts, peek=True)[0] <= self.since:
                return first, pictures
            run_up *= 4
        return None

    def _read_images(self) -> Iterator[Frame]:
        source = self.source
        if source.fps is None:
            raise VideoError(f"{source.name}: images need their frames a second: --fps 25")
        self.fps, self.seekable = source.fps, True
        paths = image_paths(source.address)
        self.duration = len(paths) / source.fps
        start = max(0, int((self.since - RUN_UP) * source.fps)) if self.since else 0
        size: tuple[int, int] | None = None
        for i in range(start, len(paths)):
            picture = self._image(paths[i])
            if picture is None:
                continue
            width, height = size or (picture.width, picture.height)
            fits = (picture.width, picture.height) == (width, height)
            if not fits:
                self.notes.append(
                    f"{paths[i].name} has {picture.width}x{picture.height} pixels, the first image "
                    f"{width}x{height}: resized"
                )
            size = (width, height)
            yield Frame(i / source.fps, width, height, fits, picture)

    def _image(self, path: Path) -> Any:
        try:
            with av.open(str(path)) as container:
                return next(container.decode(video=0), None)
        except (av.error.FFmpegError, IndexError) as error:
            self.notes.append(f"{path.name} was left out: {reason_of(error)}")
            return None
