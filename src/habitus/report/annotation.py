"""Footage with what was found in it: boxes, the least likely words, behaviour and normality."""

import os
from collections.abc import Callable

import numpy as np

from habitus.documents.extraction import Progress
from habitus.errors import InvalidInputError
from habitus.events import Detection
from habitus.model import MarkovClusteringTopicModel
from habitus.report.arrows import Picture, arrows_of, draw_boxes, draw_on_picture
from habitus.report.backdrop import resized
from habitus.report.film import film, film_size
from habitus.report.palette import EVENT
from habitus.report.places import places_of
from habitus.report.strip import draw_chart, draw_strip, event_at, strip_for, window_at
from habitus.report.timeline import timeline_of
from habitus.video import Frame, Reader, Source

# Times are rounded by their containers: a frame this much early still opens the next document.
ROUNDING = 1e-4
# Strength of the arrows of the least likely words.
STRENGTH = 0.25


def write_annotated(
    path: str | os.PathLike[str],
    source: Source,
    detection: Detection,
    model: MarkovClusteringTopicModel,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Write an H.264 video of the source, from the first document that was judged on.

    Small footage is enlarged. During an event, boxes and arrows show the least likely words of each
    abnormal document; the strip below is never over the footage.
    """
    if source.is_live:
        raise InvalidInputError(
            f"an annotated video needs a file; {source.name} can be read only once"
        )
    start = film_start(detection)
    with Reader(source, since=start) as reader:
        size = film_size(reader.width, reader.height)
        overlay = Overlay(detection, model, size[0])
        whole = (size[0], size[1] + overlay.strip.height)
        with film(path, whole, reader.fps) as add:
            for n, frame in enumerate(reader):
                if frame.time < start - ROUNDING:
                    continue
                add(overlay.over(_picture(frame, size), frame.time), frame.time - start)
                if n % 16 == 0:
                    progress(Progress(frame.time, reader.duration, n, frame.time - start))


def film_start(detection: Detection) -> float:
    """Seconds of the source at which its annotated video starts."""
    return float(detection.corpus.times[0]) if len(detection.corpus) else 0.0


def _picture(frame: Frame, size: tuple[int, int]) -> Picture:
    """A frame at the film's size; OpenCV enlarges three times as fast as FFmpeg."""
    if size[0] <= frame.width:
        return frame.colours(*size)
    return resized(frame.colours(frame.width, frame.height), *size)


class Overlay:
    """What is drawn over and under frames; most of it once a document."""

    def __init__(self, detection: Detection, model: MarkovClusteringTopicModel, width: int) -> None:
        self.detection, self.vocabulary = detection, model.vocabulary_
        self.places = places_of(detection)
        self.timeline = timeline_of(detection, model.clip_)
        self.strip = strip_for(width)
        self.document: int | None = -1
        self.window = window_at(0.0, self.timeline)
        self.chart = draw_chart(self.strip, self.timeline, self.places, self.window)

    def over(self, picture: Picture, time: float) -> Picture:
        """A frame with everything drawn on it, and the strip below."""
        document = self._document_at(time)
        if document != self.document:
            self.document, self.window = document, window_at(time, self.timeline)
            self.chart = draw_chart(self.strip, self.timeline, self.places, self.window)
        behaviour = event = None
        if document is not None:
            behaviour = int(self.detection.behaviours[document])
            event = event_at(document, self.places, self.detection)
            self._mark(picture, document)
        strip = draw_strip(self.chart, self.strip, time, self.window, behaviour, event)
        return np.concatenate([picture, strip])

    def _document_at(self, time: float) -> int | None:
        starts = self.timeline.starts
        found = int(np.searchsorted(starts, time + ROUNDING, side="right")) - 1
        inside = found >= 0 and time < starts[found] + self.timeline.clip + ROUNDING
        return found if inside else None

    def _mark(self, picture: Picture, document: int) -> None:
        moment, v = self.detection.moments.get(document), self.vocabulary
        if moment is None or v is None:
            return
        draw_boxes(picture, moment.boxes, v, EVENT)
        strengths = np.full(len(moment.words), STRENGTH)
        draw_on_picture(picture, arrows_of(moment.words, strengths, v), v)
