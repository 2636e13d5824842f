"""Reading a source: its frames in time order."""

from collections.abc import Callable, Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import av
import av.error

from habitus.errors import VideoError
from habitus.video.clock import Clock
from habitus.video.frames import Frame
from habitus.video.opening import duration_of, opened, reason_of, video_stream
from habitus.video.pictures import Pace, Pictures
from habitus.video.source import Source, image_paths

# Decoding from a keyframe this much earlier than needed finds every frame whole.
RUN_UP = 1.0


class Reader:
    """The frames of a source, from a given time on; iterate once, inside `with`.

    The first frame is at most as late as `since`, or the first of all. What is damaged is left
    out; `notes` tells of it afterwards. With `pace`, frames of a file that it does not want, and
    that no other frame needs, come without their picture: it is never decoded.
    """

    def __init__(
        self, source: Source, *, since: float = 0.0, pace: Callable[[], Pace] | None = None
    ) -> None:
        self.source, self.since, self.pace = source, since, pace
        self.notes: list[str] = []
        self._frames = self._read()
        first = next(self._frames, None)
        if first is None:
            raise VideoError(f"{source.name}: no frame could be decoded{self._because()}")
        self._first: Frame | None = first
        self.width, self.height = first.width, first.height

    fps: float = 25.0
    """Nominal frames a second."""
    duration: float | None = None
    """In seconds, where the source tells."""
    seekable: bool = False
    """Whether reading can start in the middle."""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self._frames.close()

    def __iter__(self) -> Iterator[Frame]:
        if self._first is not None:
            yield self._first
            self._first = None
        yield from self._frames

    def _because(self) -> str:
        return f" ({self.notes[-1]})" if self.notes else ""

    def _read(self) -> Generator[Frame]:
        if self.source.is_images:
            yield from self._read_images()
            return
        for since in (self.since, 0.0):  # from the start, where nothing earlier can be sought
            with opened(self.source) as container:
                stream = video_stream(container, self.source)
                clock = Clock(stream, self.source.fps)
                self.fps = clock.fps
                self.duration = duration_of(container, stream)
                pictures = self._pictures(container, stream, clock)
                first: Any = next(pictures, None)
                if first is None:
                    return
                clock.start(first)
                self.seekable = not self.source.is_live and first.pts is not None
                size = (first.width, first.height)
                if since == 0 or not self.seekable:
                    yield from self._frames_of(first, pictures, clock, size)
                    return
                found = self._sought(container, stream, clock)
                if found is not None:
                    yield from self._frames_of(*found, clock, size)
                    return

    def _pictures(self, container: Any, stream: Any, clock: Clock) -> Pictures:
        return Pictures(self.source, container, stream, clock, pace=self.pace, notes=self.notes)

    def _frames_of(
        self, first: Any, pictures: Pictures, clock: Clock, size: tuple[int, int]
    ) -> Iterator[Frame]:
        broken = False
        width, height = size
        for picture in chain([first], pictures):
            for pts in pictures.spared_before(picture.pts):
                yield Frame(clock.time(pts)[0], width, height, True, None)
            time, jumped = clock.time(picture.pts)
            resized = picture.width != width or picture.height != height
            if resized and not broken:
                self.notes.append(
                    f"the frame size changes from {width}x{height} to {picture.width}x"
                    f"{picture.height} at {time:.2f} s: resized to the first"
                )
            intact = not (picture.is_corrupt or jumped or resized != broken)
            yield Frame(time, width, height, intact, picture)
            broken = resized
        for pts in pictures.spared_before(None):
            yield Frame(clock.time(pts)[0], width, height, True, None)

    def _sought(self, container: Any, stream: Any, clock: Clock) -> tuple[Any, Pictures] | None:
        """Frames from a keyframe not after `since`; further back until one serves, or None."""
        run_up = RUN_UP
        while (target := self.since - run_up) > 0:
            container.seek(clock.pts(target), stream=stream, backward=True)
            pictures = self._pictures(container, stream, clock)
            first: Any = next(pictures, None)
            timed = first is not None and first.pts is not None
            if timed and clock.time(first.pts, peek=True)[0] <= self.since:
                return first, pictures
            run_up *= 4
        return None

    def _read_images(self) -> Iterator[Frame]:
        source = self.source
        if source.fps is None:
            raise VideoError(f"{source.name}: images need their frames a second: --fps 25")
        self.fps, self.seekable = source.fps, True
        paths = image_paths(source.address)
        self.duration = len(paths) / source.fps
        start = max(0, int((self.since - RUN_UP) * source.fps)) if self.since else 0
        size: tuple[int, int] | None = None
        for i in range(start, len(paths)):
            picture = self._image(paths[i])
            if picture is None:
                continue
            width, height = size or (picture.width, picture.height)
            fits = (picture.width, picture.height) == (width, height)
            if not fits:
                self.notes.append(
                    f"{paths[i].name} has {picture.width}x{picture.height} pixels, the first image "
                    f"{width}x{height}: resized"
                )
            size = (width, height)
            yield Frame(i / source.fps, width, height, fits, picture)

    def _image(self, path: Path) -> Any:
        try:
            with av.open(str(path)) as container:
                return next(container.decode(video=0), None)
        except (av.error.FFmpegError, IndexError) as error:
            self.notes.append(f"{path.name} was left out: {reason_of(error)}")
            return None
