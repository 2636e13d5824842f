import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from habitus.site.journal import SiteEvent
from habitus.site.pipe_messages import CameraState, JudgedDocument, PictureSize, StateChanged
from habitus.site.relearning import LearningFailure, LearntModel
from habitus.web import store
from habitus.web.database import (
    CameraRow,
    Channel,
    EventRow,
    LearningRow,
    Minute,
    OutboxEntry,
    TroubleRow,
)
from habitus.web.server import Console
from reference.consoles import START, add_camera, entry, event_json

SHORT = event_json(start=5.0, end=6.0, normality=-12.0)
PICTURES = {"thumbnail": "a1.jpg", "heat": "a1.heat.jpg"}
STARTED = entry("a1", end=None, event=SHORT, n_bytes=3000, **PICTURES)
ENDED = entry(
    "a1",
    end=START + 4,
    peak=START + 2,
    event=event_json(start=5.0, end=9.0, normality=-13.0),
    n_bytes=4000,
    **PICTURES,
)
CLIP = replace(ENDED, details=None, thumbnail=None, heat=None, clip="a1.mp4", n_bytes=50_000)


def add_webhook(console: Console, **fields: Any) -> None:
    with console.database.transaction() as session:
        session.add(
            Channel(
                **{
                    "name": "Hook",
                    "kind": "webhook",
                    "secret_settings": b"",
                    "shown_settings": {},
                    "cameras": [],
                    "enabled": True,
                    **fields,
                }
            )
        )


def quieter(event: SiteEvent) -> SiteEvent:
    """The same, but no alarm."""
    assert event.details is not None
    return replace(event, details=replace(event.details, alarm=False))


def ingest(console: Console, *entries: SiteEvent) -> list[bool]:
    changed = []
    for event in entries:
        with console.database.transaction() as session:
            changed.append(store.ingest(session, "north", event))
    return changed


def told(console: Console) -> list[str]:
    with console.database.session() as session:
        return list(session.scalars(select(OutboxEntry.subject).order_by(OutboxEntry.id)))


def only_event(console: Console) -> EventRow:
    with console.database.session() as session:
        return session.scalars(select(EventRow)).one()


@pytest.fixture
def watched(any_console: Console) -> Console:
    add_camera(any_console)
    add_webhook(any_console)
    return any_console


def test_an_event_is_written_from_its_start_to_its_clip(watched: Console) -> None:
    assert ingest(watched, STARTED) == [True]
    assert only_event(watched).end is None
    assert ingest(watched, ENDED, CLIP) == [True, True]
    event = only_event(watched)
    assert (event.start, event.end, event.peak) == (START, START + 4, START + 2)
    assert (event.normality, event.clip, event.thumbnail) == (-13.0, "a1.mp4", "a1.jpg")
    assert (event.n_bytes, event.clip_bytes) == (54_000, 50_000)
    assert ENDED.details is not None
    assert event.details == json.loads(ENDED.details.line())
    assert told(watched) == ["a1/started", "a1/ended"]


@pytest.mark.parametrize(
    "again",
    [
        [STARTED, STARTED, ENDED, CLIP],
        [STARTED, ENDED, STARTED, CLIP, STARTED],
        [STARTED, ENDED, CLIP, STARTED, ENDED, CLIP],
        [ENDED, CLIP],
        [STARTED, CLIP, ENDED],
    ],
)
def test_repetition_changes_nothing(watched: Console, again: list[SiteEvent]) -> None:
    ingest(watched, *again)
    event = only_event(watched)
    assert (event.end, event.normality, event.clip) == (START + 4, -13.0, "a1.mp4")
    assert (event.n_bytes, event.clip_bytes) == (54_000, 50_000)
    assert sorted(told(watched)) == ["a1/ended", "a1/started"]
    assert ingest(watched, STARTED, ENDED, CLIP) == [False, False, False]


def test_what_is_no_alarm_is_kept_but_not_told(watched: Console) -> None:
    ingest(watched, quieter(STARTED), quieter(ENDED))
    assert not only_event(watched).alarm
    assert told(watched) == []


def test_an_event_is_told_once_it_becomes_an_alarm(watched: Console) -> None:
    ingest(watched, quieter(STARTED))
    assert ingest(watched, STARTED) == [True]
    assert only_event(watched).alarm
    assert told(watched) == ["a1/started"]


def test_half_the_budget_follows_the_latest_entry(watched: Console) -> None:
    ingest(watched, STARTED)
    assert only_event(watched).at_half
    ingest(watched, entry("a1", normality=-10.0))
    assert not only_event(watched).at_half


def test_what_belongs_to_nothing_is_dropped(watched: Console) -> None:
    assert ingest(watched, CLIP) == [False]
    with watched.database.transaction() as session:
        assert not store.ingest(session, "gone", STARTED)
        assert session.scalar(select(func.count()).select_from(EventRow)) == 0


def test_nothing_is_told_of_what_was_not_committed(watched: Console) -> None:
    with watched.database.session() as session:
        store.ingest(session, "north", STARTED)
        session.rollback()
    assert told(watched) == []
    ingest(watched, STARTED)
    assert told(watched) == ["a1/started"]


def test_events_of_a_dead_process_end_at_their_last_known_time(watched: Console) -> None:
    ingest(watched, entry("a1", end=None, event=SHORT | {"end": 8.0}))
    with watched.database.transaction() as session:
        assert store.close_events(session, "north") == ["a1"]
    assert only_event(watched).end == START + 3
    assert told(watched) == ["a1/started", "a1/ended"]
    ingest(watched, ENDED)  # it was in the journal after all
    assert only_event(watched).end == START + 4
    assert told(watched) == ["a1/started", "a1/ended"]


def change(console: Console, state: CameraState, since: float, reason: str = "") -> bool:
    with console.database.transaction() as session:
        return store.set_state(session, "north", StateChanged(state, since, reason))


def notify_troubles(console: Console, now: float) -> int:
    with console.database.transaction() as session:
        return store.notify_troubles(session, now)


def troubles(console: Console) -> list[tuple[str, float, float | None]]:
    with console.database.session() as session:
        rows = session.scalars(select(TroubleRow).order_by(TroubleRow.id))
        return [(row.kind, row.start, row.end) for row in rows]


def test_a_state_is_written_with_its_trouble(watched: Console) -> None:
    assert change(watched, CameraState.WATCHING, START)
    assert change(watched, CameraState.LOST, START + 5, "no frame")
    assert not change(watched, CameraState.LOST, START + 6, "no frame")
    with watched.database.session() as session:
        camera = session.get_one(CameraRow, "north")
        assert (camera.state, camera.since, camera.reason) == ("lost", START + 5, "no frame")
    assert troubles(watched) == [("lost", START + 5, None)]
    change(watched, CameraState.CONNECTING, START + 7)
    assert troubles(watched) == [("lost", START + 5, None)]
    change(watched, CameraState.WATCHING, START + 9)
    assert troubles(watched) == [("lost", START + 5, START + 9)]
    assert told(watched) == []


def test_trouble_that_lasts_is_told_and_so_is_its_end(watched: Console) -> None:
    change(watched, CameraState.FROZEN, START)
    assert notify_troubles(watched, START + 59) == 0
    assert notify_troubles(watched, START + 61) == 1
    assert notify_troubles(watched, START + 62) == 0
    change(watched, CameraState.COVERED, START + 70)  # told at once, as the camera was not well
    change(watched, CameraState.WATCHING, START + 80)
    kinds = [subject.rpartition("/")[2] for subject in told(watched)]
    assert kinds == ["trouble", "trouble", "recovered"]
    assert troubles(watched) == [
        ("frozen", START, START + 70),
        ("covered", START + 70, START + 80),
    ]


def test_a_clock_that_is_set_back_delays_no_trouble(watched: Console) -> None:
    change(watched, CameraState.LOST, START)
    assert notify_troubles(watched, START - 3600) == 1
    assert notify_troubles(watched, START - 3500) == 0


def test_a_camera_that_is_switched_off_is_no_news(watched: Console) -> None:
    change(watched, CameraState.OFF, START)
    assert notify_troubles(watched, START + 1000) == 0
    change(watched, CameraState.WATCHING, START + 2000)
    assert told(watched) == []


def test_a_clock_that_is_set_back_ends_no_trouble_before_its_start(watched: Console) -> None:
    change(watched, CameraState.LOST, START)
    change(watched, CameraState.WATCHING, START - 3600)
    assert troubles(watched) == [("lost", START, START)]


def test_the_size_of_the_picture_is_written(watched: Console) -> None:
    with watched.database.transaction() as session:
        assert store.set_size(session, "north", PictureSize(640, 480))
        assert not store.set_size(session, "north", PictureSize(640, 480))
        assert not store.set_size(session, "gone", PictureSize(640, 480))
        assert session.get_one(CameraRow, "north").width == 640


def judged(second: float, normality: float | None, behaviour: int = 1) -> JudgedDocument:
    return JudgedDocument(START + second, normality, -9.0, behaviour, (), 100.0)


MINUTE, OFFSET = divmod(int(START), 60)


def write(console: Console, *documents: JudgedDocument) -> None:
    buffer = store.MinuteBuffer()
    for document in documents:
        buffer.add("north", document)
        buffer.add("gone", document)
    with console.database.transaction() as session:
        buffer.write(session)
    buffer.clear()
    assert len(buffer) == 0


def test_seconds_are_packed_into_minutes(watched: Console) -> None:
    write(watched, judged(0, -3.0), judged(1, None, 0), judged(2, -5.5, 2), judged(3, -1.0, 2))
    with watched.database.session() as session:
        row = session.scalars(select(Minute)).one()
    assert (row.camera_id, row.minute) == ("north", MINUTE)
    assert (row.normality, row.behaviour) == (-5.5, 2)
    assert (row.n_documents, row.n_judged) == (4, 3)
    packed = store.PackedMinute(row.seconds)
    expected = [-3.0, np.nan, -5.5, -1.0]
    np.testing.assert_array_equal(packed.normality[OFFSET : OFFSET + 4], expected)
    assert np.isnan(packed.normality).sum() == 57
    assert packed.behaviour[OFFSET : OFFSET + 4].tolist() == [1, 0, 2, 2]
    assert len(row.seconds) == 300


def test_a_minute_is_written_in_parts_and_again_when_the_clock_is_set_back(
    watched: Console,
) -> None:
    write(watched, judged(0, -3.0), judged(1, -4.0))
    write(watched, judged(2, -8.0, 3), judged(70, -1.0))
    write(watched, judged(0, -6.0), judged(1, -2.0))
    with watched.database.session() as session:
        first, second = session.scalars(select(Minute).order_by(Minute.minute))
    assert (first.n_documents, first.n_judged, first.normality) == (5, 5, -8.0)
    found = store.PackedMinute(first.seconds).normality[OFFSET : OFFSET + 3]
    assert found.tolist() == [-6.0, -4.0, -8.0]
    assert (second.minute, second.normality) == (MINUTE + 1 + (OFFSET + 70) // 120, -1.0)


def test_learnings_and_the_model_of_a_camera(watched: Console) -> None:
    learnt = LearntModel("model-1.habitus", "learnt", ("a note",), START, START + 9, 300, 4)
    with watched.database.transaction() as session:
        number = store.begin_learning(session, "north", "first", START)
        failed = store.begin_learning(session, "north", "hour", START)
        store.begin_learning(session, "north", "night", START)
        store.end_learning(session, number, learnt, START + 20)
        store.end_learning(session, failed, LearningFailure("no room"), START + 21)
        store.forget_interrupted(session)
    with watched.database.session() as session:
        assert session.get_one(CameraRow, "north").model == "model-1.habitus"
        rows = session.scalars(select(LearningRow).order_by(LearningRow.id)).all()
    assert [row.model for row in rows] == ["model-1.habitus", None]
    assert [row.ended for row in rows] == [START + 20, START + 21]
    assert rows[0].notes == ["a note"]
