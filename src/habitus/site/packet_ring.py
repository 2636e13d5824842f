"""The last minutes of a camera, as it sent them, and clips that are cut from them.

The packets that a camera sends are written to segment files beside being decoded, without being
encoded anew, and the oldest segments are deleted: a ring on disk. A segment is a Matroska file
that begins with a keyframe. Its name is when that arrived, in milliseconds since the epoch: the
clock that documents and events have too. It can be read while it is written, up to the last
second, and so can one whose writer was killed.
"""

import math
import time as wall
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import av
import av.error

from habitus.errors import VideoError
from habitus.files import written_whole
from habitus.video import Frame, Reader, Source, survey
from habitus.video.decoding import read_packets, video_stream
from habitus.video.opening import open_container, reason_of
from habitus.video.timeline import AHEAD, REORDERING_CODECS

# Seconds after which a segment ends with the next keyframe.
SEGMENT_SECONDS = 5.0
# Seconds and bytes that are kept at most: ten minutes of 3.5 megabits per second.
KEPT_SECONDS, KEPT_BYTES = 600.0, 256 << 20
# Seconds that a segment may be in the future, where the clock was set back.
LEEWAY = 60.0
# Milliseconds after which what was recorded is on the disk, and can be seen.
CLUSTER = 250
# Seconds to the next attempt where nothing could be written.
AGAIN = 10.0
# Seconds by which the camera's clock and arrival may differ within a segment.
LEAP = 2.0
# Seconds by which they may differ from one segment to the next that goes on without a seam.
SEAMLESS = 0.25
# Milliseconds in a segment before its first keyframe, for frames that are shown before it.
LEAD = 5000
MILLISECOND = Fraction(1, 1000)
SUFFIX = ".mkv"

BEFORE, AFTER = 5.0, 5.0
"""Seconds of a clip before and after the event."""
LONGEST = 60.0
"""Seconds of an event that its clip shows at most."""
BEHIND = 2.0
"""Seconds by which the ring on disk may be behind the camera."""
# Seconds between two segments up to which they are one after the other, whenever they arrived.
JOINT = 1.0
# Largest frame of a clip that is encoded anew.
WIDEST, HIGHEST = 1280, 720
# How clips are encoded: small files, quickly.
X264_OPTIONS = {"crf": "26", "preset": "veryfast"}
# Codecs that browsers play, with the pixel formats and the container in which they do.
PLAYABLE = {
    "h264": (frozenset(["yuv420p", "yuvj420p"]), "mp4"),
    "vp8": (frozenset(["yuv420p"]), "webm"),
    "vp9": (frozenset(["yuv420p"]), "mp4"),
    "av1": (frozenset(["yuv420p", "yuv420p10le"]), "mp4"),
}
MOVING_INDEX = {"movflags": "+faststart"}


class PacketRing:
    """The latest packets of a source in a folder; a `habitus.video.PacketTap`.

    At most so many seconds and bytes are kept. A full disk stops it, with a note, until there is
    room again; the source is decoded meanwhile. `speed` is that of a file that plays as a camera,
    as a multiple of its own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seconds: float = KEPT_SECONDS,
        most_bytes: int = KEPT_BYTES,
        speed: float = 1.0,
        clock: Callable[[], float] = wall.time,
    ) -> None:
        self.folder, self.seconds, self.most_bytes = folder, seconds, most_bytes
        self.speed, self.clock = speed, clock
        self._stream: Any = None
        self._segment: _SegmentFile | None = None
        self._notes: list[str] = []
        self._failed_at: float | None = None
        """When nothing could be written; None once something could."""

    def start(self, stream: Any, notes: list[str]) -> None:
        """Expect packets of a stream that was opened now; `notes` receives remarks."""
        self._stream, self._notes = stream, notes

    def take(self, packet: Any, time: float | None) -> None:
        """Write the next packet; see `habitus.video.PacketTap`."""
        try:
            self._write(packet, time, self.clock())
        except (OSError, av.error.FFmpegError, ValueError) as error:
            self._fail(error)

    def end(self) -> None:
        """Complete the segment."""
        try:
            self._close()
        except (OSError, av.error.FFmpegError) as error:
            self._fail(error)

    def _write(self, packet: Any, time: float | None, now: float) -> None:
        seconds = None if time is None else time / self.speed
        if packet.is_keyframe and (self._segment is None or self._segment.is_over(now)):
            start = now if self._segment is None else self._segment.next_start(seconds, now)
            self._close()
            if self._failed_at is not None and 0 <= now - self._failed_at < AGAIN:
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            prune(self.folder, now, seconds=self.seconds, most_bytes=self.most_bytes)
            self._segment = _SegmentFile(self.folder, self._stream, start)
        if self._segment is not None:
            self._segment.write(packet, seconds, now)

    def _close(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.close()
            if self._failed_at is not None:
                self._notes.append("recording goes on")
            self._failed_at = None

    def _fail(self, error: Exception) -> None:
        """Note the first of several failures; some time later, try again."""
        segment, self._segment = self._segment, None
        if segment is not None:
            with suppress(OSError, av.error.FFmpegError):
                segment.close()
        if self._failed_at is None:
            self._notes.append(f"recording stopped, there will be no clips: {reason_of(error)}")
        self._failed_at = self.clock()


class _SegmentFile:
    """A segment file that is being written."""

    def __init__(self, folder: Path, stream: Any, start: float) -> None:
        self.arrived, self.zero = start, 0.0
        """When it began, by arrival and by the clock of the source."""
        self.reorders = stream.codec_context.name in REORDERING_CODECS
        self.n_packets, self.latest = 0, -1
        # A file of ours: FFmpeg would lose errors of its own at the end.
        self.file = (folder / f"{round(1000 * start):015d}{SUFFIX}").open("wb", buffering=0)
        try:
            options = {"cluster_time_limit": str(CLUSTER), "flush_packets": "1"}
            self.container = av.open(self.file, "w", format="matroska", options=options)
            self.stream = self.container.add_stream_from_template(stream, opaque=True)
            self.stream.time_base = MILLISECOND
        except BaseException:
            self.file.close()
            raise

    def is_over(self, now: float) -> bool:
        """Return whether the next keyframe begins another segment."""
        return not 0 <= now - self.arrived < SEGMENT_SECONDS

    def next_start(self, time: float | None, now: float) -> float:
        """Return when the next segment begins: by the source, so that there is no seam."""
        start = now if time is None else self.arrived + time - self.zero
        return start if abs(start - now) <= SEAMLESS else now

    def write(self, packet: Any, time: float | None, now: float) -> None:
        """Write a copy of a packet that arrived now."""
        pts = LEAD + round(1000 * self._since_start(time, now))
        copy = av.Packet(packet)
        copy.stream, copy.time_base, copy.is_keyframe = self.stream, MILLISECOND, packet.is_keyframe
        if self.reorders:  # Matroska does not keep the time of decoding: any that increases will do
            copy.pts, copy.dts = max(pts, self.n_packets), self.n_packets
        else:
            self.latest = copy.pts = copy.dts = max(pts, self.latest + 1)
        self.n_packets += 1
        self.container.mux(copy)

    def _since_start(self, time: float | None, now: float) -> float:
        """Return the seconds since the first packet: by the source, unless arrival denies it."""
        waited = now - self.arrived
        if time is None:
            return waited
        if self.n_packets == 0:
            self.zero = time
        elif abs(time - self.zero - waited) > LEAP:
            self.zero = time - waited
        return time - self.zero

    def close(self) -> None:
        """Complete the file."""
        with self.file:
            self.container.close()


def prune(
    folder: Path, now: float, *, seconds: float = KEPT_SECONDS, most_bytes: int = KEPT_BYTES
) -> None:
    """Delete the oldest segments: those that arrived too long ago, and what there is too much of.

    Segments that are later than now were recorded before the clock was set back, and are deleted
    too.
    """
    n_bytes = 0
    for start, path in reversed(segments(folder)):
        with suppress(FileNotFoundError):  # deleted meanwhile, by the quota of a console
            n_bytes += path.stat().st_size
        if not -LEEWAY < now - start <= seconds or n_bytes > most_bytes:
            path.unlink(missing_ok=True)


def segments(folder: Path) -> list[tuple[float, Path]]:
    """Return the segments of a folder and when each began, in seconds since the epoch."""
    named = (path for path in folder.glob(f"*{SUFFIX}") if path.stem.isdecimal())
    return sorted((int(path.stem) / 1000, path) for path in named)


class Clip(NamedTuple):
    """A video of an event."""

    path: Path
    """An .mp4 or .webm file that browsers play."""
    start: float
    """Time of its first frame: in seconds since the epoch, or of the recording."""
    end: float
    n_bytes: int
    copied: bool
    """Whether it has the camera's own packets, and was not encoded anew."""


def clip_due(start: float, end: float | None) -> float:
    """Return when the clip of an event can be cut, in seconds since the epoch; None: it goes on."""
    longest = start + LONGEST
    return (longest if end is None else min(end, longest)) + AFTER + BEHIND


def cut_clip(recent: Path, start: float, end: float, output: Path) -> Clip | None:
    """Cut a clip of an event from the ring of a camera; None where nothing was recorded then.

    It lasts from the last keyframe that is 5 seconds before the event to 5 seconds after it, or
    after the first minute of it. Where the camera was away meanwhile, it has what there is.
    `output` is written whole or not at all, and its suffix becomes that of its kind; HabitusError
    if it cannot be written or encoded.
    """
    since, until = start - BEFORE, min(end, start + LONGEST) + AFTER
    try:
        return _written(_pieces(recent, since, until), output)
    except VideoError:  # its first segment may have been deleted meanwhile
        return _written(_pieces(recent, since, until), output)


def _pieces(recent: Path, since: float, until: float) -> "list[_Piece]":
    """Return what the ring of a camera has from one time to another."""
    recorded = segments(recent)
    first = max(0, bisect_right([at for at, _ in recorded], since) - 1)
    pieces: list[_Piece] = []
    for at, path in recorded[first:]:
        if at > until:
            break
        piece = _scanned(Source(str(path)), at - LEAD / 1000)
        if piece is not None:
            if pieces and abs(piece.start - pieces[-1].end) < JOINT:
                piece = piece.moved(pieces[-1].end - piece.start)
            pieces.append(piece)
    return _within(pieces, since, until)


def cut_clip_of_file(path: Path, start: float, end: float, output: Path) -> Clip | None:
    """Cut a clip of an event from a recording, as `cut_clip` does from the ring of a camera.

    Times are seconds of video.
    """
    source = Source(str(path))
    since, until = start - BEFORE, min(end, start + LONGEST) + AFTER
    piece = _found(source, since, until)
    if piece is not None and _container_of([piece]):
        return _written(_within([piece], since, until), output)
    with Reader(source, since=max(0.0, since)) as reader:
        return _encoded(_shown(reader, since, until), output)


class _Piece(NamedTuple):
    """Consecutive packets of a file, and when their frames are shown."""

    source: Source
    shift: float
    """Seconds from the timestamps of the file to the times of the clip."""
    seek: int | None
    """Timestamp from which on it is read; None for its start."""
    first: int
    """Number of its first packet in what is read, from 0."""
    times: list[float]
    """In the order of the packets."""
    keys: list[bool]
    """Whether each is a keyframe."""
    kind: tuple[object, ...]
    """Codec, pixel format, size and setup: packets of the same can be in one file."""

    @property
    def interval(self) -> float:
        """Usual number of seconds from one frame to the next."""
        shown = sorted(self.times)
        steps = [later - earlier for earlier, later in pairwise(shown)]
        return median(steps) if steps else 0.04

    @property
    def start(self) -> float:
        """When its first frame is shown: not always that of its first packet."""
        return min(self.times)

    @property
    def end(self) -> float:
        """When its last frame is over."""
        return max(self.times) + self.interval

    def moved(self, seconds: float) -> "_Piece":
        """Return it at another time."""
        times = [time + seconds for time in self.times]
        return self._replace(shift=self.shift + seconds, times=times)

    def part(self, first: int, last: int) -> "_Piece":
        """Return the packets from `first` to before `last`."""
        return self._replace(
            first=self.first + first, times=self.times[first:last], keys=self.keys[first:last]
        )

    @contextmanager
    def packets(self) -> Iterator[tuple[Any, Iterator[Any]]]:
        """Give the stream and its packets."""
        with _opened(self.source, self.seek) as (stream, packets):
            yield stream, islice(packets, self.first, self.first + len(self.times))


@contextmanager
def _opened(source: Source, seek: int | None = None) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Give the stream of a file, and its packets that are whole and have a time."""
    with open_container(source) as container:
        stream = video_stream(container, source)
        if seek is not None:
            container.seek(seek, stream=stream, backward=True)
        packets = read_packets(container, stream, source, [])
        yield stream, (packet for packet in packets if packet.size and packet.pts is not None)


def _kind(stream: Any) -> tuple[object, ...]:
    codec = stream.codec_context
    name = codec.codec.canonical_name
    return name, codec.pix_fmt, codec.width, codec.height, bytes(codec.extradata or b"")


def _scanned(
    source: Source,
    shift: float,
    *,
    seek: int | None = None,
    until: float = math.inf,
) -> _Piece | None:
    """Return the packets of a file; None where there is none, as at the start of a segment."""
    times, keys = [], []
    try:
        with _opened(source, seek) as (stream, packets):
            for packet in packets:
                times.append(shift + float(packet.pts * packet.time_base))
                keys.append(packet.is_keyframe)
                if times[-1] > until:
                    break
            kind = _kind(stream)
    except VideoError:
        return None
    return _Piece(source, shift, seek, 0, times, keys, kind) if times else None


@lru_cache(maxsize=8)
def _start_of(path: str, changed: int) -> float | None:
    """Return the first timestamp of a file in seconds; None if it cannot be sought in."""
    source = Source(path)
    if source.is_images or not survey(source).steady:
        return None
    with _opened(source) as (_, packets):
        times = (float(packet.pts * packet.time_base) for packet in islice(packets, AHEAD))
        return min(times, default=None)


def _found(source: Source, since: float, until: float) -> _Piece | None:
    """Return the packets of a recording that show a time; None if it cannot be sought in."""
    start = _start_of(source.address, Path(source.address).stat().st_mtime_ns)
    if start is None:
        return None
    with _opened(source) as (stream, _):
        base = stream.time_base
    # Twice as early as needed: some containers seek to a keyframe after the time.
    seek = int((start + max(0.0, since - 2 * BEFORE)) / base)
    return _scanned(source, -start, seek=seek, until=until)


def _within(pieces: Sequence[_Piece], since: float, until: float) -> list[_Piece]:
    """Return the packets from the last keyframe at or before a time to another time."""
    overlapping = [piece for piece in pieces if max(piece.times) >= since and piece.start <= until]
    parts = []
    for n, piece in enumerate(overlapping):
        keys = [i for i, is_key in enumerate(piece.keys) if is_key]
        if not keys:
            continue
        early = [i for i in keys if piece.times[i] <= since]
        first = early[-1] if early and n == 0 else keys[0]
        late = (i for i in range(first, len(piece.times)) if piece.times[i] > until)
        last = next(late, len(piece.times))
        if last > first:
            parts.append(piece.part(first, last))
    return parts


def _written(pieces: Sequence[_Piece], output: Path) -> Clip | None:
    """Write packets to a file: as they are where browsers play them, else encoded anew."""
    if not pieces:
        return None
    form = _container_of(pieces)
    if form:
        with suppress(av.error.FFmpegError):  # the container does not take it
            return _copied(pieces, output.with_suffix(f".{form}"), form)
    return _encoded(_decoded(pieces), output)


def _container_of(pieces: Sequence[_Piece]) -> str:
    """Return the container in which browsers play packets as they are; empty if there is none."""
    codec, pixels, *_ = pieces[0].kind
    formats, form = PLAYABLE.get(str(codec), (frozenset(), ""))
    alike = all(piece.kind == pieces[0].kind for piece in pieces)
    return form if pixels in formats and alike else ""


def _copied(pieces: Sequence[_Piece], output: Path, form: str) -> Clip:
    """Write packets as they are."""
    shown = [time for piece in pieces for time in piece.times]
    # Leading frames of the first keyframe need frames that are not there.
    start = shown[0]
    numbers = [n for n, time in enumerate(shown) if time >= start]
    ticks = _increasing([round(1000 * (shown[n] - start)) for n in numbers])
    ordered = sorted(ticks)
    # The n-th packet is decoded when the n-th frame is shown, but for the delay of reordering.
    delay = max(due - tick for due, tick in zip(ordered, ticks, strict=True))
    stamps = dict(zip(numbers, zip(ticks, ordered, strict=True), strict=True))
    step = max(1, round(1000 * pieces[0].interval))
    with written_whole(output) as temporary:
        options = MOVING_INDEX if form == "mp4" else {}
        with av.open(str(temporary), "w", format=form, container_options=options) as made:
            target, number = None, 0
            for piece in pieces:
                with piece.packets() as (stream, packets):
                    if target is None:
                        target = made.add_stream_from_template(stream, opaque=True)
                        target.time_base = MILLISECOND
                    for packet in packets:
                        if number in stamps:
                            tick, due = stamps[number]
                            copy = av.Packet(packet)
                            copy.stream, copy.time_base = target, MILLISECOND
                            copy.is_keyframe, copy.duration = packet.is_keyframe, step
                            copy.pts, copy.dts = tick, due - delay
                            made.mux(copy)
                        number += 1
        n_bytes = temporary.stat().st_size
    return Clip(output, start, start + (ordered[-1] + step) / 1000, n_bytes, True)


def _increasing(ticks: list[int]) -> list[int]:
    """Return timestamps with none twice: frames that are shown together follow each other."""
    seen: set[int] = set()
    for n, tick in enumerate(ticks):
        while tick in seen:
            tick += 1
        seen.add(tick)
        ticks[n] = tick
    return ticks


def _decoded(pieces: Sequence[_Piece]) -> Iterator[tuple[float, Any]]:
    """Yield the frames of packets with their times; what is damaged is left out."""
    for _, group in groupby(pieces, key=lambda piece: piece.kind):
        with ExitStack() as stack:
            codec: Any = None  # one for all: frames may be predicted from those of another file
            for piece in group:
                stream, packets = stack.enter_context(piece.packets())
                codec = codec or stream.codec_context
                shift = round(piece.shift / stream.time_base)
                for packet in packets:
                    packet.pts, packet.dts = packet.pts + shift, None
                    yield from _pictures(codec, packet, stream.time_base)
            yield from _pictures(codec, None, stream.time_base)


def _pictures(codec: Any, packet: Any, base: Fraction) -> Iterator[tuple[float, Any]]:
    try:
        pictures = codec.decode(packet)
    except av.error.FFmpegError:
        return
    for picture in pictures:
        if picture.pts is not None:
            yield float(picture.pts * base), picture


def _shown(reader: Reader, since: float, until: float) -> Iterator[tuple[float, Any]]:
    """Yield the frames of a recording from one time to another, as they are to be shown."""
    for frame in reader:
        if frame.time > until:
            return
        if frame.time >= since and frame.decoded is not None:
            yield frame.time, _upright(frame)


def _upright(frame: Frame) -> Any:
    if not frame.turns:
        return frame.decoded
    return av.VideoFrame.from_ndarray(frame.colours(frame.width, frame.height), format="rgb24")


def _encoded(pictures: Iterator[tuple[float, Any]], output: Path) -> Clip | None:
    """Encode frames to a file that browsers play; None if there is none."""
    first = next(pictures, None)
    if first is None:
        return None
    output, (start, picture) = output.with_suffix(".mp4"), first
    latest, step = -1, 40
    with _encoding_errors(output), written_whole(output) as temporary:
        with av.open(str(temporary), "w", format="mp4", container_options=MOVING_INDEX) as made:
            stream: Any = made.add_stream("libx264", rate=25, options=X264_OPTIONS)
            stream.width, stream.height = _size(picture.width, picture.height)
            stream.pix_fmt, stream.codec_context.thread_count = "yuv420p", 1
            stream.codec_context.time_base = stream.time_base = MILLISECOND
            while first is not None:
                time, picture = first
                tick = round(1000 * (time - start))
                if tick > latest:
                    latest, step = tick, tick - latest if latest >= 0 else step
                    small = picture.reformat(
                        stream.width, stream.height, format="yuv420p", threads=1
                    )
                    small.pts, small.time_base, small.pict_type = tick, MILLISECOND, 0
                    made.mux(stream.encode(small))
                first = next(pictures, None)
            made.mux(stream.encode())
        n_bytes = temporary.stat().st_size
    return Clip(output, start, start + (latest + step) / 1000, n_bytes, False)


def _size(width: int, height: int) -> tuple[int, int]:
    """Return the size of a clip that is encoded anew: even, and not too large.

    >>> _size(1920, 1080), _size(161, 121)
    ((1280, 720), (160, 120))
    """
    share = min(1.0, WIDEST / width, HIGHEST / height)
    return max(2, round(share * width) // 2 * 2), max(2, round(share * height) // 2 * 2)


@contextmanager
def _encoding_errors(output: Path) -> Iterator[None]:
    try:
        yield
    except av.error.FFmpegError as error:
        raise VideoError(f"cannot encode {output.name}: {reason_of(error)}") from error
