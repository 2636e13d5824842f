from datetime import datetime
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event as events_of
from sqlalchemy.orm import Session

import habitus
from habitus.site.pipe_messages import CameraState, JudgedDocument, StateChanged
from habitus.web import camera_timeline, queries, store
from habitus.web.answers import BudgetFigures
from habitus.web.database import CameraRow, EventRow
from habitus.web.queries import EventFilter
from habitus.web.server import Console
from reference.consoles import START, add_camera, entry, event_json

HOUR = 3600.0


def put(console: Console, number: int, camera: str = "north", **fields: Any) -> None:
    """Add an event that began at that number of seconds, with fields of its row."""
    row = {key: fields.pop(key) for key in ("review", "signature") if key in fields}
    told = event_json(**fields.pop("event", {}))
    start = START + number
    with console.database.transaction() as session:
        store.ingest(
            session, camera, entry(f"e{number:03d}", start=start, peak=start, event=told, **fields)
        )
        for name, value in row.items():
            setattr(session.get_one(EventRow, f"e{number:03d}"), name, value)


@pytest.fixture
def cameras(any_console: Console) -> Console:
    add_camera(any_console, "north", name="north gate")
    add_camera(any_console, "south", name="South gate")
    return any_console


def ids(console: Console, wanted: EventFilter | None = None, **options: Any) -> list[str]:
    with console.database.session() as session:
        return [card.id for card in queries.events(session, wanted, **options).events]


def test_lists_are_filtered(cameras: Console) -> None:
    put(cameras, 1)
    put(cameras, 2, "south", review="normal")
    put(cameras, 3, alarm=False)
    put(cameras, 4, review="unusual", event={"cue": "speed, sum"})
    put(cameras, 5, "south", event={"cue": "100%, sum"})
    assert ids(cameras) == ["e005", "e004", "e002", "e001"]
    assert ids(cameras, EventFilter(alarms_only=False)) == ["e005", "e004", "e003", "e002", "e001"]
    assert ids(cameras, EventFilter(camera=["south"])) == ["e005", "e002"]
    assert ids(cameras, EventFilter(camera=["south", "north"], review="none")) == ["e005", "e001"]
    assert ids(cameras, EventFilter(review="normal")) == ["e002"]
    assert ids(cameras, EventFilter(review="unusual")) == ["e004"]
    assert ids(cameras, EventFilter(cue="speed")) == ["e004"]
    assert ids(cameras, EventFilter(cue="1__%")) == []
    assert ids(cameras, EventFilter(since=START + 2, until=START + 5)) == ["e004", "e002"]
    with cameras.database.session() as session:
        assert queries.count(session, EventFilter(review="none")) == 2
        assert queries.cues(session) == ["100%", "direction", "speed"]


def test_events_are_found_by_words_hour_rarity_length_and_mark(cameras: Console) -> None:
    put(cameras, 1, event={"explanation": "A Cow, on the left", "probability": 1e-7})
    put(cameras, 2, end=START + 40, event={"explanation": "100% cow_"})
    put(cameras, 3, event={"probability": 0.5})
    with cameras.database.transaction() as session:
        session.get_one(EventRow, "e003").starred = True
        for row in session.query(EventRow):
            row.hour = int(row.id[1:]) * 7  # 7, 14 and 21
    assert ids(cameras, EventFilter(words="cow")) == ["e002", "e001"]
    assert ids(cameras, EventFilter(words="LEFT cow")) == ["e001"]
    assert ids(cameras, EventFilter(words="0% w_")) == ["e002"]
    assert ids(cameras, EventFilter(words="c_w")) == []
    assert ids(cameras, EventFilter(hours="7-15")) == ["e002", "e001"]
    assert ids(cameras, EventFilter(hours="20-8")) == ["e003", "e001"]
    assert ids(cameras, EventFilter(unusual=80)) == ["e001"]
    assert ids(cameras, EventFilter(shortest=30.0)) == ["e002"]
    assert ids(cameras, EventFilter(longest=5.0)) == ["e003", "e001"]
    assert ids(cameras, EventFilter(starred=True)) == ["e003"]
    assert ids(cameras, EventFilter(sort="oldest")) == ["e001", "e002", "e003"]
    assert ids(cameras, EventFilter(sort="unusual"))[0] == "e001"
    assert ids(cameras, EventFilter(sort="longest"))[0] == "e002"
    with cameras.database.session() as session:
        first = queries.events(session, EventFilter(sort="oldest"), limit=2)
        rest = queries.events(session, EventFilter(sort="oldest"), before=first.next, limit=2)
    assert ([card.id for card in rest.events], rest.next) == (["e003"], None)


def test_what_has_no_date_is_in_no_day_and_at_no_hour(cameras: Console) -> None:
    add_camera(cameras, "film", name="Film", kind="recording")
    put(cameras, 1)
    put(cameras, 2, "film", event={"start": 83.0, "end": 84.0})
    day = datetime.fromtimestamp(START).date()
    everything = EventFilter()

    def seen(session: Session) -> tuple[int, dict[str, int], dict[str, bool]]:
        (only,) = queries.calendar(session, everything, day, 1)
        today = {row.id: row.alarms_today for row in queries.wall(session, START)}
        dated = {event.camera: event.dated for event in queries.events(session).events}
        return only.total, today, dated

    expected = {"Film": False, "north gate": True}
    assert cameras.database.read(seen) == (1, {"film": 1, "north": 1, "south": 0}, expected)
    assert ids(cameras, EventFilter(hours="0-24")) == ["e001"]
    assert ids(cameras, EventFilter(hours="22-21")) == ["e001"]
    with cameras.database.transaction() as session:
        session.get_one(CameraRow, "film").kind = "playback"  # as the demonstration does
    put(cameras, 3, "film")
    put(cameras, 2, "film", event={"start": 83.0, "end": 85.0})
    total, today, _ = cameras.database.read(seen)
    assert (total, today["film"]) == (2, 1)
    assert cameras.database.read(queries.n_undated, everything) == 1
    drawn = cameras.database.read(camera_timeline.timeline, "film", START - 600, START + 600).events
    assert [event.dated for event in drawn] == [True], "what has no date is at no moment"
    assert [event.dated for event in cameras.database.read(queries.events).events] == [
        True,
        False,
        True,
    ]
    with cameras.database.transaction() as session:
        session.get_one(CameraRow, "film").options = {"starts": START - 80}
    assert all(event.dated for event in cameras.database.read(queries.events).events)


def test_pages_follow_each_other_without_a_gap(cameras: Console) -> None:
    for number in range(7):
        put(cameras, number)
    with cameras.database.transaction() as session:
        for row in session.query(EventRow):
            row.start = START + int(row.id[1:]) // 3  # several begin at once
    found: list[str] = []
    before: str | None = None
    with cameras.database.session() as session:
        while True:
            page = queries.events(session, before=before, limit=2)
            found += [card.id for card in page.events]
            if (before := page.next) is None:
                break
    assert found == sorted(found, reverse=True)
    assert len(found) == 7


@pytest.mark.parametrize("cursor", ["", "a:b", "nan:e1", "1.5", "1.5:"])
def test_a_foreign_cursor_is_refused(console: Console, cursor: str) -> None:
    with (
        console.database.session() as session,
        pytest.raises(habitus.InvalidInputError, match="no place in a list"),
    ):
        queries.events(session, before=cursor)


def test_one_event_and_its_neighbours(cameras: Console) -> None:
    put(cameras, 1)
    put(cameras, 2, alarm=False)
    put(cameras, 3, "south", event={"explanation": "why"})
    put(cameras, 4)
    with cameras.database.session() as session:
        found = queries.event(session, "e003")
        assert queries.event(session, "gone") is None
    assert found is not None
    assert (found.older, found.newer) == ("e001", "e004")
    assert (found.camera, found.explanation) == ("South gate", "why")
    assert found.details["explanation"] == "why"


def test_similar_events_are_those_of_the_nearest_signatures(cameras: Console) -> None:
    rng = np.random.default_rng(0)
    signatures = rng.normal(size=(8, 5)).astype("<f4")
    signatures /= np.linalg.norm(signatures, axis=1, keepdims=True)
    for number, signature in enumerate(signatures):
        put(cameras, number, signature=signature.tobytes())
    put(cameras, 8, "south", signature=signatures[5].tobytes())
    put(cameras, 9, signature=None)
    put(cameras, 10, signature=b"1234")
    with cameras.database.session() as session:
        found = queries.similar(session, "e005", limit=3)
        assert queries.similar(session, "e000") == [], "those after it are no past events"
        assert queries.similar(session, "e009") == []
    likeness = signatures[:5] @ signatures[5]
    nearest = [int(i) for i in np.argsort(-likeness)][:3]
    assert [each.card.id for each in found] == [f"e{i:03d}" for i in nearest]
    np.testing.assert_allclose(
        [each.similarity for each in found], likeness[nearest], rtol=1e-5, atol=1e-6
    )


def test_the_wall_counts_the_alarms_of_today(cameras: Console) -> None:
    now = queries.midnight(START) + 12 * HOUR
    noon = int(now - START)
    put(cameras, noon - 60)
    put(cameras, noon - 50, review="normal")
    put(cameras, noon - 40, alarm=False)
    put(cameras, noon - 86_400)
    with cameras.database.session() as session:
        north, south = queries.wall(session, now)
        only = queries.wall(session, now, camera="north")
    assert (north.name, north.alarms_today, north.to_review) == ("north gate", 2, 1)
    assert (south.id, south.alarms_today) == ("south", 0)
    assert only == [north]


def judge(console: Console, start: float, normality: list[float | None]) -> None:
    buffer = store.MinuteBuffer()
    for second, value in enumerate(normality):
        behaviour = 0 if value is None else 1 + second // 90
        buffer.add("north", JudgedDocument(start + second, value, -9.0, behaviour, (), 10.0))
    with console.database.transaction() as session:
        buffer.write(session)


MINUTE = START // 60 * 60


def test_a_short_timeline_has_seconds(cameras: Console) -> None:
    scores: list[float | None] = [-float(i % 10) for i in range(180)]
    scores[20:40] = [None] * 20
    scores[100] = None
    judge(cameras, MINUTE, scores)
    put(cameras, int(MINUTE - START) + 30)
    with cameras.database.transaction() as session:
        store.set_state(session, "north", StateChanged(CameraState.LOST, MINUTE + 20, "away"))
        store.set_state(session, "north", StateChanged(CameraState.WATCHING, MINUTE + 40))
    with cameras.database.session() as session:
        found = camera_timeline.timeline(session, "north", MINUTE + 10, MINUTE + 130, points=120)
        later = camera_timeline.timeline(session, "north", MINUTE + 60, MINUTE + 90, points=120)
    assert (found.step, len(found.times)) == (1.0, 120)
    assert found.times[0] == MINUTE + 10
    scores[100] = scores[99]  # a document may miss its second
    assert found.normality == scores[10:130]
    assert found.behaviour[0] == 1
    assert found.behaviour[15] is None
    assert found.behaviour[-1] == 2
    assert [mark.start for mark in found.events] == [MINUTE + 30]
    lost = {"kind": "lost", "start": MINUTE + 20, "end": MINUTE + 40, "reason": "away"}
    assert [trouble.model_dump() for trouble in found.troubles] == [lost]
    assert later.events == []
    assert later.troubles == []


def test_a_timeline_in_groups_of_seconds_has_the_lowest_of_each(cameras: Console) -> None:
    scores: list[float | None] = list(-np.random.default_rng(0).gamma(2.0, size=600).round(3))
    judge(cameras, MINUTE, scores)
    with cameras.database.session() as session:
        found = camera_timeline.timeline(session, "north", MINUTE, MINUTE + 600, points=60)
    assert found.step == 10.0
    assert len(found.times) <= 61
    expected = np.array(scores, float).reshape(-1, 10).min(axis=1)
    assert found.times[0] <= MINUTE < found.times[1]
    if found.times[0] == MINUTE:
        np.testing.assert_allclose(np.array(found.normality, float), expected, atol=1e-3)


def test_a_long_timeline_has_groups_of_minutes(cameras: Console) -> None:
    scores: list[float | None] = list(-np.random.default_rng(0).gamma(2.0, size=3600).round(3))
    judge(cameras, MINUTE, scores)
    with cameras.database.session() as session:
        found = camera_timeline.timeline(
            session, "north", MINUTE - 6 * HOUR, MINUTE + 6 * HOUR, points=60
        )
    assert found.step == 720.0
    assert len(found.times) == 61
    known = {
        time: value
        for time, value in zip(found.times, found.normality, strict=True)
        if value is not None
    }
    for time, value in known.items():
        inside = [s for i, s in enumerate(scores) if time <= MINUTE + i < time + 720]
        assert value == pytest.approx(min(inside), abs=1e-3)  # type: ignore[type-var]
    assert len(known) in (5, 6)
    assert found.normality[0] is None


@pytest.mark.parametrize("span", [(5.0, 5.0), (6.0, 5.0), (0.0, float("inf")), (float("nan"), 1.0)])
def test_a_span_that_is_none_is_refused(console: Console, span: tuple[float, float]) -> None:
    with (
        console.database.session() as session,
        pytest.raises(habitus.InvalidInputError, match="span"),
    ):
        camera_timeline.timeline(session, "north", *span)


def counts(figures: BudgetFigures) -> tuple[int, int, int]:
    return figures.alarms, figures.reviewed, figures.unusual


def test_precision_at_half_the_budget_and_at_twice(cameras: Console) -> None:
    strong = {"normality": -12.0}
    for number in range(20):
        put(cameras, number, review="unusual" if number < 5 else "normal", event=strong)
    for number in range(20, 30):
        put(cameras, number, review="normal", event={"normality": -10.0})
    put(cameras, 30, event={"normality": -10.0})
    put(cameras, 31, alarm=False, review="unusual", event={"normality": -8.5})
    put(cameras, 32, "south", review="unusual", event=strong)
    put(cameras, -8 * 86_400, review="unusual", event=strong)
    with cameras.database.session() as session:
        found = queries.precision(session, "north", now=START + 60)
        everywhere = queries.precision(session, now=START + 60)
        few = queries.precision(session, "south", now=START + 60)
    assert counts(found.half) == (20, 20, 5)
    assert counts(found.now) == (31, 30, 5)
    assert counts(found.twice) == (32, 31, 6)
    assert found.reviews_needed == 0
    assert found.now.precision == pytest.approx(5 / 30)
    low, high = found.now.interval
    assert low < 5 / 30 < high
    assert counts(everywhere.now) == (32, 31, 6)
    assert (few.reviews_needed, few.now.precision) == (19, 1.0)


def test_wilson_intervals_hold_what_they_say() -> None:
    rng, n, share = np.random.default_rng(0), 30, 0.3
    drawn = rng.binomial(n, share, size=4000)
    held = [low <= share <= high for low, high in (queries.wilson(int(k), n) for k in drawn)]
    assert 0.86 < np.mean(held) < 0.94


def test_disk_use(cameras: Console) -> None:
    put(cameras, 1, n_bytes=700)
    put(cameras, 1, clip="e001.mp4", n_bytes=5000)
    put(cameras, 2, "south", n_bytes=10)
    folder = cameras.settings.camera_folder("north")
    (folder / "documents").mkdir(parents=True)
    (folder / "documents" / "20250615T15.corpus").write_bytes(b"x" * 300)
    (folder / "model-1.habitus").write_bytes(b"x" * 20)
    with cameras.database.session() as session:
        used = queries.disk_use(session, cameras.settings)
    assert (used.clips, used.pictures, used.documents, used.models) == (5000, 710, 300, 20)
    assert used.total == 6030 + used.database + used.recent + used.uploads + used.other
    data, logged = cameras.settings.data, used.other
    (data / "before-restore-1" / "cameras" / "north").mkdir(parents=True)
    (data / "before-restore-1" / "cameras" / "north" / "model-1.habitus").write_bytes(b"x" * 400)
    (data / "export-a.zip").write_bytes(b"x" * 50)
    with (data / "server.log").open("ab") as log:
        log.write(b"x" * 7)
    assert cameras.database.read(queries.disk_use, cameras.settings).other == logged + 457


def test_who_did_what(cameras: Console) -> None:
    with cameras.database.transaction() as session:
        for number in range(3):
            store.write_audit(session, "me", "camera added", f"camera {number}", number=number)
    with cameras.database.session() as session:
        first = queries.audit(session, limit=2)
        rest = queries.audit(session, before=first[-1].id)
    assert [each.subject for each in first + rest] == ["camera 2", "camera 1", "camera 0"]
    assert first[0].details == {"number": 2}


@pytest.fixture
def plans(console: Console) -> list[str]:
    """How SQLite answers each statement of the test."""
    found: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT"):
            rows = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            found.extend(row[3] for row in rows)

    events_of.listen(console.database.engine, "before_cursor_execute", explain)
    return found


def test_large_tables_are_read_by_their_indexes_alone(console: Console, plans: list[str]) -> None:
    add_camera(console)
    put(console, 1, signature=b"1234")
    with console.database.session() as session:
        queries.wall(session)
        del plans[1:]  # the few cameras are sorted
        for wanted in (
            EventFilter(),
            EventFilter(camera=["north"]),
            EventFilter(camera=["north"], alarms_only=False, review="none"),
            EventFilter(cue="speed", review="normal"),
            EventFilter(alarms_only=False),
        ):
            queries.events(session, wanted, before=f"{START}:z")
            queries.count(session, wanted)
        queries.event(session, "e001")
        camera_timeline.timeline(session, "north", START - 30 * 86_400, START + 10)
        queries.wall(session, camera="north")
        queries.precision(session)
        queries.disk_use(session, console.settings)
    about = [plan for plan in plans if "events" in plan or "minutes" in plan]
    assert len(about) > 12
    assert [plan for plan in about if plan in ("SCAN events", "SCAN minutes")] == []
    assert "USE TEMP B-TREE FOR ORDER BY" not in plans


@pytest.mark.parametrize("sort", ["newest", "oldest", "unusual", "longest"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"hours": "22-6"},
        {"cue": "speed"},
        {"camera": ["north"]},
        {"zone": "a"},
        {"quiet": True},
    ],
)
def test_searches_look_up_no_event_but_those_shown(
    console: Console, plans: list[str], sort: Any, more: dict[str, Any]
) -> None:
    with console.database.session() as session:
        for wanted in ({"unusual": 31}, {"words": "a b"}, {"words": "a", "unusual": 31}):
            chosen = EventFilter(sort=sort, **wanted, **more)
            queries.events(session, chosen)
            queries.count(session, chosen)
        queries.cues(session)
        queries.zones(session)
    about = [plan for plan in plans if " events " in plan and "(id=?)" not in plan]
    assert len(about) >= 8
    assert [plan for plan in about if "COVERING INDEX" not in plan] == []
