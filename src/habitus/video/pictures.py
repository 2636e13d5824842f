"""Packets of a stream -> its pictures: what is damaged is left out, what is not wanted spared."""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import av.error

from habitus.errors import VideoError
from habitus.video.clock import Clock
from habitus.video.opening import reason_of
from habitus.video.source import Source

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
