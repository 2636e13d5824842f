"""What a camera's process reports to the console, and what it is ordered; pickled over its pipe."""

import queue
import threading
from collections import defaultdict, deque
from contextlib import suppress
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from habitus.backlog import Backlog
from habitus.settings import AlertSettings
from habitus.site.zones import Zone

# Judged documents that may wait for the server to read them: the latest; of pictures, one.
MOST_JUDGED = 600


class CameraState(StrEnum):
    """What a camera is doing."""

    CONNECTING = "connecting"
    LEARNING = "learning"
    """It gives documents; there is no model yet."""
    WATCHING = "watching"
    LOST = "lost"
    FROZEN = "frozen"
    COVERED = "covered"
    MOVED = "moved"
    SLOW = "slow"
    REFUSED = "refused"
    """It cannot be watched as it is, such as with another frame size than the model."""
    OFF = "off"
    ENDED = "ended"
    """A recording that was judged to its end."""


class PictureSize(NamedTuple):
    """Size of the camera's picture, in pixels: its first frame came."""

    width: int
    height: int


class StateChanged(NamedTuple):
    """The camera does something else now."""

    state: CameraState
    since: float
    reason: str = ""


class JudgedDocument(NamedTuple):
    """One document; about one a second."""

    time: float
    """Start of its clip in seconds since the epoch."""
    normality: float | None
    """None if it was not judged: no model yet, or the camera is in trouble."""
    threshold: float | None
    behaviour: int
    """Counted from 1; 0 if not known."""
    expected: tuple[float, ...]
    """Probability of each behaviour in the next document."""
    n_tokens: float


class CameraPicture(NamedTuple):
    """The camera's picture, about one a second."""

    time: float
    jpeg: bytes
    width: int
    """Of the camera; arrows and boxes are in its pixels."""
    height: int
    arrows: list[tuple[float, float, float, float]]
    """Motion: x, y of the tail, and of the tip."""
    heat: list[tuple[float, float, float, float, float]]
    """Unusual places now: x, y, width, height, and strength from 0 to 1."""


class NewEntry(NamedTuple):
    """A file was put into the camera's folder `journal`: take it from there."""

    name: str


class FootageExtent(NamedTuple):
    """Documents to learn from, so far."""

    seconds: float
    """Seconds of usable footage on disk."""
    first: float
    """Start of the earliest, in seconds since the epoch."""
    last: float = 0.0
    """End of the latest."""


class ModelWanted(NamedTuple):
    """A recording was read far enough, and waits: for `UseModel`, or `GoOn` without a model.

    The model is to be learnt from all that was kept so far, however little it is.
    """

    seconds: float
    """Seconds of footage that were kept."""


class Remark(NamedTuple):
    """A notice for a person."""

    text: str
    time: float


Report = (
    PictureSize
    | StateChanged
    | JudgedDocument
    | CameraPicture
    | NewEntry
    | FootageExtent
    | ModelWanted
    | Remark
)


class UseModel(NamedTuple):
    """Judge by this model from now on."""

    path: str
    accepted: tuple[dict[str, Any], ...] = ()
    """Events, as `habitus.Event.to_json()` gives them, that were called normal since it was
    learnt."""


class AlertOrder(NamedTuple):
    """Raise so many alerts per day from now on, in these zones; call behaviours so."""

    alerts_per_day: float = AlertSettings.BUDGET
    zones: tuple[Zone, ...] = ()
    behaviour_names: tuple[tuple[int, str], ...] = ()
    """Number, from 1, and name."""


class GoOn(NamedTuple):
    """No model can be learnt from what a recording gave so far: read on.

    It asks again after twice as much, and ends where that never helps.
    """

    reason: str


class Stop(NamedTuple):
    """End, with every event written."""


Order = UseModel | AlertOrder | GoOn | Stop


class ServerLink:
    """The connection to the server: sends reports and takes orders, each in a thread of its own.

    Of pictures only the latest waits to be sent, and of judged documents the latest `MOST_JUDGED`.
    Other reports are few, and all wait. `stop` is set when the process is to end: by an order, or
    because the server is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.stop = threading.Event()
        self._waiting: dict[type, deque[Report]] = defaultdict(deque)
        self._waiting[CameraPicture] = deque(maxlen=1)
        self._waiting[JudgedDocument] = deque(maxlen=MOST_JUDGED)
        self._lock = threading.Lock()
        # Which kind of report is next; the oldest one of that kind is sent.
        self._kinds = Backlog(self._send, note=lambda trouble: self.stop.set() if trouble else None)
        threading.Thread(target=self._receive, daemon=True).start()

    def send(self, report: Report) -> None:
        """Have a report sent."""
        with self._lock:
            waiting = self._waiting[type(report)]
            if len(waiting) != waiting.maxlen:  # else it takes the place of the oldest
                self._kinds.add(waiting)
            waiting.append(report)

    def next_order(self, within: float = 0.0) -> Order | None:
        """Return the next order, or None if none comes in time."""
        try:
            return self.orders.get(timeout=within) if within else self.orders.get_nowait()
        except queue.Empty:
            return None

    def close(self, *, within: float) -> None:
        """Send what waits, as far as the server reads it in time."""
        self._kinds.close(within=within)

    def _send(self, waiting: deque[Report]) -> None:
        with suppress(IndexError):  # what could not be sent is not sent again
            with self._lock:
                report = waiting.popleft()
            self.connection.send(report)

    def _receive(self) -> None:
        try:
            while not self.stop.is_set():
                order: Order = self.connection.recv()
                if isinstance(order, Stop):
                    break
                self.orders.put(order)
        except (EOFError, OSError):
            pass
        self.stop.set()
