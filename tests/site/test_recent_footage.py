"""The last minutes of a camera in stretches: every frame once, as it was, at its time."""

import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import av
import pytest

from habitus.site.packet_ring import segments
from habitus.site.recent_footage import (
    Stretch,
    decoding_times,
    recorded_spans,
    stretch_after,
    stretch_at,
)
from reference.live_ring import SECONDS, clock_video, recorded

EPOCH = 1_700_000_000.0
FPS, REORDERED = 25, 5
CODECS = {
    "h264": {"codec": "libx264", "options": {"g": "25", "bf": "3"}},
    "h264 without reordering": {"codec": "libx264", "options": {"g": "50", "bf": "0"}},
    "hevc": {"codec": "libx265", "options": {"g": "25", "x265-params": "log-level=none"}},
}


@pytest.fixture(scope="module", params=CODECS)
def ring(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring with twenty seconds, one video twice."""
    folder = tmp_path_factory.mktemp("ring")
    video = clock_video(folder / "video.mkv", **CODECS[request.param])
    for turn in range(2):
        recorded(video, folder / "recent", at=EPOCH + turn * SECONDS)
    return folder / "recent"


def stretches(recent: Path, start: float) -> Iterator[Stretch]:
    stretch = stretch_at(recent, start)
    while stretch is not None:
        yield stretch
        stretch = stretch_after(recent, stretch.last)


def shown(stretch: Stretch) -> list[float]:
    """Times of the frames of a stretch, decoded."""
    with av.open(io.BytesIO(stretch.data)) as container:
        return [float(frame.pts * frame.time_base) for frame in container.decode(video=0)]


def due(stretch: Stretch) -> tuple[list[float], list[float]]:
    """When the packets of a stretch are decoded, and when they are shown."""
    with av.open(io.BytesIO(stretch.data)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert all(packet.dts <= packet.pts for packet in packets)
        base = float(packets[0].time_base)
        return [packet.dts * base for packet in packets], [packet.pts * base for packet in packets]


def test_what_follows_is_whole(ring: Path) -> None:
    found = list(stretches(ring, EPOCH))
    times = [time for stretch in found for time in due(stretch)[1]]
    assert len(times) == 2 * SECONDS * FPS - 1, "the last packet waits for the one that follows it"
    expected = [EPOCH + n / FPS for n in range(2 * SECONDS * FPS - REORDERED)]
    assert sorted(times)[: 1 - REORDERED] == pytest.approx(expected, abs=0.002)
    assert [stretch.start for stretch in found] == sorted(stretch.start for stretch in found)
    for stretch in found:
        assert all(a < b for a, b in pairwise(due(stretch)[0]))
        assert stretch.end == pytest.approx(max(shown(stretch)), abs=0.002)


def test_a_stretch_begins_with_the_key_frame_before_a_moment(ring: Path) -> None:
    stretch = stretch_at(ring, EPOCH + 7.3)
    assert stretch is not None
    assert EPOCH + 5.2 < stretch.start <= EPOCH + 7.3
    assert shown(stretch)[0] == pytest.approx(stretch.start, abs=0.002)
    before = stretch_at(ring, EPOCH - 100)
    assert before is not None
    assert before.start == pytest.approx(EPOCH)


@pytest.mark.parametrize("moment", [EPOCH + 1000, 1e11])
def test_after_all_that_was_recorded_there_is_the_newest(ring: Path, moment: float) -> None:
    stretch = stretch_at(ring, moment)
    assert stretch is not None
    assert stretch.start > EPOCH + 2 * SECONDS - 2.1
    assert stretch_after(ring, stretch.last) is None


def test_decoding_times_of_a_segment_that_grows_stay() -> None:
    """What was sent already, and what follows, go together."""
    order = [0, 120, 40, 80, 240, 160, 200]
    whole = [280 * k + n for k in range(9) for n in order]
    for n in range(4, len(whole)):
        grown = decoding_times(whole[: n + 1])
        assert grown[:n] == decoding_times(whole[:n])
        assert all(due <= time for due, time in zip(grown, whole, strict=False))


def test_a_segment_is_read_while_it_is_written(tmp_path: Path) -> None:
    """Each packet once, however often it is asked."""
    video = clock_video(tmp_path / "video.mkv")
    sent: list[float] = []
    last = [""]

    def look(seconds: float) -> None:
        stretch = stretch_after(recent, last[0]) if last[0] else stretch_at(recent, EPOCH)
        if stretch is not None:
            last[0] = stretch.last
            sent.extend(due(stretch)[1])

    recent = tmp_path / "recent"
    recorded(video, recent, at=EPOCH, meanwhile=look)
    look(EPOCH + SECONDS)
    look(EPOCH + SECONDS)
    expected = [EPOCH + n / FPS for n in range(SECONDS * FPS - REORDERED)]
    assert len(sent) == len(set(sent)) == SECONDS * FPS - 1
    assert sorted(sent)[: 1 - REORDERED] == pytest.approx(expected, abs=0.002)


def test_gaps_are_gaps(tmp_path: Path) -> None:
    video = clock_video(tmp_path / "video.mkv")
    for at in (EPOCH, EPOCH + SECONDS, EPOCH + 10 * SECONDS):
        recorded(video, tmp_path / "recent", at=at)
    spans = recorded_spans(tmp_path / "recent")
    assert spans == [
        (pytest.approx(EPOCH), pytest.approx(EPOCH + 2 * SECONDS, abs=0.1)),
        (pytest.approx(EPOCH + 10 * SECONDS), pytest.approx(EPOCH + 11 * SECONDS, abs=0.1)),
    ]
    stretch = stretch_at(tmp_path / "recent", EPOCH + 5 * SECONDS)
    assert stretch is not None
    assert stretch.start == pytest.approx(EPOCH + 10 * SECONDS), "the next that there is"


def test_nothing_is_played_of_nothing(tmp_path: Path) -> None:
    assert recorded_spans(tmp_path) == []
    assert stretch_at(tmp_path) is None
    assert stretch_after(tmp_path, "001700000000000-5") is None
    (tmp_path / "001700000000000.mkv").write_bytes(b"not Matroska")
    assert stretch_at(tmp_path) is None


def test_a_codec_that_browsers_do_not_play_in_mp4_is_left_to_pictures(tmp_path: Path) -> None:
    video = clock_video(tmp_path / "video.mkv", codec="mpeg4", options={"g": "25"})
    recorded(video, tmp_path / "recent", at=EPOCH)
    assert stretch_at(tmp_path / "recent") is None


def test_segments_join_without_a_seam_whatever_the_network_does(tmp_path: Path) -> None:
    """Packets arrive up to 0.1 s late; the camera's clock says when they were."""
    video = clock_video(tmp_path / "video.mkv")
    recorded(video, tmp_path / "recent", at=EPOCH, late=lambda n: 0.1 * (n * 7 % 11) / 11)
    assert len(segments(tmp_path / "recent")) > 1
    times = sorted(t for stretch in stretches(tmp_path / "recent", EPOCH) for t in shown(stretch))
    steps = [b - a for a, b in pairwise(times[:-REORDERED])]
    assert max(steps) < 1.1 / FPS
    assert min(steps) > 0.9 / FPS
