"""Pictures of events: the strongest document, and expected against observed motion."""

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
from habitus.reporting.figures.drawing import (
    EVENT,
    FINER,
    INK,
    arrows_of,
    background,
    draw_boxes,
    draw_on_picture,
    probable_arrows,
    reduced,
)
from habitus.video import Reader, Source

WIDTH, NARROW = 720, 560
"""Widths in pixels: of a thumbnail, and of a picture of expected or observed motion."""
QUALITY = 74
# Strength of the arrows of a word among the least likely, of another word, and on a thumbnail.
LEAST_LIKELY, OTHER, SLENDER = 1.0, 0.2, 0.25


def write_events(
    path: str | os.PathLike[str], detection: Detection, source: Source | None = None
) -> Detection:
    """Write the events as JSON Lines, and their thumbnails in a folder beside them.

    Parameters
    ----------
    path
        File to write, such as "events.jsonl"; thumbnails go to "events-thumbnails".
    detection
        What was found.
    source
        The footage, for thumbnails; without it they show the model's picture of the scene.

    Returns
    -------
    Detection
        The same detection, with the names of the thumbnails in its events.

    Raises
    ------
    InvalidInputError
        If a file cannot be written.
    """
    file = Path(path)
    folder = file.with_name(f"{file.stem}-thumbnails")
    events = list(detection.events)
    for k, picture in enumerate(event_thumbnails(detection, source)):
        folder.mkdir(exist_ok=True)
        name = f"{k + 1:04d}.jpg"
        with written_whole(folder / name) as temporary:
            temporary.write_bytes(picture)
        events[k] = replace(events[k], thumbnail=f"{folder.name}/{name}")
    with written_whole(file) as temporary:
        temporary.write_text("".join(f"{event.line()}\n" for event in events), encoding="utf-8")
    return replace(detection, events=events)


def event_thumbnails(detection: Detection, source: Source | None = None) -> list[bytes]:
    """Return a JPEG per event, of its strongest document.

    Parameters
    ----------
    detection
        What was found.
    source
        The footage; without it, or where it cannot be read, the model's picture of the scene.

    Returns
    -------
    list of bytes
        In the order of the events; empty if the model has no vocabulary.
    """
    model = detection.model
    v = model.vocabulary_
    return [jpeg(_thumbnail(event, model, v, source)) for event in detection.events] if v else []


def still_thumbnail(event: Event, still: Image, v: Vocabulary) -> bytes:
    """Return a JPEG of a frame of any size that was kept of an event, with boxes and arrows."""
    size = (WIDTH, round(WIDTH * v.height / v.width))
    enlarged = cv2.resize(still, size, interpolation=cv2.INTER_CUBIC)
    return jpeg(_marked(np.asarray(enlarged, dtype=np.uint8), event, v))


class EventPictures(NamedTuple):
    """Pictures of an event, as JPEG."""

    thumbnail: bytes
    """Frame of its strongest document, with boxes and arrows of the least likely words."""
    expected: bytes
    """Arrows of the words that make up half of the predicted p(word)."""
    observed: bytes
    """Arrows of all observed words; the least likely ones are large, with a dark edge."""


def event_pictures(
    detection: Detection,
    source: Source | None = None,
    *,
    events: Sequence[int] | None = None,
) -> dict[int, EventPictures]:
    """Return pictures of events by their index.

    Parameters
    ----------
    detection
        What was found.
    source
        The footage; without it, or where it cannot be read, thumbnails show the model's picture
        of the scene.
    events
        Indices of the events; all if None.

    Returns
    -------
    dict of int to EventPictures
        Empty if the model has no vocabulary.
    """
    model = detection.model
    v = model.vocabulary_
    if v is None:
        return {}
    wanted = range(len(detection.events)) if events is None else events
    plain, spans = background(model.picture_, v, FINER * NARROW), detection.event_spans
    found = {}
    for k in wanted:
        event = detection.events[k]
        words = detection.corpus.counts[[spans[k].peak]].indices
        found[k] = EventPictures(
            jpeg(_thumbnail(event, model, v, source)),
            jpeg(reduced(_expected(event, model, v, plain.copy()))),
            jpeg(reduced(_observed(event, words, v, plain.copy()))),
        )
    return found


def expected_words(event: Event, model: MarkovClusteringTopicModel) -> Array:
    """Return p(word | x_{1:t-1}) of the strongest document of an event."""
    return np.asarray(model.parameters_.word_given_behaviour @ np.array(event.expected))


def _thumbnail(
    event: Event, model: MarkovClusteringTopicModel, v: Vocabulary, source: Source | None
) -> Image:
    """Return the frame in the middle of an event's strongest document, with boxes and arrows."""
    middle = event.peak + model.clip_ / 2
    height = round(WIDTH * v.height / v.width)
    picture = frame_at(source, middle, WIDTH, height) if source else None
    return _marked(background(model.picture_, v, WIDTH) if picture is None else picture, event, v)


def _marked(picture: Image, event: Event, v: Vocabulary) -> Image:
    draw_boxes(picture, event.boxes, v, EVENT)
    slender = arrows_of(event.words, np.full(len(event.words), SLENDER), v)
    draw_on_picture(picture, slender, v)
    return picture


def _expected(
    event: Event, model: MarkovClusteringTopicModel, v: Vocabulary, picture: Image
) -> Image:
    draw_on_picture(picture, probable_arrows(expected_words(event, model), v), v)
    return picture


def _observed(event: Event, words: ArrayLike, v: Vocabulary, picture: Image) -> Image:
    others = np.setdiff1d(words, event.words)
    draw_on_picture(picture, arrows_of(others, np.full(len(others), OTHER), v), v, width=0)
    draw_boxes(picture, event.boxes, v, EVENT)
    least = arrows_of(event.words, np.full(len(event.words), LEAST_LIKELY), v)
    draw_on_picture(picture, least, v, edge=INK, width=FINER)
    return picture


def frame_at(source: Source, time: float, width: int, height: int) -> Image | None:
    """Return the first frame at or after a time, or the last frame if there is none.

    Parameters
    ----------
    source
        The footage.
    time
        In seconds of the source.
    width, height
        Size of the picture to return.

    Returns
    -------
    Image or None
        None for a live source or one that cannot be read.
    """
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
    """Return a picture as JPEG, with colour at full resolution so that thin arrows keep theirs."""
    options = {
        cv2.IMWRITE_JPEG_QUALITY: quality,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR: cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        cv2.IMWRITE_JPEG_OPTIMIZE: 1,
    }
    flat = [number for pair in options.items() for number in pair]
    _, encoded = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), flat)
    return encoded.tobytes()
