"""Reading a source: its frames in time order, each with its time and its brightness."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import av.error
import numpy as np
from av.video.plane import VideoPlane

from habitus.arrays import Image
from habitus.errors import VideoError
from habitus.video.decoding import (
    NO_TIMESTAMPS,
    FrameChoice,
    PacketTap,
    PictureDecoder,
    survey,
    video_stream,
)
from habitus.video.opening import open_container
from habitus.video.source import Source, image_paths
from habitus.video.timeline import StreamClock

# Seconds before the time that is asked for at which decoding starts, so that every frame is whole.
RUN_UP = 1.0
# Codecs whose picture pulses at keyframes: those of MPEG-4 Part 2 and its kin, which have no filter
# in the loop. H.264 and its successors hardly do.
PULSING_CODECS = {"mpeg4", "msmpeg4v1", "msmpeg4v2", "msmpeg4", "h263", "flv", "wmv1", "wmv2"}
# Predicted frames from one keyframe to the next, from which on the second is known to pulse: with
# fewer there would be nothing left to compare.
FEWEST_PREDICTED = 2
# Pixel formats whose first plane is the brightness in eight bits.
EIGHT_BIT_LUMA = {"gray", "nv12", "nv21", "nv16", "nv24"}
EIGHT_BIT_LUMA |= {f"yuv{j}{n}p" for j in ("", "j", "a") for n in (410, 411, 420, 422, 440, 444)}


class Frame(NamedTuple):
    """A frame of a video."""

    time: float
    """Seconds since the start of the video."""
    width: int
    """Width in pixels of the video's first frame, to which all frames are resized."""
    height: int
    """Height in pixels of the video's first frame."""
    intact: bool
    """Whether it can be compared with the frame before it: no damage, no jump in time or size."""
    decoded: Any
    """PyAV's frame; None where the frame was skipped."""
    redrawn: bool = False
    """Whether the codec drew it anew after predicted frames, at another quality: the difference to
    the frame before it is more than motion."""
    turns: int = 0
    """Quarter turns to the left by which it is to be shown, as phones and cameras store it."""

    def luma(self) -> Image:
        """Return the brightness: rows x at least `width` columns; further columns are padding.

        Not a copy where that is possible: it is valid as long as the frame is.
        """
        if not self.turns:
            return _luma(self.decoded, self.width, self.height)
        width, height = self._stored(self.width, self.height)
        return _turned(_luma(self.decoded, width, height)[:, :width], self.turns)

    def luma_memory(self) -> tuple[int, int] | None:
        """Return the address of the brightness and its columns; None if `luma` must convert it."""
        if self.turns or not _has_luma(self.decoded, self.width, self.height):
            return None
        plane: Any = VideoPlane(self.decoded, 0)
        line = plane.line_size
        return (plane.buffer_ptr, line) if line >= self.width else None

    def colours(self, width: int, height: int) -> Image:
        """Return red, green and blue at another size: height x width x 3."""
        width, height = self._stored(width, height)
        picture: Image = self.decoded.to_ndarray(
            width=width, height=height, format="rgb24", threads=1
        )
        return _turned(picture, self.turns) if self.turns else picture

    def _stored(self, width: int, height: int) -> tuple[int, int]:
        """Return a size as it is before the picture is turned."""
        return (height, width) if self.turns % 2 else (width, height)


def _turned(picture: Image, turns: int) -> Image:
    return np.ascontiguousarray(np.rot90(picture, turns))


def _luma(decoded: Any, width: int, height: int) -> Image:
    """Return the first plane of PyAV's frame, converted and resized where needed."""
    if not _has_luma(decoded, width, height):
        decoded = decoded.reformat(width=width, height=height, format="gray", threads=1)
    plane: Any = VideoPlane(decoded, 0)  # `planes` would create the other two as well, each time
    line = plane.line_size
    if line < width:  # stored bottom up
        return np.ascontiguousarray(decoded.to_ndarray(format="gray"))
    return np.ndarray((height, line), np.uint8, plane)


def _has_luma(decoded: Any, width: int, height: int) -> bool:
    """Return whether the first plane of PyAV's frame is the brightness, at a size."""
    unchanged = decoded.width == width and decoded.height == height
    return unchanged and decoded.format.name in EIGHT_BIT_LUMA


class Reader:
    """The frames of a source in time order; iterate once, inside `with`.

    Parameters
    ----------
    source
        Where the video comes from.
    since
        Time in seconds to start from; the first frame is at most as late as this, or the first of
        the video.
    pace
        Makes a function that says whether the frame of a time is needed. Frames of a file that are
        not needed, and that no other frame is predicted from, are not decoded: their `decoded` is
        None.
    steady
        Whether the timestamps of a file can be used as they are; found out from its packets where
        it matters, if None.
    tap
        Given the packets of a video as they are decoded; not for images.

    Attributes
    ----------
    width, height
        Size of the first frame in pixels, as it is to be shown.
    fps
        Nominal frames per second.
    timed
        Whether frames have times of their own, or a frame rate that was given.
    declared
        Number of seconds that the header of a recording declares; it may be wrong. None if it
        declares none.
    notes
        Damage that was skipped, jumps of the clock, changes of size; complete after the last frame.

    Raises
    ------
    VideoError
        If the source cannot be opened, or has no frame.

    Examples
    --------
    >>> Reader(Source("no such file.mp4"))
    Traceback (most recent call last):
    habitus.errors.VideoError: no such file.mp4: no such file
    """

    fps: float = 25.0
    timed: bool = True
    declared: float | None = None

    def __init__(
        self,
        source: Source,
        *,
        since: float = 0.0,
        pace: Callable[[], FrameChoice] | None = None,
        steady: bool | None = None,
        tap: PacketTap | None = None,
    ) -> None:
        self.source, self.since, self.pace, self.steady = source, since, pace, steady
        self.tap = tap
        self.notes: list[str] = []
        self._frames = self._read()
        first = next(self._frames, None)
        if first is None:
            reason = f" ({self.notes[-1]})" if self.notes else ""
            raise VideoError(f"{source.name}: no frame could be decoded{reason}")
        self._first: Frame | None = first
        self.width, self.height = first.width, first.height

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self._frames.close()

    def __iter__(self) -> Iterator[Frame]:
        if self._first is not None:
            yield self._first
            self._first = None
        yield from self._frames

    def _read(self) -> Generator[Frame]:
        if self.source.is_images:
            yield from self._read_images()
            return
        for since in (self.since, 0.0):  # from the start, where no earlier frame can be sought
            with open_container(self.source) as container, self._stream(container) as stream:
                clock = StreamClock(stream, self.source.fps)
                self.timed = clock.given or not container.format.flags & NO_TIMESTAMPS
                if stream.duration:
                    self.declared = clock.seconds(stream.duration)
                pictures = self._decoder(container, stream, clock)
                first: Any = next(pictures, None)
                if first is None:
                    return
                clock.start(first)
                self.fps = clock.fps
                turns = round(first.rotation / 90) % 4
                size = (first.width, first.height)[:: -1 if turns % 2 else 1]
                shown = size, turns
                if since == 0 or not self._is_steady():
                    yield from self._frames_of(first, pictures, clock, shown)
                    return
                found = self._sought(container, stream, clock)
                if found is not None:
                    yield from self._frames_of(*found, clock, shown)
                    return

    @contextmanager
    def _stream(self, container: Any) -> Iterator[Any]:
        """Give the video stream of a container, tapped while the block runs."""
        stream = video_stream(container, self.source)
        if self.tap is None:
            yield stream
            return
        self.tap.start(stream, self.notes)
        try:
            yield stream
        finally:
            self.tap.end()

    def _is_steady(self) -> bool:
        if self.steady is None:
            self.steady = not self.source.is_live and survey(self.source).steady
        return self.steady

    def _decoder(self, container: Any, stream: Any, clock: StreamClock) -> PictureDecoder:
        return PictureDecoder(
            self.source, container, stream, clock, pace=self.pace, notes=self.notes, tap=self.tap
        )

    def _sought(
        self, container: Any, stream: Any, clock: StreamClock
    ) -> tuple[Any, PictureDecoder] | None:
        """Return the first picture and the decoder from a keyframe not after `since`, or None."""
        run_up = RUN_UP
        while (target := self.since - run_up) > 0:
            container.seek(clock.pts(target), stream=stream, backward=True)
            pictures = self._decoder(container, stream, clock)
            first: Any = next(pictures, None)
            if first is not None and clock.at(first.pts) <= self.since:
                return first, pictures
            run_up *= 4
        return None

    def _frames_of(
        self,
        first: Any,
        pictures: PictureDecoder,
        clock: StreamClock,
        shown: tuple[tuple[int, int], int],
    ) -> Iterator[Frame]:
        """Yield decoded and skipped frames with their times, all of the size of the first."""
        was_resized, n_predicted = False, 0
        (width, height), turns = shown
        stored = (height, width) if turns % 2 else (width, height)
        is_broken = pictures.timeline.is_broken
        pulses = pictures.codec.name in PULSING_CODECS
        for picture in chain([first], pictures):
            for pts in pictures.skipped_before(picture.pts):
                n_predicted += 1
                yield Frame(clock.time(pts), width, height, not is_broken(pts), None)
            time = clock.time(picture.pts)
            resized = (picture.width, picture.height) != stored
            if resized and not was_resized:
                self.notes.append(
                    f"the frame size changes from {stored[0]}x{stored[1]} to {picture.width}x"
                    f"{picture.height} at {time:.2f} s: resized to the first"
                )
            broken = is_broken(picture.pts) or resized != was_resized
            intact = not (picture.is_corrupt or broken)
            redrawn = pulses and picture.key_frame and n_predicted >= FEWEST_PREDICTED
            yield Frame(time, width, height, intact, picture, redrawn, turns)
            was_resized, n_predicted = resized, 0 if picture.key_frame else n_predicted + 1
        for pts in pictures.skipped_before(None):
            yield Frame(clock.time(pts), width, height, not is_broken(pts), None)

    def _read_images(self) -> Iterator[Frame]:
        source = self.source
        if source.fps is None:
            raise VideoError(
                f"{source.name}: images have no times: give fps, their frames per second",
                parameter="fps",
            )
        self.fps = source.fps
        paths = image_paths(source.address)
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
        """Return the decoded image, or None if it is damaged."""
        try:
            with open_container(Source(str(path))) as container:
                return next(container.decode(video=0), None)
        except (VideoError, av.error.FFmpegError, IndexError) as error:
            self.notes.append(f"{path.name} was skipped: {str(error).splitlines()[0]}")
            return None
