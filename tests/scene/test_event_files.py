"""Events go to lines of JSON and come back."""

import json

import pytest

from habitus.errors import HabitusError
from habitus.scene.detection import detect_events
from habitus.scene.events import read_events
from reference.planted import detector_of, planted


@pytest.fixture(scope="module")
def events():
    corpus, model, _ = planted()
    return detect_events(detector_of(model), corpus, source="planted", share=0.05).events


def test_what_is_written_is_read(tmp_path, events):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{event.line()}\n" for event in reversed(events)))
    assert len(events) > 3
    assert read_events(path) == events
    later = [{**event.to_json(), "mood": "new field"} for event in events]
    path.write_text("\n\n".join(map(json.dumps, later)))
    assert read_events(path) == events


def test_lines_of_version_0_1_are_read(tmp_path, events):
    old = events[0].to_json()
    for name in ("surprisals", "first_document", "last_document", "peak_document"):
        del old[name]
    (tmp_path / "old.jsonl").write_text(json.dumps(old))
    (event,) = read_events(tmp_path / "old.jsonl")
    assert event.words == events[0].words
    assert (event.surprisals, event.peak_document) == ((), None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "an event of version 2, this habitus reads up to 1"),
        ({"habitus": "model"}, "line 1: not an event"),
        ({"start": "soon"}, "line 1: not an event"),
        ({"boxes": [[1, 2]]}, "line 1: not an event"),
        ({"version": None}, "line 1: not an event"),
    ],
)
def test_what_is_no_event_is_said_in_one_line(tmp_path, events, change, message):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({**events[0].to_json(), **change}))
    with pytest.raises(HabitusError, match=message):
        read_events(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2]", "line 1: not an event"),
        (b"3", "line 1: not an event"),
        (b"\xff\xfe\x00", "neither a habitus model nor a file of events"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, message):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(HabitusError, match=message):
        read_events(tmp_path / "x")
    with pytest.raises(HabitusError, match="cannot be read"):
        read_events(tmp_path / "absent")
