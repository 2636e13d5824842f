"""One stream of video, decoded: opening it, the times of its frames, and its pictures.

Damaged packets are skipped and noted. Frames that the caller does not need, and that no other frame
is predicted from, are not decoded at all.
"""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import av
import av.error

from habitus.errors import VideoError
from habitus.video.source import Source

# Codecs in which a frame that no other is predicted from can be skipped without side effects.
SKIPPING_CODECS = frozenset(["h264", "hevc", "mpeg2video", "mpeg4"])
# Packets of a file that are read ahead to learn the times of their frames.
READ_AHEAD = 64

FrameChoice = Callable[[float], bool]
"""Whether the frame of a time is needed; called once for each frame, in the order of time."""


@contextmanager
def open_container(source: Source) -> Iterator[Any]:
    """Open a source with PyAV, and close it at the end of the block.

    Parameters
    ----------
    source
        Anything but a folder or pattern of images.

    Yields
    ------
    av.container.InputContainer
        The opened source.

    Raises
    ------
    VideoError
        If it cannot be opened.
    """
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
    """Return the first video stream of a container, set up for decoding.

    Raises
    ------
    VideoError
        If there is none.
    """
    streams = container.streams.video
    if container.format.name == "tty":  # FFmpeg renders any text as video
        raise VideoError(f"{source.name}: text, not video")
    if not streams:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise VideoError(f"{source.name}: contains no video, only {kinds}")
    stream = streams[0]
    if stream.codec_context is None:
        raise VideoError(f"{source.name}: truncated before the first frame")
    stream.codec_context.thread_count = 1  # parallel work is by parts of the video
    stream.thread_type = "NONE"
    # No loop filter on frames that no other is predicted from: saves a tenth of the time, and the
    # errors do not accumulate.
    stream.codec_context.options = {"skip_loop_filter": "all" if source.fast else "noref"}
    if source.fast:
        stream.codec_context.skip_frame = "NONREF"
    return stream


def duration_of(container: Any, stream: Any) -> float | None:
    """Return the duration in seconds, or None where neither stream nor container has one."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def reason_of(error: Exception) -> str:
    """Return FFmpeg's description of an error, in one line."""
    return str(getattr(error, "strerror", None) or error).split("\n")[0]


class StreamClock:
    """Times of a stream's frames in seconds since the first; they always increase.

    Parameters
    ----------
    stream
        PyAV's video stream.
    fps
        Frames per second, used where the stream has no times of its own.
    """

    def __init__(self, stream: Any, fps: float | None) -> None:
        rate = stream.average_rate or stream.guessed_rate
        self.fps = float(fps or rate or 25)
        base = stream.time_base or Fraction(1, 1000)
        self.ticks, self.per = base.numerator, base.denominator
        self.ignored = fps is not None and stream.average_rate is None
        self.zero, self.last, self.offset, self.n = 0.0, -1.0, 0.0, 0
        self.started, self.interlaced = False, False

    def start(self, picture: Any) -> None:
        """Set time zero to this picture."""
        self.started, self.interlaced = True, picture.interlaced_frame
        if picture.pts is not None:
            self.zero = picture.pts * self.ticks / self.per

    def pts(self, time: float) -> int:
        """Return the presentation timestamp of a time."""
        return int((time + self.zero) * self.per / self.ticks)

    def at(self, pts: int) -> float:
        """Return the time of a presentation timestamp."""
        return pts * self.ticks / self.per - self.zero + self.offset

    def time(self, pts: int | None, *, peek: bool = False) -> tuple[float, bool]:
        """Return the time of the next frame, and whether its timestamp jumped back.

        With `peek`, the clock does not advance.
        """
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


class PictureDecoder:
    """Iterator over the decoded pictures of a stream.

    Parameters
    ----------
    source, container, stream, clock
        The opened source.
    pace
        Makes a FrameChoice. Frames of files that it rejects are skipped where the codec allows it;
        `skipped_before` returns their timestamps.
    notes
        Receives notes about damaged packets.
    """

    def __init__(
        self,
        source: Source,
        container: Any,
        stream: Any,
        clock: StreamClock,
        *,
        pace: Callable[[], FrameChoice] | None,
        notes: list[str],
    ) -> None:
        self.source, self.codec, self.clock, self.notes = source, stream.codec_context, clock, notes
        self._skipped: deque[int] = deque()
        self._to_skip: set[int] = set()
        packets = container.demux(stream)
        able = not (source.is_live or source.fast or clock.ignored)
        self._skipping = able and self.codec.name in SKIPPING_CODECS and pace is not None
        if self._skipping and pace:
            packets = chain.from_iterable(self._read_ahead(packets, pace()))
        self._pictures = self._decode(packets)

    def __iter__(self) -> Iterator[Any]:
        return self._pictures

    def __next__(self) -> Any:
        return next(self._pictures)

    def skipped_before(self, pts: int | None) -> Iterator[int]:
        """Yield the timestamps of skipped frames before `pts`, or of all that remain for None."""
        while self._skipped and (pts is None or self._skipped[0] <= pts):
            skipped = self._skipped.popleft()
            if skipped != pts:
                yield skipped

    def _decode(self, packets: Iterator[Any]) -> Iterator[Any]:
        damaged = 0
        while True:
            packet = None
            try:
                packet = next(packets, None)
                if packet is None:
                    break
                if self._skipping:
                    self._set_skipping(packet.pts)
                yield from packet.decode()
            except av.error.EOFError:
                break
            except av.error.ExitError:
                raise VideoError(
                    f"{self.source.name}: no data for {self.source.timeout:g} s"
                ) from None
            except av.error.FFmpegError as error:
                damaged += 1
                if packet is not None and packet.pts in self._skipped:
                    self._skipped.remove(packet.pts)
                if not isinstance(error, av.error.InvalidDataError) and damaged > 3:
                    self.notes.append(f"reading ended early: {reason_of(error)}")
                    break
        if damaged:
            self.notes.append(f"{damaged} damaged packet(s) were skipped")

    def _set_skipping(self, pts: int | None) -> None:
        """Tell the decoder whether to skip the frame of the next packet."""
        if pts in self._to_skip:
            self._to_skip.remove(pts)
            self.codec.skip_frame = "NONREF"
        else:
            self.codec.skip_frame = "DEFAULT"

    def _read_ahead(self, packets: Iterator[Any], needed: FrameChoice) -> Iterator[list[Any]]:
        """Yield the packets in order, once it is known which of their frames are needed."""
        held: list[Any] = []
        schedule = _FrameSchedule(self.clock, needed)
        error, ended = None, False
        while not ended:
            try:
                ended = True
                for packet in packets:
                    held.append(packet)
                    if len(held) >= READ_AHEAD or not self.clock.started:
                        ended = False
                        break
            except av.error.FFmpegError as found:
                error = found
            n, to_skip = schedule.decided(held, complete=ended)
            self._skipped.extend(to_skip)
            self._to_skip.update(to_skip)
            yield held[:n]
            del held[:n]
        if error is not None:
            raise error


class _FrameSchedule:
    """Decides from the timestamps of packets which frames are needed.

    A packet may precede those of earlier frames that are predicted from it. But no frame is shown
    before its packet is decoded: up to the latest decoding time, all presentation times are known.
    """

    def __init__(self, clock: StreamClock, needed: FrameChoice) -> None:
        self.clock, self.needed = clock, needed
        self.times: list[int] = []
        self.too_late: set[int] = set()
        self.n_seen = 0

    def decided(self, held: list[Any], *, complete: bool) -> tuple[int, list[int]]:
        """Return how many packets can be decoded now, and the timestamps of frames to skip."""
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
        unneeded = [pts for pts in self.times[:n] if not self.needed(self.clock.at(pts))]
        del self.times[:n]
        later = (i for i, p in enumerate(held) if p.pts is not None and p.pts > until)
        n_decided = next(later, len(held))
        self.n_seen = len(held) - n_decided
        return n_decided, [pts for pts in unneeded if pts not in self.too_late]
