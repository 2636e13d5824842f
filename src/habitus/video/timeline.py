"""Times of frames, made sound where the timestamps of a recording are not.

A recording may be joined from others, its clock may jump, single timestamps may be wrong, and some
containers do not tell the order in which frames are shown. That is mended on the packets, before
any frame is decoded or skipped: times only increase, and they are the same whichever frames are
decoded.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, pairwise, takewhile
from statistics import median
from typing import Any

from habitus.rarity import counted

# Codecs that may store frames in another order than they are shown in.
REORDERING_CODECS = frozenset(
    ["cavs", "h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4", "rv40", "vc1", "vvc", "wmv3"]
)
# Frames that may be stored before a frame and shown after it: the most that H.264 and HEVC allow.
MOST_REORDERED = 16
# Codecs whose order AVI does not tell: it has no timestamps, and FFmpeg makes up none of use.
UNORDERED_IN_AVI = frozenset(["h264", "hevc", "vvc"])
# Packets that are read on to tell a jump of the clock from a single wrong timestamp.
AHEAD = 16
# Seconds from one frame to the next that are not remarked on.
SHORT_GAP = 1.0
# Seconds that a recording may have paused for: after a longer gap, the clock is not believed.
LONGEST_PAUSE = 86_400.0
# Steps between timestamps from which the frame rate is measured, the rates that may be found, and
# the factor by which one that is declared may differ.
FEWEST_STEPS, SLOWEST, FASTEST, OFF_BY = 4, 0.1, 1000.0, 3.0
# Timestamps of MPEG streams start again at 0 after so many ticks, which are 26.5 hours.
MPEG_FORMATS, MPEG_CYCLE = frozenset(["mpeg", "mpegts"]), 1 << 33


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
        self.rates = [float(rate) for rate in (stream.average_rate, stream.guessed_rate) if rate]
        self.given, self.fps = fps is not None, fps or next(iter(self.rates), 25.0)
        self.base = stream.time_base or Fraction(1, 1000)
        self._ratio = self.base.as_integer_ratio()
        self.ignored = fps is not None and stream.average_rate is None
        """Whether the stream's own times are not to be used."""
        self.zero, self.last = 0, -1.0
        self.started, self.interlaced = False, False

    def start(self, picture: Any) -> None:
        """Set time zero to this picture."""
        self.started, self.interlaced = True, picture.interlaced_frame
        self.zero = picture.pts

    def measure(self, stamps: Sequence[int]) -> None:
        """Choose the frame rate that fits timestamps: some containers declare a wrong one."""
        steps = [later - earlier for earlier, later in pairwise(sorted(set(stamps)))]
        measured = float(1 / (median(steps) * self.base)) if len(steps) >= FEWEST_STEPS else 0.0
        if not self.given and SLOWEST <= measured <= FASTEST:
            likely = (rate for rate in self.rates if 1 / OFF_BY < rate / measured < OFF_BY)
            self.fps = next(likely, measured)

    def ticks(self, seconds: float) -> int:
        """Return a length of time in the unit of timestamps."""
        return round(seconds / self.base)

    def seconds(self, ticks: int) -> float:
        """Return a length of time in seconds: `float(ticks * base)`, without fractions."""
        numerator, denominator = self._ratio
        return ticks * numerator / denominator

    def pts(self, time: float) -> int:
        """Return the presentation timestamp of a time."""
        return self.zero + int(time / self.base)

    def at(self, pts: int) -> float:
        """Return the time of a presentation timestamp."""
        numerator, denominator = self._ratio  # `seconds`, without the call: this is for every frame
        return (pts - self.zero) * numerator / denominator

    def time(self, pts: int) -> float:
        """Return the time of the next frame, which is after that of the frame before."""
        time = self.at(pts)
        if time <= self.last:
            time = self.last + float(self.base)
        self.last = time
        return time


class Timeline:
    """Presentation timestamps of one pass over a stream, mended on its packets.

    Parameters
    ----------
    container, stream
        PyAV's container, and its video stream.
    clock
        The unit of timestamps, and the frame rate.
    ahead
        Number of packets to read before the first is given, to see whether any has a timestamp.

    Attributes
    ----------
    ordered
        Whether packets tell when their frames are shown; None before the first packet. If not, the
        frames are counted as the decoder gives them: none may be skipped.
    steady
        Whether all timestamps that are used are those of the stream, so that it can be sought in.
    first, front
        Earliest and latest presentation timestamp so far.
    n_mended
        Number of packets so far that jump, or whose timestamp is estimated.
    """

    def __init__(self, container: Any, stream: Any, clock: StreamClock, *, ahead: int) -> None:
        codec, name = stream.codec_context, container.format.name
        self.clock, self.ahead = clock, ahead
        untold = name == "avi" and codec.name in UNORDERED_IN_AVI
        self.by_storage = untold and codec.reorder_depth == 0
        self.ordered: bool | None = None
        if clock.ignored or (untold and not self.by_storage):
            self.ordered = False
        self.reorders = codec.name in REORDERING_CODECS
        self.depth = codec.reorder_depth if self.reorders else 0
        self.interval, self.window, self.near = 1, 0, 0
        self.cycle = MPEG_CYCLE if name in MPEG_FORMATS else None
        self.first = self.front = self.n_mended = 0
        self.steady = True
        self._started, self._timed = False, False
        self._plain = False
        """Whether timestamps are used as they are: they neither jumped nor start again at 0."""
        self._offset = self._shown = 0
        self._latest_dts: int | None = None
        self._recent: deque[int] = deque(maxlen=3 * MOST_REORDERED)
        self._breaks: deque[int] = deque()
        self._gaps, self._jumps = _Jumps(), _Jumps()
        self._n_wrong = 0
        self._counted = _FrameOrder(1)

    @property
    def duration(self) -> float:
        """Seconds of the recording so far."""
        if not self.ordered:
            return self._counted.n_stored / self.clock.fps
        return self.clock.seconds(self.front + self.interval - self.first)

    def restamped(self, packets: Iterator[Any]) -> Iterator[Any]:
        """Yield the packets in order, with timestamps that make sense.

        A packet waits for those after it only where its own timestamp is in doubt.
        """
        if self.by_storage:
            packets = map(_stamped_as_stored, packets)
        held: deque[Any] = deque()
        while (packet := held.popleft() if held else next(packets, None)) is not None:
            # An empty one only tells the decoder that this is the end.
            if packet.size and not (self._plain and self._follows(packet)):
                self._restamp(packet, held, packets)
            yield packet

    def _follows(self, packet: Any) -> bool:
        """Take a packet that needs no change, as nearly all do; False where that is not plain.

        All else of this class would give the same, in four times the time.
        """
        pts, dts, latest = packet.pts, packet.dts, self._latest_dts
        if pts is None or dts is None or latest is None or not latest < dts <= pts:
            return False
        step = pts - self.front
        if step > self.near or (step <= 0 and (step <= -self.window or pts in self._recent)):
            return False
        self._latest_dts = dts
        self._recent.append(pts)
        if step > 0:
            self.front = pts
        elif pts < self.first:
            self.first = pts
        return True

    def _restamp(self, packet: Any, following: deque[Any], packets: Iterator[Any]) -> None:
        """Give a packet the timestamp that it should have.

        `following` are the packets after it that were read already; where more are needed, they are
        taken from `packets`.
        """
        if not self._started:
            following.extend(islice(packets, self.ahead - len(following)))
            self._start([packet, *following])
        if not self.ordered:
            packet.pts = self._counted.stored(packet.dts if self._timed else None)
            return
        given = packet.pts
        if (pts := self._continued(packet)) is not None:
            packet.pts = pts
            self._keep_dts(packet, given)
        else:
            following.extend(islice(packets, max(0, AHEAD - len(following))))
            packet.pts = pts = self._mended(packet, following)
        self._recent.append(pts)
        self.first, self.front = min(self.first, pts), max(self.front, pts)

    def _mended(self, packet: Any, following: Sequence[Any]) -> int:
        """Return a timestamp for a packet whose own does not follow those before it."""
        given = packet.pts
        self.n_mended += 1
        if given is None or not self._is_jump(packet, following):
            self._n_wrong += given is not None
            self.steady = False
            return self._estimated(following)
        packet.pts = self._after_jump(packet, following)
        self._keep_dts(packet, given)
        return int(packet.pts)

    def _start(self, packets: Sequence[Any]) -> None:
        """See whether packets have timestamps, and start with the first that is known."""
        timed = [(n, packet.pts) for n, packet in enumerate(packets) if packet.pts is not None]
        self.clock.measure([pts for _, pts in timed])
        self.interval = max(1, self.clock.ticks(1 / self.clock.fps))
        self.window = (MOST_REORDERED + 1) * self.interval if self.reorders else 0
        self.near = max(self.clock.ticks(SHORT_GAP), 2 * self.window)
        self._counted = _FrameOrder(self.interval)
        if self.ordered is None:
            self.ordered = bool(timed)
        self.steady, self._started = self.ordered, True
        self._timed = not self.clock.ignored and packets[0].dts is not None
        self._plain = self.ordered and self.cycle is None
        if self.ordered:
            n, pts = timed[0]
            self.first = pts - n * self.interval
            self.front = self.first - self.interval

    def _keep_dts(self, packet: Any, given: int) -> None:
        self.steady &= packet.pts == given
        if packet.dts is not None and packet.dts <= given:
            self._latest_dts = packet.dts + packet.pts - given

    def _difference(self, later: int, earlier: int) -> int:
        """Return the ticks between two timestamps, which may start again at 0."""
        difference = later - earlier
        if self.cycle is not None:
            difference = (difference + self.cycle // 2) % self.cycle - self.cycle // 2
        return difference

    def _step(self, packet: Any, front: int) -> int:
        return self._difference(packet.pts + self._offset, front)

    def _continued(self, packet: Any) -> int | None:
        """Return the timestamp of a packet; None where it may not follow those before it."""
        if packet.pts is None:
            return None
        step = self._step(packet, self.front)
        if not self._fits(packet, step):
            return None
        pts = self.front + step
        return None if step <= 0 and pts in self._recent else pts

    def _fits(self, packet: Any, step: int) -> bool:
        """Return whether a step from the latest timestamp is short, and back only by reordering."""
        earliest, dts = -self.window, packet.dts
        if dts is not None and self._latest_dts is not None:
            if self._difference(dts + self._offset, self._latest_dts) <= 0:
                return False
        elif packet.is_keyframe:
            earliest = 0
        return earliest < step <= self.near

    def _fitting(self, packets: Sequence[Any]) -> Iterator[int]:
        """Yield the steps from the latest timestamp to those that are near it."""
        for packet in packets:
            if packet.pts is not None:
                step = self._step(packet, self.front)
                if self._fits(packet, step):
                    yield step

    def _is_jump(self, packet: Any, following: Sequence[Any]) -> bool:
        """Return whether more of the packets after this one go on from it than from before it."""
        timed = [other for other in following if other.pts is not None]
        here = packet.pts + self._offset
        along = sum(-self.window < self._step(other, here) <= self.near for other in timed)
        back = list(self._fitting(following))
        if along == len(back) > 0 and packet.is_keyframe and self.depth:  # one frame overlaps
            return min((step for step in back if step > 0), default=0) < 1.5 * self.interval
        return along > len(back)

    def _after_jump(self, packet: Any, following: Sequence[Any]) -> int:
        """Return the timestamp of the first packet after a jump: after a pause, or at once."""
        jump = self._step(packet, self.front)
        here = packet.pts + self._offset
        others = [other for other in islice(following, self.depth) if other.pts is not None]
        steps = [self._step(other, here) for other in others]
        lead = min([0, *(step for step in steps if step > -self.window)])
        paused = self.near < jump <= self.clock.ticks(LONGEST_PAUSE)
        shift = 0 if paused else self.interval - jump - lead
        self._offset += shift
        self._plain = False
        pts = self.front + jump + shift
        self._breaks.append(pts + lead)
        found = self._gaps if paused else self._jumps
        found.add(pts + lead, self.clock.seconds(jump - self.interval))
        return pts

    def _estimated(self, following: Sequence[Any]) -> int:
        """Return a timestamp where one is missing among those around it."""
        n_missing = 1 + sum(1 for _ in takewhile(lambda other: other.pts is None, following))
        stamps = [self.front + step for step in self._fitting(following)]
        if self.depth:
            around = {self.front, *stamps, *self._recent}
            stamps, least = sorted(pts for pts in around if pts > self.front - self.window), 1.5
        else:
            stamps, least = [self.front, *(pts for pts in stamps if pts > self.front)][:2], 0.0
        for low, high in pairwise(stamps):
            if high - low > least * self.interval:
                return low + max(1, (high - low) // (n_missing + 1))
        return stamps[-1] + self.interval

    def shown(self, picture: Any) -> int:
        """Return the presentation timestamp of the next decoded picture."""
        if not self.ordered:
            return self._counted.shown(picture.pts, picture.key_frame)
        self._shown = self._shown + self.interval if picture.pts is None else picture.pts
        return self._shown

    def is_broken(self, pts: int) -> bool:
        """Return whether the clock jumped between the frame before and that of a timestamp."""
        broken = False
        while self._breaks and self._breaks[0] <= pts:
            self._breaks.popleft()
            broken = True
        return broken

    def notes(self) -> Iterator[str]:
        """Yield what was mended, for a person."""
        for jumps, meaning in ((self._gaps, "a gap"), (self._jumps, "taken for no gap")):
            if jumps.n:
                more = f" and {counted(jumps.n - 1, 'more time')}" if jumps.n > 1 else ""
                at = f"at {self.clock.at(jumps.pts):.2f} s"
                yield f"the time jumps by {jumps.seconds:+.7g} s {at}{more}: {meaning}"
        if self._n_wrong:
            frames = counted(self._n_wrong, "frame")
            yield f"{frames} had a wrong timestamp: put between the others"


def _stamped_as_stored(packet: Any) -> Any:
    packet.pts = packet.dts
    return packet


@dataclass
class _Jumps:
    """The first of several jumps of a clock, and their number."""

    n: int = 0
    pts: int = 0
    """Timestamp after the first."""
    seconds: float = 0.0

    def add(self, pts: int, seconds: float) -> None:
        """Add a jump."""
        if not self.n:
            self.pts, self.seconds = pts, seconds
        self.n += 1


class _FrameOrder:
    """Frames of a stream that does not tell when they are shown: the n-th shown has the n-th time.

    At a keyframe the count is right again where frames before it were lost.
    """

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.n_stored, self.n_shown = 0, 0
        self.times: dict[int, int] = {}
        self.latest = self.time = -interval
        """Timestamps of the packet stored last, and of the frame shown last."""
        self.recent: deque[int] = deque(maxlen=2 * MOST_REORDERED)

    def stored(self, dts: int | None) -> int:
        """Return the number of the next packet, by which its frame will be known."""
        self.latest = self.latest + self.interval if dts is None else dts
        self.times[self.n_stored] = self.latest
        self.n_stored += 1
        return self.n_stored - 1

    def shown(self, number: int | None, is_key: bool) -> int:
        """Return the timestamp of the next frame that is shown, by the number of its packet."""
        if number is not None:
            if is_key:  # all frames stored before it were shown, and those that lead up to it
                leading = sum(other > number for other in self.recent)
                self.n_shown = max(self.n_shown, number + leading)
            self.recent.append(number)
        time = self.times.get(self.n_shown, self.time + self.interval)
        for passed in [n for n in islice(self.times, MOST_REORDERED) if n <= self.n_shown]:
            del self.times[passed]
        self.time, self.n_shown = time, self.n_shown + 1
        return time
