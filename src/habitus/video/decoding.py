"""One stream of video, decoded: opening it, the times of its frames, and its pictures.

Damaged packets are skipped and noted. Frames that the caller does not need, and that no other frame
is predicted from, are not decoded at all.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import av.error

from habitus.errors import VideoError
from habitus.rarity import counted
from habitus.video.opening import open_container, reason_of, silence_of
from habitus.video.source import Source, image_paths
from habitus.video.timeline import AHEAD, MOST_REORDERED, StreamClock, Timeline

# Codecs in which a frame that no other is predicted from can be skipped without side effects.
SKIPPING_CODECS = frozenset(["h264", "hevc", "mpeg2video", "mpeg4"])
# Packets of a file that are read ahead to learn the times of their frames.
READ_AHEAD = 64
# FFmpeg's mark of formats that are pictures one after the other, such as MJPEG over HTTP.
NO_TIMESTAMPS = 0x80
# Times in a row that reading may fail before it ends.
MOST_FAILURES = 16

FrameChoice = Callable[[float], bool]
"""Whether the frame of a time is needed; called once for each frame, in the order of time."""


class PacketTap(Protocol):
    """Takes the packets of a source besides its decoder, such as to record them; never raises."""

    def start(self, stream: Any, notes: list[str]) -> None:
        """Expect packets of a stream that was opened now; `notes` receives remarks."""
        ...

    def take(self, packet: Any, time: float | None) -> None:
        """Take the next packet before it is decoded, and leave it as it is.

        `time` is when its frame is shown, in seconds by the clock of the source; None where that
        has none.
        """
        ...

    def end(self) -> None:
        """Expect no further packets."""
        ...


def video_stream(container: Any, source: Source) -> Any:
    """Return the first video stream of a container, set up for decoding.

    Raises
    ------
    VideoError
        If there is none.
    """
    streams = container.streams.video
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
    return stream


def read_packets(container: Any, stream: Any, source: Source, notes: list[str]) -> Iterator[Any]:
    """Yield the packets of a stream, an empty one at its end; damage is skipped and noted.

    Raises
    ------
    VideoError
        If the source falls silent.
    """
    failures = 0
    while failures < MOST_FAILURES:
        try:
            for packet in container.demux(stream):
                failures = 0
                yield packet
            return
        except av.error.ExitError:
            raise silence_of(source) from None
        except (av.error.EOFError, IndexError):  # PyAV, at the end, where damage made up a stream
            return
        except av.error.FFmpegError as error:
            failures += 1
            reason = reason_of(error)
    notes.append(f"reading ended early: {reason}")


class Survey(NamedTuple):
    """What the packets of a recording tell, whatever its header declares."""

    duration: float
    """In seconds."""
    steady: bool
    """Whether all its timestamps can be used as they are, so that it can be sought in."""


def survey(source: Source, *, until: float = math.inf) -> Survey:
    """Read the packets of a file, without decoding them: what its header declares may be wrong.

    Parameters
    ----------
    source
        A file, or images.
    until
        Time in seconds at which to stop.

    Raises
    ------
    VideoError
        If it cannot be opened, or has no video.
    """
    if source.is_images:
        return Survey(len(image_paths(source.address)) / (source.fps or 25.0), steady=True)
    with open_container(source) as container:
        stream = video_stream(container, source)
        clock = StreamClock(stream, source.fps)
        timeline = Timeline(container, stream, clock, ahead=AHEAD)
        for _ in timeline.restamped(read_packets(container, stream, source, [])):
            if until < math.inf and timeline.duration > until:
                break
        return Survey(timeline.duration, bool(timeline.steady))


def count_packets(source: Source) -> int:
    """Return the number of packets of a file, one for each frame, without decoding them.

    Raises
    ------
    VideoError
        If it cannot be opened, or has no video.
    """
    if source.is_images:
        return len(image_paths(source.address))
    with open_container(source) as container:
        stream = video_stream(container, source)
        return sum(packet.size > 0 for packet in read_packets(container, stream, source, []))


# What a picture begins with that later ones need, by codec: the head of a sequence.
SEQUENCE_HEADS = {
    b"\x00\x00\x01\xb3": "mpeg2video",
    b"\x00\x00\x01\xb0": "mpeg4",
    b"\x00\x00\x01\x40\x01": "hevc",
    b"\x00\x00\x01\x67": "h264",
    b"\x00\x00\x01\x27": "h264",
}
# Bytes at the beginning of a packet in which that stands.
HEAD = 64


def codec_begun(packet: Any) -> str | None:
    """Return the codec of a packet of a transport stream that begins a sequence, else None."""
    head = bytes(memoryview(packet)[:HEAD]) if packet.size else b""
    places = {head.find(mark): name for mark, name in SEQUENCE_HEADS.items() if mark in head}
    return places[min(places)] if places else None


class PictureDecoder:
    """Iterator over the decoded pictures of a stream, each with a timestamp.

    Parameters
    ----------
    source, container, stream, clock
        The opened source.
    pace
        Makes a FrameChoice. Frames of files that it rejects are skipped where the codec allows it;
        `skipped_before` returns their timestamps.
    notes
        Receives notes about damage.
    tap
        Given each packet, where there is one.
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
        tap: PacketTap | None = None,
    ) -> None:
        self.source, self.codec, self.clock, self.notes = source, stream.codec_context, clock, notes
        self._may_change = container.format.name == "mpegts"
        self.tap, self.timed = tap, not container.format.flags & NO_TIMESTAMPS
        ahead = 0 if source.is_live else AHEAD
        self.timeline = Timeline(container, stream, clock, ahead=ahead)
        self._skipped: deque[int] = deque()
        self._to_skip: set[int] = set()
        self._damaged = False
        """Whether something was damaged since the last keyframe: nothing is skipped then."""
        able = not (source.is_live or source.fast) and self.codec.name in SKIPPING_CODECS
        self._needed = pace() if able and pace is not None else None
        packets = self.timeline.restamped(read_packets(container, stream, source, notes))
        self._pictures = self._decode(chain.from_iterable(self._chosen(packets)))

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
        for packet in packets:
            if self.tap is not None and packet.size:
                self.tap.take(packet, self._time(packet))
            self._damaged = (self._damaged and not packet.is_keyframe) or packet.is_corrupt
            self._set_skipping(packet.pts)
            try:
                before = self._of_codec_before(packet) if self._may_change else []
                pictures = before + self.codec.decode(packet)
            except av.error.EOFError:
                break
            except av.error.FFmpegError:
                damaged += 1
                self._damaged = True
                self._withdraw(packet.pts)
                continue
            for picture in pictures:
                self._damaged |= picture.is_corrupt
                picture.pts = self.timeline.shown(picture)
                yield picture
        if damaged:
            were = "was" if damaged == 1 else "were"
            self.notes.append(f"{counted(damaged, 'damaged packet')} {were} skipped")
        self.notes += self.timeline.notes()

    def _of_codec_before(self, packet: Any) -> list[Any]:
        """Change the decoder where another codec begins; return the last pictures before that.

        FFmpeg decodes all of a stream by the codec that it begins with.
        """
        found = codec_begun(packet)
        if found is None or found == self.codec.name:
            return []
        self.notes.append(
            f"the codec changes from {self.codec.name} to {found} at "
            f"{self.clock.at(packet.pts):.2f} s"
        )
        pictures, options = self.codec.decode(None), self.codec.options
        self.codec = av.CodecContext.create(found, "r")
        self.codec.thread_count, self.codec.options = 1, options
        return list(pictures)

    def _time(self, packet: Any) -> float | None:
        """Return when a frame is shown by the clock of the source, where that has one."""
        known = self.timed and self.timeline.ordered
        return float(packet.pts * self.clock.base) if known else None

    def _set_skipping(self, pts: int | None) -> None:
        """Tell the decoder whether to skip the frame of the next packet."""
        skip = self.source.fast and self.timeline.ordered
        if pts in self._to_skip:
            self._to_skip.remove(pts)
            skip = not self._damaged
            if self._damaged:
                self._withdraw(pts)
        self.codec.skip_frame = "NONREF" if skip else "DEFAULT"

    def _withdraw(self, pts: int | None) -> None:
        """Do not count a frame as skipped."""
        if pts is not None and pts in self._skipped:
            self._skipped.remove(pts)

    def _chosen(self, packets: Iterator[Any]) -> Iterator[list[Any]]:
        """Yield the packets in order, once it is known which of their frames are needed."""
        held = list(islice(packets, 1))
        if self._needed is None or not self.timeline.ordered:
            yield held
            yield from ([packet] for packet in packets)
            return
        schedule = _FrameSchedule(self.clock, self._needed)
        ended = False
        doubtful = deque([0], maxlen=3)  # nothing is skipped near timestamps that are not exact
        while not ended:
            n_wanted = max(1, READ_AHEAD - len(held)) if self.clock.started else 1
            more = list(islice(packets, n_wanted))
            held += more
            ended = len(more) < n_wanted
            n, to_skip = schedule.decided(held, complete=ended)
            doubtful.append(self.timeline.n_mended)
            if doubtful[0] == doubtful[-1]:
                self._skipped.extend(to_skip)
                self._to_skip.update(to_skip)
            yield held[:n]
            del held[:n]


class _FrameSchedule:
    """Decides from the timestamps of packets which frames are needed.

    A packet may precede those of earlier frames that are predicted from it, but of only so many:
    among the timestamps so far, all but the latest few are in their final order.
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
        self.times.sort()
        n = len(self.times) if complete else max(0, len(self.times) - MOST_REORDERED)
        until = self.times[n - 1] if n else -math.inf
        unneeded = [pts for pts in self.times[:n] if not self.needed(self.clock.at(pts))]
        del self.times[:n]
        later = (i for i, p in enumerate(held) if p.pts is not None and p.pts > until)
        n_decided = len(held) if complete else next(later, len(held))
        self.n_seen = len(held) - n_decided
        return n_decided, [pts for pts in unneeded if pts not in self.too_late]
