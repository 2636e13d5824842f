"""When a camera's model is learnt, and the processes that work on models for the server.

The server itself loads none of the code of models: what needs it runs in processes that are forked
from the fork server, see `habitus.site.model_work`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from habitus.backlog import growing_wait
from habitus.jobs.fork_server import Child, ForkServer
from habitus.progress import Progress
from habitus.site.pipe_messages import FootageExtent

# What runs in these processes.
WORK = "habitus.site.model_work"
LEARNING = f"{WORK}:learn_from_footage"
"""What a process calls with a `LearningJob`, at low priority."""

Occasion = Literal["first", "hour", "night", "asked"]
"""Why a model is learnt."""
FIRST_AFTER, HOUR_AFTER = 300.0, 3600.0
"""Seconds of usable footage after which the first model is learnt, and the second."""
NIGHT = 3
"""Hour of the night in which further models are learnt."""
# Seconds to the first new attempt after one that failed; it doubles with each, up to the longest.
FIRST_WAIT, LONGEST_WAIT = 300.0, 21_600.0
# Seconds that the answer to a question about a model may take.
ANSWER_WITHIN = 20.0

GRID = 8
"""Rows and columns of places in a signature."""
CUES = ("place", "direction", "speed", "together", "behaviours")
"""What an event may be found by; see `habitus.Event.cue`. Signatures of known events have these
alone: by the hour, an event is like others by where and how it moves."""
# Weights of the parts of a signature: where, in which direction, how fast, by which cue.
WHERE, WHICH_WAY, HOW_FAST, BY_CUE = 1.0, 0.7, 0.4, 0.5


class PastLearning(NamedTuple):
    """One time that a model was learnt."""

    occasion: str
    started: float
    ended: float | None
    """None while it runs."""
    succeeded: bool


def due(
    now: float,
    kept: FootageExtent | None,
    learnings: Sequence[PastLearning],
    *,
    camera: str = "",
    zone: tzinfo | None = None,
) -> Literal["first", "hour", "night"] | None:
    """Return why a model is to be learnt now, or None if it is not.

    After five minutes of usable footage, after an hour of it, and then each night, each camera at
    a minute of its own; in the morning, where the machine was off at night. What failed is tried
    again, with longer and longer waits. A camera that has given nothing since keeps its model.
    The zone is that of the machine by default.

    Examples
    --------
    >>> due(1000.0, FootageExtent(seconds=299, first=700, last=999), [])
    >>> due(1001.0, FootageExtent(seconds=300, first=700, last=1000), [])
    'first'
    """
    past = sorted(learnings, key=lambda learning: learning.started)
    running = any(learning.ended is None for learning in past)
    if kept is None or kept.seconds < FIRST_AFTER or running:
        return None
    # What was done by a clock that ran ahead says nothing of when to do it again.
    timed = [learning for learning in past if learning.started <= now]
    if now < _again_at(timed):
        return None
    learnt = [learning for learning in past if learning.succeeded]
    if not learnt:
        return "first"
    if not any(learning.occasion in ("hour", "night") for learning in learnt):
        return "hour" if kept.seconds >= HOUR_AFTER else None
    since = max((learning.started for learning in timed if learning.succeeded), default=-np.inf)
    minute = crc32(camera.encode()) % 60  # always the same one
    tonight = _last_night(now, minute, zone)
    return "night" if since < tonight and since < kept.last else None


def _again_at(past: Sequence[PastLearning]) -> float:
    """Return when something may be tried again, after the failures at the end of what was done."""
    n_failed = len([*takewhile(lambda learning: not learning.succeeded, reversed(past))])
    if not n_failed:
        return -np.inf
    ended = past[-1].ended or past[-1].started
    return ended + growing_wait(n_failed, FIRST_WAIT, LONGEST_WAIT)


def _last_night(now: float, minute: int, zone: tzinfo | None) -> float:
    """Return the latest time of the night, at this minute, that is not after now."""
    local = datetime.fromtimestamp(now, zone)
    for days in (0, 1, 2):  # where clocks are put forward, one may not exist
        at = (local - timedelta(days=days)).replace(
            hour=NIGHT, minute=minute, second=0, microsecond=0
        )
        if at.timestamp() <= now:
            return at.timestamp()
    return -np.inf


@dataclass(frozen=True)
class LearningJob:
    """A model that is to be learnt, in the folder of a camera.

    Documents are read from `documents`, the model is written as `model-N.habitus` with the next
    free number, of which the last three are kept, and pictures of the behaviours as
    `behaviours/1.jpg` and so on. Documents from `since` to `until`, in seconds since the epoch, are
    learnt from, but for `excluded`: events that were called unusual. Of `accepted`, events that
    were called normal as `Event.to_json` gives them, those that the new model cannot count are
    named in the notes. `names` are what people call the behaviours of the model before, a file in
    the folder, by number: behaviours that are there again keep theirs.
    """

    folder: Path
    occasion: Occasion
    since: float = -np.inf
    until: float = np.inf
    excluded: tuple[tuple[float, float], ...] = ()
    accepted: tuple[dict[str, Any], ...] = ()
    seed: int = 0
    before: str | None = None
    names: tuple[tuple[int, str], ...] = ()


class LearntModel(NamedTuple):
    """A model was learnt."""

    model: str
    """Name of its file in the camera's folder."""
    summary: str
    """One line."""
    notes: tuple[str, ...]
    since: float
    """Start of the first document that was learnt from, and end of the last, since the epoch."""
    until: float
    n_documents: int
    n_behaviours: int
    names: tuple[tuple[str, str], ...] = ()
    """Number and name of the behaviours that people named before."""


class LearningFailure(NamedTuple):
    """No model could be learnt."""

    reason: str


LearningReport = Progress | LearntModel | LearningFailure


def learning_reports(child: Child) -> Iterator[LearningReport]:
    """Yield the reports that came from a process that learns, without waiting for more.

    The last is always `LearntModel` or `LearningFailure`, once, also where the process was killed.
    """
    while not child.connection.closed:
        try:
            if not child.connection.poll():
                return
            report: LearningReport = child.connection.recv()
        except (EOFError, OSError):
            code = child.wait(1.0)
            killed = " (it was killed; there may be too little memory)" if code == -9 else ""
            report = LearningFailure(
                f"the learning ended without a result, with exit code {code}{killed}"
            )
        if not isinstance(report, Progress):
            child.connection.close()
        yield report


def silenced_by(
    model: Path,
    accepted: Sequence[dict[str, Any]],
    event: dict[str, Any],
    recent: Sequence[dict[str, Any]],
    *,
    fork_server: ForkServer,
    within: float = ANSWER_WITHIN,
) -> list[int]:
    """Return which of the `recent` alarms would not be raised if an event were called normal too.

    Those that the events that were `accepted` before silence already are left out. HabitusError if
    the event cannot be counted by this model, or it takes too long.
    """
    job = f"{WORK}:silenced", model, accepted, event, recent
    numbers: list[int] = fork_server.ask(*job, within=within)
    return numbers


def describe(
    model: Path, *, fork_server: ForkServer, within: float = ANSWER_WITHIN
) -> list[dict[str, Any]]:
    """Return the behaviours of a model: quickly, where it was learnt from footage.

    Each has `number` (from 1), `share` of the time, `seconds` that it lasts on average (None if it
    never ends), `next` (`number` and `probability` of those that follow, the most likely first) and
    `picture` (file name in the camera's folder, None if there is none).
    """
    written = description_of(model)
    try:
        behaviours: list[dict[str, Any]] = json.loads(written.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        behaviours = fork_server.ask(f"{WORK}:behaviours_of", model, within=within)
    return behaviours


def description_of(model: Path) -> Path:
    """Return the file beside a model that has what `describe` returns."""
    return model.with_suffix(".json")


def signature(event: dict[str, Any], width: int, height: int) -> bytes:
    """Return what an event is compared by: the dot product of two is their likeness, up to 1.

    Values of type float32, the same number for all events: where it was on a grid of 8 x 8 of the
    camera's picture, in which of four directions and how fast it moved, and by which cue it was
    found.

    Examples
    --------
    >>> event = {"boxes": [[0, 0, 40, 30]], "words": [9], "surprisals": [3.0], "cue": "place, sum"}
    >>> other = event | {"boxes": [[280, 200, 320, 240]]}
    >>> one, far = (np.frombuffer(signature(e, 320, 240), np.float32) for e in (event, other))
    >>> round(float(one @ one), 3), bool(one @ far < 0.6)
    (1.0, True)
    """
    moves = np.asarray(event.get("words", ()), dtype=np.int64) % 8
    weights = np.ones(len(moves))
    surprisals = np.asarray(event.get("surprisals", ()), dtype=np.float64)
    if len(surprisals) == len(moves):
        weights = np.maximum(surprisals, 1e-6)
    cue = str(event.get("cue", "")).partition(",")[0]
    parts = (
        (WHERE, _places(event.get("boxes", ()), width, height)),
        (WHICH_WAY, np.bincount(moves // 2, weights, minlength=4)),
        (HOW_FAST, np.bincount(moves % 2, weights, minlength=2)),
        (BY_CUE, np.array([name == cue for name in CUES], dtype=np.float64)),
    )
    vector = np.concatenate([weight * _unit(part) for weight, part in parts])
    return _unit(vector).astype("<f4").tobytes()


def _places(boxes: Sequence[Sequence[float]], width: int, height: int) -> NDArray[np.float64]:
    """Return how much of each place on a grid boxes cover; the first, strongest counts most."""
    places = np.zeros((GRID, GRID))
    edges = np.arange(GRID + 1) / GRID
    for rank, (left, top, right, bottom) in enumerate(boxes, start=1):
        across = _overlap(edges * width, left, right)
        places += np.outer(_overlap(edges * height, top, bottom), across) / rank
    return np.sqrt(places).ravel()  # a large box is like a small one within it


def _overlap(edges: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Return the share of each interval between edges that lies between two values."""
    covered = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    return np.asarray(np.maximum(covered, 0.0) / np.diff(edges))


def _unit(vector: NDArray[Any]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length else vector, dtype=np.float64)
