"""When each frame of a stream is shown."""

from fractions import Fraction
from typing import Any


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
