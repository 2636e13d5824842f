"""A label: something that is known to have happened, when, of what kind and where."""

from collections.abc import Sequence
from typing import NamedTuple

from habitus.errors import InvalidInputError
from habitus.normality.localisation import Box

# Ends and starts are written with some digits only: this much is no overlap.
ROUNDING = 1e-6


class Sighting(NamedTuple):
    """Where something was at a time."""

    time: float
    """In seconds of video."""
    box: Box


class Label(NamedTuple):
    """Something abnormal, as a person or the scene's own truth has it."""

    start: float
    """In seconds of video."""
    end: float
    kind: str = ""
    box: Box | None = None
    """Where, in pixels of the camera's frame; of all its time together."""
    track: tuple[Sighting, ...] = ()
    """Where at each time, in order of time, if that is known."""

    def places(self, start: float, end: float) -> list[Box]:
        """Boxes while `start` <= time < `end`; the box of all its time where no more is known."""
        seen = [sighting.box for sighting in self.track if start <= sighting.time < end]
        return seen or ([self.box] if self.box is not None and not self.track else [])

    def since(self, time: float) -> "Label":
        """The part of it from a time on."""
        return self._replace(start=max(self.start, time))


def around(boxes: Sequence[Box]) -> Box:
    """The box around all of these.

    >>> around([Box(0, 5, 10, 20), Box(3, 2, 30, 10)])
    Box(left=0, top=2, right=30, bottom=20)
    """
    left, top, right, bottom = zip(*boxes, strict=True)
    return Box(min(left), min(top), max(right), max(bottom))


def seconds_of(text: str) -> float:
    """Seconds, or a time with colons.

    >>> seconds_of("754.5"), seconds_of("12:34.5"), seconds_of("1:00:00")
    (754.5, 754.5, 3600.0)
    """
    first, *parts = (float(part) for part in text.strip().split(":"))
    if len(parts) > 2 or any(not 0 <= part < 60 for part in parts):
        raise ValueError(f"{text.strip()!r} is no time such as 754.5, 12:34.5 or 0:12:34.5")
    seconds = first
    for part in parts:
        seconds = 60 * seconds + part
    return seconds


def check_labels(labels: Sequence[Label], first: float, last: float, what: str = "labels") -> None:
    """Refuse labels that lie outside the video that they should be of."""
    for label in labels:
        if label.end <= first or label.start >= last:
            raise InvalidInputError(
                f"{what}: {label.kind or 'a label'} from {label.start:g} to {label.end:g} s is "
                f"outside the video, which runs from {first:g} to {last:g} s: another video, or "
                "other units?"
            )


def check_intervals(labels: Sequence[Label], what: str = "labels") -> None:
    """Refuse labels of one kind that overlap, unless they are of different places.

    Two things of a kind may happen at once; one thing labelled twice would count twice.
    """
    in_order = sorted(labels, key=lambda label: (label.kind, label.start, label.end))
    for k, one in enumerate(in_order):
        for other in in_order[k + 1 :]:
            if other.kind != one.kind or other.start >= one.end - ROUNDING:
                break
            if one.box == other.box or one.box is None or other.box is None:
                raise InvalidInputError(
                    f"{what}: {one.kind or 'a label'} from {other.start:g} to {other.end:g} s "
                    f"overlaps the one from {one.start:g} to {one.end:g} s: make them one, or "
                    "give each its kind or its box"
                )
