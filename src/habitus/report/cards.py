"""Events as cards of the page: pictures, reasons, and a link into the annotated video."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from habitus.events import Detection, Event
from habitus.model import MarkovClusteringTopicModel
from habitus.report.annotation import film_start
from habitus.report.moments import EventPictures, event_pictures
from habitus.report.places import Place
from habitus.video import Source

MOST_PICTURES = 60
"""Events that have pictures, the least usual ones; all others are told in words."""
# Seconds before an event at which its link into the video begins.
RUN_UP = 2.0
# What this share of the usual documents stays under is called usual.
USUAL = 0.95


class Part(NamedTuple):
    """One of the two parts of a surprise, beside what is usual."""

    name: str
    value: str
    usual: str
    length: float
    """Of its bar, in percent."""
    mark: float
    """Where the usual ends, in percent."""


def cards_of(
    detection: Detection,
    model: MarkovClusteringTopicModel,
    source: Source | None,
    video: str | None,
    places: Sequence[Place],
) -> list[dict[str, Any]]:
    """Of each event in order: the event, its pictures, what there is to say, the link."""
    strongest = np.argsort([event.normality for event in detection.events], kind="stable")
    pictured = sorted(strongest[:MOST_PICTURES].tolist())
    pictures = event_pictures(detection, model, source, events=pictured)
    start = film_start(detection)
    return [
        {
            "event": event,
            "why": f"{event.explanation[:1].upper()}{event.explanation[1:]}.",
            "pictures": _addresses(pictures.get(k)),
            "parts": _parts(places[k].peak, places, detection),
            "expected": _expected(event),
            "link": f"{video}#t={max(event.start - start - RUN_UP, 0):.1f}" if video else None,
        }
        for k, event in enumerate(detection.events)
    ]


def _addresses(pictures: EventPictures | None) -> dict[str, str]:
    """An address for each picture; none for an event without."""
    return {name: data_uri(image) for name, image in pictures._asdict().items()} if pictures else {}


def _expected(event: Event) -> list[tuple[int, str]]:
    """Behaviours that were expected, most probable first, those that hardly were left out."""
    order = np.argsort(-np.array(event.expected), kind="stable")
    return [(int(z) + 1, f"{event.expected[z]:.0%}") for z in order if event.expected[z] >= 0.05]


def _parts(peak: int, places: Sequence[Place], detection: Detection) -> list[Part]:
    """The two parts of an event's surprise."""
    usual = detection.judged & ~detection.abnormal
    peaks = [place.peak for place in places]
    found = []
    for name, values, unit in (
        ("motion that fits no behaviour", detection.misfit, "nats a word"),
        ("a behaviour out of its turn", detection.shift, "nats"),
    ):
        bound = float(np.quantile(values[usual], USUAL)) if usual.any() else 0.0
        whole = max(1.15 * bound, float(values[peaks].max()), 1e-9)
        value = float(values[peak])
        found.append(
            Part(name, f"{value:.2f} {unit}", f"usually under {bound:.2f}",
                 round(100 * value / whole, 1), round(100 * bound / whole, 1))
        )  # fmt: skip
    return found


def data_uri(image: bytes, kind: str = "jpeg") -> str:
    """An image as an address that holds all of it."""
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
