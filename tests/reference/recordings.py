"""Recordings with faults: the same packets in other containers, joined, with other timestamps."""

from collections.abc import Callable
from pathlib import Path

import av

TS_PACKET = 188
# Bits of a timestamp in a transport stream.
TS_CLOCK = 1 << 33
# Ticks of a transport stream per second.
TS_SECOND = 90_000

Restamp = Callable[[int, int], int]
"""The new timestamp of a packet, from its number and its timestamp, both from 0."""


def remuxed(
    source: Path,
    path: Path,
    *,
    first: int = 0,
    last: int | None = None,
    shift: Callable[[int], float] = lambda number: 0.0,
) -> Path:
    """Copy packets into another container; `shift` moves each, by its number, in seconds."""
    with av.open(str(source)) as given, av.open(str(path), "w") as made:
        stream = given.streams.video[0]
        copy = made.add_stream_from_template(stream)
        for number, packet in enumerate(given.demux(stream)):
            if packet.size and number >= first and (last is None or number < last):
                ticks = round(shift(number) / packet.time_base)
                packet.pts += ticks
                packet.dts += ticks
                packet.stream = copy
                made.mux(packet)
    return path


def in_avi(source: Path, path: Path, fourcc: bytes) -> Path:
    """Copy packets into AVI, of a codec that FFmpeg reads there but does not write."""
    with av.open(str(source)) as given, av.open(str(path), "w") as made:
        stream = given.streams.video[0]
        copy = made.add_stream("mjpeg", rate=stream.average_rate)
        copy.width, copy.height, copy.pix_fmt = stream.width, stream.height, "yuvj420p"
        made.start_encoding()
        for number, packet in enumerate(given.demux(stream)):
            if packet.size:
                stored = av.Packet(bytes(packet))
                stored.pts = stored.dts = number
                stored.time_base, stored.is_keyframe = copy.time_base, packet.is_keyframe
                stored.stream = copy
                made.mux(stored)
    path.write_bytes(path.read_bytes().replace(b"MJPG", fourcc))
    return path


def restamped(path: Path, pts: Restamp, dts: Restamp | None = None) -> Path:
    """Write other timestamps into a transport stream, in place, in ticks of 1/90000 s."""
    data = bytearray(path.read_bytes())
    number = 0
    for start in range(0, len(data), TS_PACKET):
        if not data[start + 1] & 0x40:
            continue
        body = start + 4 + (1 + data[start + 4] if data[start + 3] & 0x20 else 0)
        if data[body : body + 3] != b"\0\0\1" or data[body + 3] & 0xF0 != 0xE0:
            continue
        flags = data[body + 7]
        for bit, at, change in ((0x80, 9, pts), (0x40, 14, dts or pts)):
            if flags & bit:
                _write(data, body + at, change(number, _read(data, body + at)) % TS_CLOCK)
        number += 1
    path.write_bytes(bytes(data))
    return path


def _read(data: bytearray, at: int) -> int:
    high, middle, low = data[at], int.from_bytes(data[at + 1 : at + 3]), data[at + 3 : at + 5]
    return (high >> 1 & 7) << 30 | (middle >> 1) << 15 | int.from_bytes(low) >> 1


def _write(data: bytearray, at: int, ticks: int) -> None:
    data[at] = data[at] & 0xF0 | (ticks >> 30 & 7) << 1 | 1
    data[at + 1 : at + 3] = ((ticks >> 15 & 0x7FFF) << 1 | 1).to_bytes(2)
    data[at + 3 : at + 5] = ((ticks & 0x7FFF) << 1 | 1).to_bytes(2)


def joined(path: Path, *parts: Path) -> Path:
    """What `cat` makes of several files."""
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def turned(path: Path, quarters: int) -> Path:
    """Write into an .mp4, in place, that it is to be shown turned to the right."""
    data = bytearray(path.read_bytes())
    cosine, sine = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
    matrix = [cosine, sine, 0, -sine, cosine, 0, 0, 0, 1]
    units = [1 << 16, 1 << 16, 1 << 30] * 3
    at = data.index(b"tkhd") + 4 + 40
    for n, (value, unit) in enumerate(zip(matrix, units, strict=True)):
        data[at + 4 * n : at + 4 * n + 4] = (value * unit).to_bytes(4, signed=True)
    path.write_bytes(bytes(data))
    return path
