"""Whether a live camera can be judged: it shows the model's scene, and is there at all."""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np

from habitus.arrays import Image
from habitus.corpus.documents import Condition
from habitus.corpus.looks import LEAST_LIKENESS, median_picture
from habitus.ingest.clips import Document
from habitus.ingest.condition import ConditionMonitor
from habitus.scene.camera_check import CameraCheck

N_STILLS = 5
"""Stills of a live source whose median is judged at last, if its first ones are not alike."""
FIRST_REPORT = 10.0
"""Seconds after which it is an event that nothing can be judged."""
REPORT_EVERY = 3600.0
"""Seconds from then on from one such event to the next."""
SLOW_DOCUMENTS = 5
"""Documents in a row of less than two frames after which a camera is too slow."""
FAULTS = {
    "moved": "the camera was moved or shows another scene than the model's",
    "covered": "the camera is covered, or too dark",
    "frozen": "the picture is frozen",
    "slow": "the camera gives fewer than two frames per document",
    "resized": "the picture has another size than the model's",
    "absent": "there is no picture from the camera",
}
"""Why nothing can be judged, in words."""


@dataclass(frozen=True)
class CameraFault:
    """Nothing can be judged, since when and why; reported again every hour, and when it is over.

    Examples
    --------
    >>> CameraFault("later.mp4", None, 60.0, 12.0, "covered").explanation
    'nothing has been judged for 12 s: the camera is covered, or too dark'
    """

    source: str
    """The stream or video."""
    clock: str | None
    """Date and time since when (ISO 8601); None where nobody knows, as of a file."""
    start: float
    """The same in seconds since the first document, as the times of events."""
    seconds: float
    """For how long."""
    condition: str
    """The latest reason: a key of `FAULTS`."""
    over: bool = False
    """Whether documents are judged again."""

    @property
    def explanation(self) -> str:
        """The fault in words."""
        if self.over:
            return f"judged again, after {self.seconds:.0f} s in which nothing was"
        return f"nothing has been judged for {self.seconds:.0f} s: {FAULTS[self.condition]}"

    def line(self) -> str:
        """Return the fault as one line of JSON Lines."""
        values = {"habitus": "fault", "version": 1, **asdict(self)}
        return json.dumps(values | {"explanation": self.explanation}, allow_nan=False)


class FaultReports:
    """Says how long nothing could be judged, after a while, every hour, and at the end.

    Parameters
    ----------
    source
        Name of the camera.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.since: float | None = None
        self.clock: str | None = None
        self.condition, self.next_at = "", 0.0
        self.n_slow = 0
        """Documents in a row that are too short of frames to see motion."""

    def named(self, condition: Condition, n_frames: int) -> str | None:
        """Return what stands against judging the next document, a key of `FAULTS`, if anything."""
        self.n_slow = self.n_slow + 1 if n_frames < 2 else 0
        if condition is not Condition.USABLE:
            return condition.name.lower()
        return "slow" if self.n_slow >= SLOW_DOCUMENTS else None

    def take(self, condition: str | None, at: float, epoch: float | None) -> Iterator[CameraFault]:
        """Take the condition of now, None if all is well; yield a fault where one is due.

        Parameters
        ----------
        condition
            A key of `FAULTS`, or None.
        at
            Seconds since the first document.
        epoch
            The same in seconds since the epoch; None where nobody knows.
        """
        if self.since is None:
            if condition is None:
                return
            self.since, self.next_at = at, at + FIRST_REPORT
            self.clock = None if epoch is None else clock_of(epoch)
        if condition is None:
            if self.next_at > self.since + FIRST_REPORT:
                yield self._fault(at, over=True)
            self.since = None
            return
        self.condition = condition
        if at >= self.next_at:
            self.next_at = at + REPORT_EVERY
            yield self._fault(at, over=False)

    def _fault(self, at: float, *, over: bool) -> CameraFault:
        since = self.since or 0.0
        lasted = round(at - since, 3)
        return CameraFault(self.source, self.clock, since, lasted, self.condition, over)


def clock_of(epoch: float) -> str:
    """Return a date and time in ISO 8601, given seconds since the epoch."""
    return datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")


class SceneMonitor:
    """Judges document by document whether a live camera is usable and shows the model's scene.

    Each view of the camera is compared with the model's picture, by up to `N_STILLS` stills: one
    may be unlike because a lorry fills it. A camera that was moved is usable again as soon as its
    stills are alike. What is too plain or dark to tell proves nothing about the first view; but it
    does not vouch for another one.

    Parameters
    ----------
    check
        Picture of the model's scene; without it, views are not compared.
    source
        Name of the camera, for messages.
    clip
        Seconds of video per document.
    final
        Whether to raise InvalidInputError if the first view is of another scene: a file will not
        get better.
    """

    def __init__(
        self, check: CameraCheck | None, source: str, *, clip: float = 1.0, final: bool = False
    ) -> None:
        self.check, self.source, self.final = check, source, final
        self.monitor = ConditionMonitor(clip)
        self.shown: set[int] = set()
        """Views that show the scene."""
        self.stills: deque[Image] = deque(maxlen=N_STILLS)
        self.n_compared = 0
        self._compared: tuple[Condition, int] | None = None
        self._alike: bool | None = None

    def judge(self, document: Document) -> Condition:
        """Return the condition of the camera during the next document."""
        condition = self.monitor.judge(document)
        is_shown = condition is Condition.USABLE and self.monitor.view in self.shown
        unclear = condition in (Condition.USABLE, Condition.MOVED) and not is_shown
        if self.check is None or document.still is None or not unclear:
            return condition
        self._compare(self.check, document.still, condition)
        if condition is Condition.MOVED:
            return self._moved()
        return self._unknown(self.check)

    def _compare(self, check: CameraCheck, still: Image, condition: Condition) -> None:
        """Compare stills with the model's picture: each of the first ones, then some."""
        now = condition, self.monitor.view
        if now != self._compared:
            self._compared, self.n_compared = now, 0
            self.stills.clear()
        self.stills.append(still)
        self.n_compared += 1
        if self.n_compared > N_STILLS and self.n_compared % N_STILLS:
            return
        likenesses = [check.likeness(picture) for picture in (still, self._median())]
        alike = any(picture >= LEAST_LIKENESS for picture in likenesses)
        self._alike = None if np.isnan(likenesses[-1]) and not alike else alike

    def _moved(self) -> Condition:
        """Return the condition of a camera that shows another view than before."""
        if not self._alike or len(self.stills) < N_STILLS:
            return Condition.MOVED
        self.monitor.renew()
        self.shown.add(self.monitor.view)
        return Condition.USABLE

    def _unknown(self, check: CameraCheck) -> Condition:
        """Return the condition while a view is not known to show the scene."""
        first = self.monitor.view == 0
        if self._alike:
            self.shown.add(self.monitor.view)
            self.stills.clear()  # what is known is not compared again
            return Condition.USABLE
        if self._alike is None:
            return Condition.USABLE if first else Condition.COVERED
        if first and self.n_compared < N_STILLS:
            return Condition.USABLE
        if first and self.final:
            raise check.error(self._median(), self.source)
        return Condition.MOVED

    def _median(self) -> Image:
        return median_picture(self.stills).astype(np.uint8)
