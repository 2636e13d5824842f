"""Opening a source: its container and its video stream, or an error that says what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import av.error

from habitus.errors import VideoError
from habitus.video.source import Source


@contextmanager
def opened(source: Source) -> Iterator[Any]:
    """PyAV's container of a source, closed in the end."""
    if not source.is_live:
        path = Path(source.address)
        if not path.exists():
            raise VideoError(f"{source.name}: no such file")
        if path.stat().st_size == 0:
            raise VideoError(f"{source.name}: the file is empty")
    address = "pipe:0" if source.address == "-" else source.address
    options = {"rtsp_transport": "tcp"} if address.startswith("rtsp") else {}
    try:
        container = av.open(address, timeout=source.timeout, options=options)
    except av.error.ExitError:
        raise VideoError(f"{source.name}: no answer within {source.timeout:g} s") from None
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise VideoError(
            f"{source.name}: not a video that can be opened: {reason_of(error)}"
        ) from error
    try:
        yield container
    finally:
        container.close()


def video_stream(container: Any, source: Source) -> Any:
    """The first video stream of a container, set up for decoding."""
    streams = container.streams.video
    if container.format.name == "tty":  # FFmpeg would draw any text
        raise VideoError(f"{source.name}: text, not video")
    if not streams:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        raise VideoError(f"{source.name}: no video in it, only {kinds}")
    stream = streams[0]
    if stream.codec_context is None:
        raise VideoError(f"{source.name}: its video is cut off before the first frame")
    stream.codec_context.thread_count = 1  # parallel work is by stretches of the video
    stream.thread_type = "NONE"
    # Frames that no other is predicted from are left unsmoothed: a tenth of the time, no drift.
    stream.codec_context.options = {"skip_loop_filter": "all" if source.fast else "noref"}
    if source.fast:
        stream.codec_context.skip_frame = "NONREF"
    return stream


def duration_of(container: Any, stream: Any) -> float | None:
    """In seconds, where the stream or its container tells."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def reason_of(error: Exception) -> str:
    """What FFmpeg says went wrong, in one line."""
    return str(getattr(error, "strerror", None) or error).split("\n")[0]
