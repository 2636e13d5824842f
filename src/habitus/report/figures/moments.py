"""Pictures of events: the strongest moment, and what was expected against what was seen."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike

from habitus.anomaly.detection import Detection
from habitus.anomaly.events import Event
from habitus.arrays import Array, Image
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import VideoError
from habitus.files import written_whole
from habitus.model import MarkovClusteringTopicModel
from habitus.report.figures.drawing import (
    EVENT,
    FINER,
    INK,
    arrows_of,
    draw_boxes,
    draw_on_picture,
    ground,
    probable_arrows,
    reduced,
)
from habitus.video import Reader, Source


def expected_words(event: Event, model: MarkovClusteringTopicModel) -> Array:
    """p(word) before the strongest document of an event was seen."""
    return np.asarray(model.parameters_.word_given_behaviour @ np.array(event.expected))


WIDTH, NARROW = 720, 560
"""Pixels across: of a thumbnail, of a picture of what was expected or seen."""
QUALITY = 74
# Strength of an arrow that stands for a word among the least likely, for another, and on footage.
LEAST_LIKELY, OTHER, SLENDER = 1.0, 0.2, 0.25


class EventPictures(NamedTuple):
    """Pictures of an event, as JPEG."""

    thumbnail: bytes
    """The frame at its strongest, with boxes and arrows of the least likely words."""
    expected: bytes
    """Arrows of the words that make up half of what was expected."""
    seen: bytes
    """Arrows of all words that were seen; the least likely ones are large, with a dark edge."""


def event_pictures(
    detection: Detection,
    source: Source | None = None,
    *,
    events: Sequence[int] | None = None,
) -> dict[int, EventPictures]:
    """Pictures of some events, or of all, by their place in the list.

    Thumbnails are frames of `source`; where that is not at hand or cannot be read there, the
    scene's own picture. Empty for a model that does not know what its words mean.
    """
    model = detection.model
    v = model.vocabulary_
    if v is None:
        return {}
    wanted = range(len(detection.events)) if events is None else events
    plain, spans = ground(model.picture_, v, FINER * NARROW), detection.event_spans
    found = {}
    for k in wanted:
        event = detection.events[k]
        seen = detection.corpus.counts[[spans[k].peak]].indices
        found[k] = EventPictures(
            jpeg(thumbnail(event, model, v, source)),
            jpeg(reduced(_expected(event, model, v, plain.copy()))),
            jpeg(reduced(_seen(event, seen, v, plain.copy()))),
        )
    return found


def write_events(
    path: str | os.PathLike[str], detection: Detection, source: Source | None = None
) -> Detection:
    """Write the events as JSON Lines, and thumbnails in a folder beside them.

    Parameters
    ----------
    path
        File of events; the folder is called after it.
    detection
        What a detector found.
    source
        The footage, for thumbnails; the scene's own picture is taken where it is not at hand.

    Returns
    -------
    Detection
        The same, its events with the names of their thumbnails.
    """
    file = Path(path)
    folder = file.with_name(f"{file.stem}-thumbnails")
    events = list(detection.events)
    for k, picture in enumerate(thumbnails(detection, source)):
        folder.mkdir(exist_ok=True)
        name = f"{k + 1:04d}.jpg"
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(picture)
        events[k] = replace(events[k], thumbnail=f"{folder.name}/{name}")
    with written_whole(file) as temporary:
        temporary.write_text("".join(f"{event.line()}\n" for event in events), encoding="utf-8")
    return replace(detection, events=events)


def thumbnails(detection: Detection, source: Source | None = None) -> list[bytes]:
    """Return a JPEG of each event at its strongest; none without a vocabulary."""
    model = detection.model
    v = model.vocabulary_
    return [jpeg(thumbnail(event, model, v, source)) for event in detection.events] if v else []


def thumbnail(
    event: Event, model: MarkovClusteringTopicModel, v: Vocabulary, source: Source | None
) -> Image:
    """The frame in the middle of an event's strongest document, with what is unusual in it."""
    middle = event.peak + model.clip_ / 2
    height = round(WIDTH * v.height / v.width)
    picture = frame_at(source, middle, WIDTH, height) if source else None
    return _marked(ground(model.picture_, v, WIDTH) if picture is None else picture, event, v)


def still_thumbnail(event: Event, still: Image, v: Vocabulary) -> bytes:
    """A JPEG of a picture that was kept of an event, of any size, with what is unusual in it."""
    size = (WIDTH, round(WIDTH * v.height / v.width))
    enlarged = cv2.resize(still, size, interpolation=cv2.INTER_CUBIC)
    return jpeg(_marked(np.asarray(enlarged, dtype=np.uint8), event, v))


def _marked(picture: Image, event: Event, v: Vocabulary) -> Image:
    draw_boxes(picture, event.boxes, v, EVENT)
    slender = arrows_of(event.words, np.full(len(event.words), SLENDER), v)
    draw_on_picture(picture, slender, v)
    return picture


def frame_at(source: Source, time: float, width: int, height: int) -> Image | None:
    """The first frame at a time or after it, else the last before; None if there is none."""
    if source.is_live:
        return None
    frame = None
    try:
        with Reader(source, since=time) as reader:
            for frame in reader:
                if frame.time >= time:
                    break
    except VideoError:
        return None
    return frame.colours(width, height) if frame else None


def jpeg(picture: Image, quality: int = QUALITY) -> bytes:
    """A picture as JPEG with colours at full resolution: thin arrows keep theirs."""
    options = [
        cv2.IMWRITE_JPEG_QUALITY, quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        cv2.IMWRITE_JPEG_OPTIMIZE, 1,
    ]  # fmt: skip
    _, encoded = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), options)
    return encoded.tobytes()


def _expected(
    event: Event, model: MarkovClusteringTopicModel, v: Vocabulary, picture: Image
) -> Image:
    draw_on_picture(picture, probable_arrows(expected_words(event, model), v), v)
    return picture


def _seen(event: Event, words: ArrayLike, v: Vocabulary, picture: Image) -> Image:
    others = np.setdiff1d(words, event.words)
    draw_on_picture(picture, arrows_of(others, np.full(len(others), OTHER), v), v, width=0)
    draw_boxes(picture, event.boxes, v, EVENT)
    least = arrows_of(event.words, np.full(len(event.words), LEAST_LIKELY), v)
    draw_on_picture(picture, least, v, edge=INK, width=FINER)
    return picture
