"""Pictures of events: the strongest document, and expected against observed motion."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from habitus.arrays import Array, Image, Indices
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import VideoError
from habitus.files import written_whole
from habitus.model import TopicModel
from habitus.reporting.figures.drawing import (
    EVENT,
    FINER,
    INK,
    arrows_of,
    background,
    draw_boxes,
    draw_on_picture,
    draw_unusual,
    drawn_size,
    probable_arrows,
    reduced,
)
from habitus.scene.detection import Detection
from habitus.scene.events import Event, judge_moment
from habitus.scene.explanation import find_unusual, heat_map
from habitus.scene.habit_model import HabitModel
from habitus.video import Reader, Source

WIDTH, NARROW = 720, 560
"""Widths in pixels: of a thumbnail, and of a picture of expected or observed motion."""
QUALITY = 74
# Documents from the beginning of an event back to the picture from before it, and likewise after.
AROUND = 3
# Strength of the arrows of a word among the least likely, and of another word.
LEAST_LIKELY, OTHER = 1.0, 0.2


def write_events(
    path: str | os.PathLike[str],
    detection: Detection,
    source: Source | None = None,
    *,
    moments: bool = False,
) -> Detection:
    """Write the alarms as JSON Lines in order of time, with thumbnails in a folder beside them.

    Those of "events.jsonl" go to "events-thumbnails"; without the footage they show the model's
    picture of the scene. With `moments`, the most unusual moments that are no alarms are written
    too, with `alarm` false. Returns the detection with the names of the thumbnails in its events;
    raises InvalidInputError if a file cannot be written.
    """
    file = Path(path)
    folder = file.with_name(f"{file.stem}-thumbnails")
    wanted = detection.moments if moments else detection.events
    wanted = sorted(wanted, key=lambda event: event.start)
    named = {event: event for event in wanted}
    pictures = zip(wanted, event_thumbnails(detection, source, events=wanted), strict=False)
    with _nothing_left_in(folder):
        for k, (event, picture) in enumerate(pictures, start=1):
            folder.mkdir(exist_ok=True)
            name = f"{k:04d}.jpg"
            with written_whole(folder / name) as temporary:
                temporary.write_bytes(picture)
            named[event] = replace(event, thumbnail=f"{folder.name}/{name}")
        with written_whole(file) as temporary:
            lines = "".join(f"{event.line()}\n" for event in named.values())
            temporary.write_text(lines, encoding="utf-8")
    return replace(
        detection,
        events=[named.get(event, event) for event in detection.events],
        moments=[named.get(event, event) for event in detection.moments],
    )


@contextmanager
def _nothing_left_in(folder: Path) -> Iterator[None]:
    """Delete what is new in a folder, and the folder itself if it is, should the block fail."""
    before = set(folder.iterdir()) if folder.is_dir() else None
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for path in set(folder.iterdir()) - (before or set()):
                path.unlink()
            if before is None:
                folder.rmdir()
        raise


def event_thumbnails(
    detection: Detection, source: Source | None = None, *, events: Sequence[Event] | None = None
) -> list[bytes]:
    """Return a JPEG per event (all events if None), of its strongest document.

    Without the footage, or where it cannot be read, they show the model's picture of the scene.
    None are returned if the model has no vocabulary.
    """
    wanted = detection.events if events is None else events
    seen = [seen_moment(event, detection) for event in wanted]
    model = detection.model
    return [jpeg(_thumbnail(moment, model, source)) for moment in seen if moment is not None]


def still_thumbnail(
    event: Event, still: Image, v: Vocabulary, habits: HabitModel | None = None
) -> bytes:
    """Return a JPEG of a frame of any size that was kept of an event, with all marks."""
    enlarged = cv2.resize(still, drawn_size(v, WIDTH), interpolation=cv2.INTER_CUBIC)
    seen = SeenMoment(event, v, np.array(event.words, dtype=np.int64))
    if habits is not None:
        seen = _seen_by_habits(event, habits)
    return jpeg(_marked(np.asarray(enlarged, dtype=np.uint8), seen))


class SeenMoment(NamedTuple):
    """The strongest document of an event, as it is drawn."""

    event: Event
    vocabulary: Vocabulary
    """Meaning of the words."""
    unusual: Indices
    """Words that the event is localised by."""
    words: Indices = np.empty(0, dtype=np.int64)
    """All words; by habits, one for each cell that moved."""
    usual: Array = np.empty(0)
    """What was to be expected: a probability for each word; by habits, for any speed."""
    heat: Array | None = None
    """By habits, surprisal beyond its level in nats: rows x columns."""


def seen_moment(event: Event, detection: Detection) -> SeenMoment | None:
    """Return the strongest document of an event; None if the model has no vocabulary."""
    v = detection.model.vocabulary_
    if v is None or event.peak_document is None:
        return None
    if detection.habits is not None:
        return _seen_by_habits(event, detection.habits)
    words = detection.corpus.bag(event.peak_document).words.astype(np.int64)
    unusual = np.array(event.words, dtype=np.int64)
    return SeenMoment(event, v, unusual, words, expected_words(event, detection.model))


def _seen_by_habits(event: Event, habits: HabitModel) -> SeenMoment:
    v, words = habits.vocabulary, np.array(event.moment, dtype=np.int64)
    finding = find_unusual(judge_moment(event, habits), habits)
    usual = habits.all_counts.direction.reshape(-1)
    return SeenMoment(
        event, v, words[finding.votes], words, usual / max(usual.sum(), 1.0), heat_map(finding, v)
    )


class EventPictures(NamedTuple):
    """Pictures of an event, as JPEG."""

    thumbnail: bytes
    """Frame of its strongest document, with boxes and arrows of the unusual words, and heat."""
    expected: bytes
    """Arrows of the words that make up half of the expected p(word); of what stands, the scene
    before it came."""
    observed: bytes
    """Arrows of all observed words; the unusual ones are large, with a dark edge; of what stands,
    the scene after the event."""


def event_pictures(
    detection: Detection, source: Source | None = None, *, moments: Sequence[int] | None = None
) -> dict[int, EventPictures]:
    """Return pictures of the most unusual moments by their rank, from 0 (all if None).

    Without the footage, or where it cannot be read, thumbnails show the model's picture of the
    scene. Empty if the model has no vocabulary.
    """
    model, pictures = detection.model, {}
    for k in range(len(detection.moments)) if moments is None else moments:
        seen = seen_moment(detection.moments[k], detection)
        if seen is not None:
            plain = background(model.picture_, seen.vocabulary, FINER * NARROW)
            pair = reduced(_expected(seen, plain.copy())), reduced(_observed(seen, plain))
            if seen.event.standing:
                pair = _before_and_after(seen, model, source)
            pictures[k] = EventPictures(jpeg(_thumbnail(seen, model, source)), *map(jpeg, pair))
    return pictures


def _before_and_after(
    seen: SeenMoment, model: TopicModel, source: Source | None
) -> tuple[Image, Image]:
    """Return the scene before something came to stand, and after the event, with its box."""
    v, event = seen.vocabulary, seen.event
    times = max(event.start - AROUND * model.clip_, 0.0), event.end + AROUND * model.clip_
    size = drawn_size(v, NARROW)
    frames = [frame_at(source, time, *size) if source else None for time in times]
    plain = background(model.picture_, v, NARROW)
    before, after = (plain.copy() if picture is None else picture for picture in frames)
    for picture in (before, after):
        draw_boxes(picture, event.boxes, v, EVENT)
    return before, after


def expected_words(event: Event, model: TopicModel) -> Array:
    """Return p(word | x_{1:t-1}) of the strongest document of an event."""
    return np.asarray(model.parameters_.word_given_behaviour @ np.array(event.expected))


def _thumbnail(seen: SeenMoment, model: TopicModel, source: Source | None) -> Image:
    """Return the frame in the middle of an event's strongest document, with all marks."""
    v, middle = seen.vocabulary, seen.event.peak + model.clip_ / 2
    picture = frame_at(source, middle, *drawn_size(v, WIDTH)) if source else None
    return _marked(background(model.picture_, v, WIDTH) if picture is None else picture, seen)


def _marked(picture: Image, seen: SeenMoment) -> Image:
    draw_unusual(picture, seen.vocabulary, seen.unusual, seen.event.boxes, seen.heat)
    return picture


def _expected(seen: SeenMoment, picture: Image) -> Image:
    v = seen.vocabulary
    if len(seen.usual) != v.n_words:
        v = replace(v, speeds=1)
    if seen.usual.any():
        draw_on_picture(picture, probable_arrows(seen.usual, v), v)
    return picture


def _observed(seen: SeenMoment, picture: Image) -> Image:
    v, words = seen.vocabulary, seen.unusual
    others = np.setdiff1d(seen.words, words)
    draw_on_picture(picture, arrows_of(others, np.full(len(others), OTHER), v), v, width=0)
    draw_boxes(picture, seen.event.boxes, v, EVENT)
    least = arrows_of(words, np.full(len(words), LEAST_LIKELY), v)
    draw_on_picture(picture, least, v, edge=INK, width=FINER)
    return picture


def frame_at(source: Source, time: float, width: int, height: int) -> Image | None:
    """Return the first frame at or after a time, or the last frame if there is none.

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


def jpeg(picture: Image) -> bytes:
    """Return a picture as JPEG, with colour at full resolution so that thin arrows keep theirs."""
    options = {
        cv2.IMWRITE_JPEG_QUALITY: QUALITY,
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR: cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444,
        cv2.IMWRITE_JPEG_OPTIMIZE: 1,
    }
    flat = [number for pair in options.items() for number in pair]
    _, encoded = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), flat)
    return encoded.tobytes()
