"""What a camera's process tells the console, and what it is told; pickled over its own pipe."""

from enum import StrEnum
from typing import Any, NamedTuple


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


class Connected(NamedTuple):
    """The first frame came."""

    width: int
    """Of the camera's picture in pixels."""
    height: int


class StateChanged(NamedTuple):
    """The camera does something else now."""

    state: CameraState
    since: float
    reason: str = ""


class Judged(NamedTuple):
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


class Seen(NamedTuple):
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


class Filed(NamedTuple):
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


Report = Connected | StateChanged | Judged | Seen | Filed | FootageExtent | ModelWanted | Remark


class UseModel(NamedTuple):
    """Judge by this model from now on."""

    path: str
    accepted: tuple[dict[str, Any], ...] = ()
    """Events, as `habitus.Event.to_json()` gives them, that were called normal since it was
    learnt."""


class SetBudget(NamedTuple):
    """Raise so many alerts per day from now on."""

    alerts_per_day: float


class GoOn(NamedTuple):
    """No model can be learnt from what a recording gave so far: read on.

    It asks again after twice as much, and ends where that never helps.
    """

    reason: str


class Stop(NamedTuple):
    """End, with every event written."""


Order = UseModel | SetBudget | GoOn | Stop
