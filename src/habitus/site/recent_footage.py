"""The last minutes of a camera as browsers play them: its packets, never decoded.

A browser asks for a stretch, what one segment of the ring has from a moment on, as fragmented MP4;
then for the one that follows, again and again, ten minutes ago or now. Nothing is kept between two
answers, so that a viewer who is slow, or gone, costs nothing.
"""

import io
import math
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import av
import av.error

from habitus.site.packet_ring import JOINT, LEAD, MILLISECOND, segments
from habitus.video.timeline import MOST_REORDERED

# No decoder is opened, and nothing is looked for beyond the header: 1 ms instead of 8.
UNDECODED = {"codec_whitelist": "none", "analyzeduration": "1", "probesize": "32"}
# One fragment, whose times are those of the packets.
FRAGMENTED = {
    "movflags": "empty_moov+default_base_moof+frag_custom+frag_discont+skip_trailer",
    "avoid_negative_ts": "disabled",
    "use_editlist": "0",
}
# Milliseconds of a frame where there is but one.
FRAME = 40
# Packets of a segment by which the time from one frame to the next is known.
FEWEST = 5


class Stretch(NamedTuple):
    """Consecutive packets of one segment, in a file that browsers play."""

    data: bytes
    """Fragmented MP4, with times in milliseconds since the epoch."""
    codec: str
    """As browsers name it, such as avc1.64001f."""
    start: float
    """When its first packet is shown, in seconds since the epoch."""
    end: float
    """When its last frame begins to be shown."""
    last: str
    """Its last packet, as `stretch_after` takes it."""


def recorded_spans(recent: Path) -> list[tuple[float, float]]:
    """Return from when to when there are packets, in seconds since the epoch."""
    recorded, spans = segments(recent), list[tuple[float, float]]()
    nexts = [*(start for start, _ in recorded[1:]), math.inf]
    for (start, path), following in zip(recorded, nexts, strict=False):
        with suppress(FileNotFoundError):  # the oldest are deleted meanwhile
            end = max(start, min(following, path.stat().st_mtime))
            joined = bool(spans) and start - spans[-1][1] < JOINT
            spans.append((spans.pop()[0] if joined else start, end))
    return spans


def stretch_at(recent: Path, moment: float = math.inf) -> Stretch | None:
    """Return the packets from the last keyframe before a moment on.

    Where nothing was recorded since, from the newest keyframe on; None without any, or where no
    browser plays them.
    """
    recorded = segments(recent)
    first = max(0, bisect_right([start for start, _ in recorded], moment) - 1)
    wanted = [(path, 1000 * moment) for _, path in recorded[first:]]
    newest = [(path, math.inf) for _, path in recorded[:-3:-1]]
    for path, since in wanted + newest:
        stretch = _stretch(path, recorded, since=since)
        if stretch is not None:
            return stretch
    return None


def stretch_after(recent: Path, last: str) -> Stretch | None:
    """Return the packets that follow one in its segment, or the next segment; None if none do."""
    stem, _, number = last.partition("-")
    recorded = segments(recent)
    for _, path in recorded:
        first = int(number) + 1 if path.stem == stem else 0
        stretch = None if path.stem < stem else _stretch(path, recorded, first)
        if stretch is not None:
            return stretch
    return None


def _keyframe(since: float, packets: Sequence[Any], shown: Sequence[int]) -> int | None:
    """Return the last keyframe before a time; None if all packets are before it."""
    keys = [n for n, packet in enumerate(packets) if packet.is_keyframe]
    if not keys or max(shown) < since < math.inf:
        return None
    return max((n for n in keys if shown[n] <= since), default=keys[0])


def _stretch(
    path: Path,
    recorded: Sequence[tuple[float, Path]],
    first: int | None = None,
    *,
    since: float = math.inf,
) -> Stretch | None:
    """Return the packets of a segment from the first one or a time on; None without any.

    The last packet of the newest segment waits for the next one: how long it lasts is not known.
    """
    with (
        suppress(av.error.FFmpegError, IndexError),  # deleted, or nothing is in it yet
        av.open(str(path), format="matroska", options=UNDECODED) as container,
    ):
        stream = container.streams.video[0]
        packets: list[Any] = [packet for packet in container.demux(stream) if packet.size]
        shown = [int(path.stem) - LEAD + packet.pts for packet in packets]
        due = decoding_times(shown)
        n_packets = len(packets)
        if path == recorded[-1][1]:
            n_packets = n_packets - 1 if n_packets >= FEWEST else 0
        if first is None:
            first = _keyframe(since, packets[:n_packets], shown)
        codec = codec_name(stream.codec_context)
        if codec and first is not None and first < n_packets:
            chosen = slice(first, n_packets)
            data = _remuxed(stream, codec, packets[chosen], shown[chosen], due[first:])
            start, end, last = shown[first], max(shown[chosen]), n_packets - 1
            return Stretch(data, codec, start / 1000, end / 1000, f"{path.stem}-{last}")
    return None


def _remuxed(
    stream: Any, codec: str, packets: Sequence[Any], shown: Sequence[int], due: Sequence[int]
) -> bytes:
    """Return packets as fragmented MP4."""
    made = io.BytesIO()
    with av.open(made, "w", format="mp4", options=FRAGMENTED) as output:
        target = output.add_stream_from_template(stream, opaque=True)
        target.time_base, target.codec_context.codec_tag = MILLISECOND, codec[:4]
        for number, packet in enumerate(packets):
            packet.stream, packet.time_base = target, MILLISECOND
            packet.pts, packet.dts = shown[number], due[number]
            packet.duration = due[number + 1] - due[number] if number + 1 < len(due) else FRAME
            output.mux(packet)
    return made.getvalue()


def decoding_times(shown: Sequence[int]) -> list[int]:
    """Return when packets are decoded, in the order in which they are stored.

    Matroska does not say it: each when the frame of as many places before is shown as may be
    reordered. The times of a segment's first packets do not change as it grows.

    >>> decoding_times([0, 120, 40, 80, 160])
    [-640, -600, -560, -520, -480]
    """
    ordered = sorted(shown)
    step = int(median([b - a for a, b in pairwise(ordered)] or [FRAME]))
    head = [shown[0] - n * step for n in range(MOST_REORDERED, 0, -1)] if shown else []
    due = [*head, *ordered][: len(shown)]
    for n in range(1, len(due)):
        due[n] = max(due[n], due[n - 1] + 1)
    return due


def codec_name(codec: Any) -> str:
    """Return a codec as browsers name it; empty where none plays it in MP4."""
    setup = bytes(codec.extradata or b"")
    if codec.name == "h264" and len(setup) > 3 and setup[0] == 1:
        return f"avc1.{setup[1:4].hex()}"
    if codec.name == "hevc" and len(setup) > 12 and setup[0] == 1:
        return hevc_name(setup)
    return ""


def hevc_name(setup: bytes) -> str:
    """Return the name of a profile and level of HEVC, by its decoder configuration.

    >>> hevc_name(bytes.fromhex("01016000000090000000000078"))
    'hvc1.1.6.L120.90'
    """
    space, tier, profile = " ABC"[setup[1] >> 6].strip(), "LH"[setup[1] >> 5 & 1], setup[1] & 31
    compatible = int(f"{int.from_bytes(setup[2:6]):032b}"[::-1], 2)
    limits = "".join(f".{byte:X}" for byte in setup[6:12].rstrip(b"\0"))
    return f"hvc1.{space}{profile}.{compatible:X}.{tier}{setup[12]}{limits}"
