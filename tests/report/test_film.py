import av
import cv2
import numpy as np
import pytest

from habitus.report.film.annotation import film, film_size


def test_a_film_is_seekable_and_begins_at_once(tmp_path):
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


def test_what_fails_leaves_nothing(tmp_path):
    with film(tmp_path / "film.mp4", (64, 48), 10.0) as add:
        add(np.zeros((48, 64, 3), np.uint8), 0.0)
    before = (tmp_path / "film.mp4").read_bytes()
    with (
        pytest.raises(cv2.error, match="Invalid number of channels"),
        film(tmp_path / "film.mp4", (64, 48), 10.0) as add,
    ):
        add(np.zeros((48, 64), np.uint8), 0.0)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_sizes_are_even_and_legible():
    for width, height in ((35, 33), (360, 288), (641, 481), (1280, 720), (3840, 2160)):
        wide, high = film_size(width, height)
        assert wide % 2 == high % 2 == 0
        assert 640 <= wide <= 1280
        assert abs(wide / high - width / height) < 0.02
