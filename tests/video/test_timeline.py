"""Timestamps that are taken as they are, and the same ones looked at closely."""

import av
import numpy as np
import pytest

from habitus.video.timeline import AHEAD, StreamClock, Timeline
from reference.footage import encode, moving_square


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timeline")
    return encode(folder / "a.mp4", moving_square(80), options={"bf": "3", "g": "20"})


def restamped(video, spoil, *, closely):
    """Timestamps of all packets, and what is known of them, with some that are spoilt."""
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        timeline = Timeline(container, stream, StreamClock(stream, None), ahead=AHEAD)
        if closely:
            timeline._follows = lambda packet: False
        packets = map(spoil, range(1000), container.demux(stream))
        found = [packet.pts for packet in timeline.restamped(packets)]
        known = timeline.first, timeline.front, timeline.duration, timeline.n_mended
        return found, known, timeline.steady, list(timeline.notes())


@pytest.mark.parametrize("seed", range(24))
def test_what_needs_no_change_is_what_a_close_look_finds(video, seed):
    """Some frames are late or early, some as late as another; the clock jumps, and back."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1, 512])  # ticks; a frame has 512
    shifts = {int(n): int(steps * rng.integers(-9, 9)) for n in rng.integers(80, size=seed % 6)}
    stopped = set(rng.integers(1, 80, size=seed % 3).tolist())
    far = int(rng.choice([20_000, 90_000 * 12_800]))
    before = 0

    def spoil(n, packet):
        nonlocal before
        if packet.size:
            late = -far * (n >= 30) + (far + 2_000) * (n >= 50) if seed % 2 else 0
            packet.pts = None if shifts.get(n) == 0 else packet.pts + late + shifts.get(n, 0)
            packet.dts = before if n in stopped else packet.dts + late
            before = packet.dts
        return packet

    assert restamped(video, spoil, closely=False) == restamped(video, spoil, closely=True)
