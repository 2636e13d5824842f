import av
import numpy as np
import pytest

from habitus.errors import InvalidInputError
from habitus.report.figures.drawing import EVENT, behaviour_colour, rgb
from habitus.report.film.annotation import film_size, write_annotated
from habitus.report.film.strip import PAST, WINDOW, Timeline, strip_for, window_at
from habitus.video import Source
from reference.two_lanes import FPS, HEIGHT, SECONDS, WIDTH, WRONG

SIZE = film_size(WIDTH, HEIGHT)
DURING = range(round(WRONG[0] * FPS), round(WRONG[1] * FPS))
LOOKED_AT = {*DURING[::5], DURING[0] - 1, DURING[-1] + 1, *(FPS * t for t in (0, 10, 20, 40, 60))}


@pytest.fixture(scope="module")
def frames(lanes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("annotated")
    told = []
    write_annotated(folder / "out.mp4", lanes.source, lanes.detection, progress=told.append)
    assert [path.name for path in folder.iterdir()] == ["out.mp4"]
    assert told[-1].done == pytest.approx(told[-1].total, abs=16 / FPS)
    with av.open(str(folder / "out.mp4")) as container:
        return {
            n: (frame.time, frame.to_ndarray(format="rgb24") if n in LOOKED_AT else None)
            for n, frame in enumerate(container.decode(video=0))
        }


def near(picture, colour):
    return np.abs(picture.astype(int) - rgb(colour)).max(axis=2) < 45


def test_every_frame_is_there_at_its_time(frames):
    assert len(frames) == SECONDS * FPS
    times = np.array([time for time, _ in frames.values()])
    np.testing.assert_allclose(times, np.arange(len(times)) / FPS, atol=1e-3)


def test_small_footage_is_enlarged_and_the_strip_is_below_it(frames):
    height, width, _ = frames[0][1].shape
    assert (width, height) == (SIZE[0], SIZE[1] + strip_for(SIZE[0]).height)


def test_boxes_are_drawn_during_events_and_only_then(frames):
    for time, picture in frames.values():
        if picture is None:
            continue
        yellow = near(picture[: SIZE[1]], EVENT).sum()
        if WRONG[0] <= time < WRONG[1]:
            assert yellow > 500, time
        else:
            assert yellow == 0, time


def test_a_box_is_around_what_went_wrong(frames, lanes):
    v, scale = lanes.model.vocabulary_, SIZE[0] / WIDTH
    for n in DURING[::5]:
        rows, columns = np.nonzero(near(frames[n][1][: SIZE[1]], EVENT))
        middle = WIDTH - 28 - (n / FPS - WRONG[0]) * 50 + 14
        assert columns.min() / scale - 2 * v.cell < middle < columns.max() / scale + 2 * v.cell
        assert rows.min() / scale > 30 - 2 * v.cell
        assert rows.max() / scale < 58 + 2 * v.cell


def test_the_strip_tells_behaviour_and_event(frames, lanes):
    for n in (FPS * 20, FPS * 40, DURING[15]):
        strip = frames[n][1][SIZE[1] :]
        line = strip[: 2 * strip_for(SIZE[0]).letters]
        behaviour = int(lanes.detection.behaviours[n // FPS])
        assert near(line, behaviour_colour(behaviour)).mean() > 0.05
        assert (near(line, EVENT).mean() > 0.2) == (WRONG[0] <= n / FPS < WRONG[1])


def test_the_cursor_moves_on(frames):
    def cursor(n):
        strip = frames[n][1][SIZE[1] + strip_for(SIZE[0]).top :]
        return int(strip.min(axis=2).mean(axis=0).argmax())

    for n in (FPS * 20, FPS * 40, FPS * 60):
        assert cursor(n) == pytest.approx(SIZE[0] * n / FPS / SECONDS, abs=3)


def test_the_window_follows_the_moment_within_the_footage():
    n = 1000
    none = np.zeros(n)
    timeline = Timeline(np.arange(n) + 7.0, 1.0, none, none.astype(int), none.astype(bool))
    assert window_at(7, timeline) == (7, 7 + WINDOW)
    assert window_at(1007, timeline) == (1007 - WINDOW, 1007)
    assert window_at(500, timeline)[0] == 500 - PAST * WINDOW
    short = timeline._replace(starts=timeline.starts[:60])
    assert window_at(40, short) == (7, 67)


def test_what_cannot_be_read_twice_is_refused(lanes, tmp_path):
    with pytest.raises(InvalidInputError, match="can be read only once"):
        write_annotated(tmp_path / "x.mp4", Source("rtsp://camera/1"), lanes.detection)
