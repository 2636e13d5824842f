"""Pictures of events."""

import cv2
import numpy as np
import pytest

from habitus.corpus.vocabulary import Direction, Vocabulary
from habitus.errors import InvalidInputError
from habitus.reporting.figures.drawing import COLOURS, EVENT, arrows_of, rgb
from habitus.reporting.figures.moments import (
    NARROW,
    WIDTH,
    event_pictures,
    event_thumbnails,
    expected_words,
    frame_at,
    seen_moment,
    write_events,
)
from habitus.scene.events import read_events
from habitus.video import Source
from reference.footage import limited
from reference.two_lanes import FPS, SECONDS, pictures


def decoded(jpeg):
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(jpeg, np.uint8), 1), cv2.COLOR_BGR2RGB)


def near(picture, colour):
    return np.abs(picture.astype(int) - rgb(colour)).max(axis=2) < 40


@pytest.fixture(scope="module")
def shown(lanes):
    return event_pictures(lanes.detection, lanes.source)[0]


def test_a_thumbnail_is_the_frame_with_boxes_and_arrows(lanes, shown):
    picture = decoded(shown.thumbnail)
    v, event = lanes.model.vocabulary_, lanes.detection.events[0]
    scale = WIDTH / v.width
    assert picture.shape == (round(v.height * scale), WIDTH, 3)
    left, top, right, bottom = (round(side * scale) for side in event.boxes[0])
    yellow, aside = near(picture, EVENT), round(v.cell * scale / 2)
    edge = yellow[top:bottom, left - aside - 4 : left - aside + 5]
    assert edge.any(axis=1).mean() > 0.9
    assert not yellow[bottom + 2 * aside :].any()
    orange = near(picture, COLOURS[Direction.LEFT])
    assert orange[top:bottom, left:right].sum() > 100


def test_a_thumbnail_shows_the_strongest_document(lanes, shown):
    v, peak = lanes.model.vocabulary_, lanes.detection.events[0].peak
    picture = decoded(shown.thumbnail)[..., 1]
    below = cv2.resize(picture, (v.width, v.height), interpolation=cv2.INTER_AREA)[80:]
    drawn = list(pictures(int(peak) + 4))
    middle = round((peak + 0.5) * FPS)
    apart = {
        n: np.abs(below - limited(drawn[n][80:])).mean() for n in range(middle - 30, middle + 30, 5)
    }
    assert min(apart, key=apart.get) == middle


def test_expected_against_observed_motion(lanes, shown):
    event = lanes.detection.events[0]
    expected, observed = decoded(shown.expected), decoded(shown.observed)
    assert expected.shape[1] == observed.shape[1] == NARROW
    usual = lanes.model.parameters_.word_given_behaviour[:, np.argmax(event.expected)].argmax()
    v = lanes.model.vocabulary_
    (way,) = v.places([usual]).directions
    assert near(expected, COLOURS[Direction(way)]).sum() > 300
    assert near(expected, COLOURS[Direction.LEFT]).sum() < 20
    for x, y in arrows_of(event.words, np.ones(10), v).outlines.mean(axis=1) * NARROW / v.width:
        around = observed[round(y) - 2 : round(y) + 3, round(x) - 2 : round(x) + 3]
        assert near(around, COLOURS[Direction.LEFT]).any()


def test_without_footage_thumbnails_show_the_scene(lanes, documents, tmp_path):
    gone = Source(str(tmp_path / "gone.mp4"))
    for source in (None, gone, Source("rtsp://camera/live")):
        (jpeg,) = event_thumbnails(lanes.detection, source)
        assert near(decoded(jpeg), EVENT).any()
    assert len(event_thumbnails(documents.detection)) == len(documents.detection.events)


def test_after_the_end_the_last_frame_is_returned(lanes):
    last, beyond = (frame_at(lanes.source, time, 96, 72) for time in (SECONDS - 0.1, 500.0))
    assert last is not None
    assert beyond is not None
    assert np.abs(last.astype(int) - beyond).mean() < 3


def test_pictures_of_some_events(documents):
    found = event_pictures(documents.detection, moments=[1, 4])
    assert sorted(found) == [1, 4]


def test_expected_words_are_a_distribution(lanes):
    expected = expected_words(lanes.detection.events[0], lanes.model)
    assert expected.sum() == pytest.approx(1, rel=1e-9)


def test_heat_is_where_it_is_unusual(habitual):
    """The thing that goes the wrong way is the hottest part of its picture."""
    v, event = habitual.detection.habits.vocabulary, habitual.detection.moments[0]
    seen = seen_moment(event, habitual.detection)
    hot = np.argwhere(seen.heat > seen.heat.max() / 2) * v.cell_side
    left, top, right, bottom = event.boxes[0]
    inside = (hot[:, 1] >= left) & (hot[:, 1] < right) & (hot[:, 0] >= top) & (hot[:, 0] < bottom)
    assert inside.mean() > 0.8
    plain = frame_at(habitual.source, event.peak + 0.5, WIDTH, round(WIDTH * v.height / v.width))
    drawn = decoded(event_pictures(habitual.detection, habitual.source, moments=[0])[0].thumbnail)
    redder = drawn[..., 0].astype(int) - plain[..., 0]
    scale = WIDTH / v.width
    within = redder[round(top * scale) : round(bottom * scale), round(left * scale) :]
    assert within.mean() > redder[round((bottom + 16) * scale) :].mean() + 10


def test_fine_arrows_point_their_way():
    fine = Vocabulary(1, 1, directions=12, speeds=16)
    words = fine.words(0, 0, np.arange(12), 3)
    outlines = arrows_of(words, np.ones(12), fine).outlines
    ahead = outlines[:, 3] - outlines[:, [0, 6]].mean(axis=1)
    angles = np.degrees(np.arctan2(-ahead[:, 0], -ahead[:, 1]))
    np.testing.assert_allclose(angles % 360, (np.arange(12) - 1) * 30 % 360, atol=1e-6)


def test_events_of_one_file_keep_their_thumbnails(habitual, tmp_path):
    found = write_events(tmp_path / "events.jsonl", habitual.detection, None, moments=True)
    named = {event.thumbnail for event in found.moments}
    assert len(named) == len(found.moments) == len(read_events(tmp_path / "events.jsonl"))
    assert all((tmp_path / name).is_file() for name in named)


def test_events_that_cannot_be_written_leave_no_picture(habitual, tmp_path):
    folder, file = tmp_path / "events-thumbnails", tmp_path / "events.jsonl"
    file.mkdir()
    with pytest.raises(InvalidInputError):
        write_events(file, habitual.detection, moments=True)
    assert not folder.exists()
    folder.mkdir()
    (folder / "other.jpg").touch()
    with pytest.raises(InvalidInputError):
        write_events(file, habitual.detection, moments=True)
    assert [path.name for path in folder.iterdir()] == ["other.jpg"]
