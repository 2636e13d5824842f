"""Annotated videos, and the films that they are written as."""

import av
import cv2
import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.reporting.figures.drawing import EVENT, behaviour_colour, rgb
from habitus.reporting.film import Overlay, film, film_size, write_annotated
from habitus.video import Source
from reference.two_lanes import FPS, HEIGHT, SECONDS, WIDTH, WRONG

SIZE = film_size(WIDTH, HEIGHT)
DURING = range(round(WRONG[0] * FPS), round(WRONG[1] * FPS))
LOOKED_AT = {*DURING[::5], DURING[0] - 1, DURING[-1] + 1, *(FPS * t for t in (0, 10, 20, 40, 60))}


@pytest.fixture(scope="module")
def frames(lanes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotated")
    reported = []
    write_annotated(folder / "out.mp4", lanes.detection, lanes.source, progress=reported.append)
    assert [path.name for path in folder.iterdir()] == ["out.mp4"]
    assert reported[-1].done == pytest.approx(reported[-1].total, abs=16 / FPS)
    with av.open(str(folder / "out.mp4")) as container:
        return {
            n: (frame.time, frame.to_ndarray(format="rgb24") if n in LOOKED_AT else None)
            for n, frame in enumerate(container.decode(video=0))
        }


def strip(lanes):
    return Overlay(lanes.detection, SIZE[0]).strip


def near(picture, colour):
    return np.abs(picture.astype(int) - rgb(colour)).max(axis=2) < 45


def test_every_frame_is_there_at_its_time(frames):
    assert len(frames) == SECONDS * FPS
    times = np.array([time for time, _ in frames.values()])
    np.testing.assert_allclose(times, np.arange(len(times)) / FPS, atol=1e-3)


def test_small_footage_is_enlarged_and_the_strip_is_below_it(frames, lanes):
    height, width, _ = frames[0][1].shape
    assert (width, height) == (SIZE[0], SIZE[1] + strip(lanes).height)


def test_boxes_are_drawn_during_events_and_only_then(frames):
    for time, picture in frames.values():
        if picture is None:
            continue
        yellow = near(picture[: SIZE[1]], EVENT).sum()
        if WRONG[0] <= time < WRONG[1]:
            assert yellow > 500, time
        else:
            assert yellow == 0, time


def test_boxes_surround_the_abnormal_object(frames, lanes):
    v, scale = lanes.model.vocabulary_, SIZE[0] / WIDTH
    for n in DURING[::5]:
        rows, columns = np.nonzero(near(frames[n][1][: SIZE[1]], EVENT))
        middle = WIDTH - 28 - (n / FPS - WRONG[0]) * 50 + 14
        assert columns.min() / scale - 2 * v.cell < middle < columns.max() / scale + 2 * v.cell
        assert rows.min() / scale > 30 - 2 * v.cell
        assert rows.max() / scale < 58 + 2 * v.cell


def test_the_strip_shows_behaviour_and_event(frames, lanes):
    for n in (FPS * 20, FPS * 40, DURING[15]):
        below = frames[n][1][SIZE[1] :]
        line = below[: 2 * strip(lanes).font]
        behaviour = int(lanes.detection.behaviours[n // FPS])
        assert near(line, behaviour_colour(behaviour)).mean() > 0.05
        assert (near(line, EVENT).mean() > 0.2) == (WRONG[0] <= n / FPS < WRONG[1])


def test_the_cursor_follows_the_time(frames, lanes):
    def cursor(n):
        below = frames[n][1][SIZE[1] + strip(lanes).top :]
        return int(below.min(axis=2).mean(axis=0).argmax())

    for n in (FPS * 20, FPS * 40, FPS * 60):
        assert cursor(n) == pytest.approx(SIZE[0] * n / FPS / SECONDS, abs=3)


def test_a_live_source_is_refused(lanes, tmp_path):
    with pytest.raises(InvalidInputError, match="can be read only once"):
        write_annotated(tmp_path / "x.mp4", lanes.detection, Source("rtsp://camera/1"))


def test_a_film_has_keyframes_and_its_index_first(tmp_path):
    path = tmp_path / "film.mp4"
    with film(path, (64, 48), 10.0) as add:
        for i in range(60):
            add(np.full((48, 64, 3), 4 * i, np.uint8), i / 10)
    data = path.read_bytes()
    assert 0 < data.index(b"moov") < data.index(b"mdat")
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    assert [round(frame.time, 3) for frame in frames] == [round(i / 10, 3) for i in range(60)]
    keys = [frame.time for frame in frames if frame.key_frame]
    assert np.diff([*keys, 6.0]).max() <= 2.0


def test_a_failed_film_leaves_the_old_file(tmp_path):
    with film(tmp_path / "film.mp4", (64, 48), 10.0) as add:
        add(np.zeros((48, 64, 3), np.uint8), 0.0)
    before = (tmp_path / "film.mp4").read_bytes()
    with (
        pytest.raises(cv2.error, match="Invalid number of channels"),
        film(tmp_path / "film.mp4", (64, 48), 10.0) as add,
    ):
        add(np.zeros((48, 64), np.uint8), 0.0)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_film_sizes_are_even_and_legible():
    for width, height in ((35, 33), (360, 288), (641, 481), (1280, 720), (3840, 2160)):
        wide, high = film_size(width, height)
        assert wide % 2 == high % 2 == 0
        assert 640 <= wide <= 1280
        assert abs(wide / high - width / height) < 0.02
