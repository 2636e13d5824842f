"""An event: successive abnormal documents, joined; one line of JSON each."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from habitus.normality.localisation import Box

SCHEMA = 1


@dataclass(frozen=True)
class Event:
    """Something that was not usual: when, where and why."""

    source: str
    """The video, stream or corpus it was seen in."""
    start: float
    """Seconds of video."""
    end: float
    peak: float
    """Start of the strongest document, in seconds of video."""
    normality: float
    """Of the strongest document, by the measure in use: the lower the less usual."""
    threshold: float
    """Documents below it are abnormal."""
    behaviour: int
    """Of the strongest document, counted from 1."""
    expected: tuple[float, ...]
    """Probability of each behaviour before the strongest document was seen."""
    boxes: tuple[Box, ...]
    """Where, in pixels of the camera's frame: left, top, right, bottom; the strongest first."""
    words: tuple[int, ...]
    """The least likely words of the strongest document, the least likely first."""
    surprise: float
    """Of the strongest document, -ln p(x_t | x_{1:t-1}), in nats: misfit plus shift."""
    misfit: float
    """The part of it that fits no behaviour."""
    shift: float
    """The part of it that is a behaviour out of its turn."""
    explanation: str
    clock: str | None = None
    """Date and time of the start (ISO 8601), for a live source."""
    thumbnail: str | None = None
    """A picture of the strongest moment, beside the events' file."""

    def to_json(self) -> dict[str, Any]:
        """Give the event as plain values, with the version of their meaning."""
        return {"habitus": "event", "version": SCHEMA, **asdict(self)}

    def line(self) -> str:
        """One line of JSON Lines."""
        return json.dumps(self.to_json(), allow_nan=False)
