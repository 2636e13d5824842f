"""Events within the budget of a camera."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from habitus.errors import FileError, InvalidInputError
from habitus.ingest.clips import DocumentSettings, documents, vocabulary_of
from habitus.ingest.live import LiveDocument
from habitus.jobs.fork_server import ForkServer
from habitus.scene.habit_model import HabitModel
from habitus.scene.localisation import Box
from habitus.scene.scene_model import SceneModel
from habitus.scene.thresholds import AlarmLimit, RaisedAlarm
from habitus.site.filing import Filing
from habitus.site.journal import SiteEvent, filed_events
from habitus.site.judging import (
    Judging,
    TaughtScene,
    accepted_times_of,
    recall,
    with_accepted,
)
from habitus.site.pipe_messages import AlertOrder, Report
from habitus.site.zones import DAYS, WeekHours, Zone
from habitus.video import Reader, Source
from reference.footage import encode
from reference.processes import wait_until
from reference.two_lanes import FPS, WRONG, pictures

EPOCH = 1.7e9
SETTINGS = DocumentSettings(still_every=1)
BUDGET = 1000.0


@pytest.fixture(scope="module")
def arrivals(video: Path) -> list[LiveDocument]:
    with Reader(Source(str(video))) as reader:
        v = vocabulary_of(reader, SETTINGS)
    found = documents(Source(str(video)), SETTINGS)
    return [LiveDocument(d, d.number > 0, EPOCH + d.time, d.time, v) for d in found]


@pytest.fixture
def filing(fork_server: ForkServer, tmp_path: Path) -> Iterator[Filing]:
    reports: list[Report] = []
    filing = Filing(tmp_path, reports.append, fork_server)
    yield filing
    filing.close(within=60)


def judging_of(
    model: Path, filing: Filing, *zones: Zone, limit: AlarmLimit | None = None
) -> Judging:
    return Judging(
        SceneModel.load(model),
        AlertOrder(BUDGET, zones),
        name="camera",
        filing=filing,
        new_id=lambda start: "e1",
        limit=limit,
    )


def filed(filing: Filing, kind: str) -> list[SiteEvent]:
    found = [entry for _, entry in filed_events(filing.folder / "journal")]
    return [e for e in found if isinstance(e, SiteEvent) and e.kind == kind]


def soon(condition: Callable[[], object]) -> None:
    wait_until(condition, "it is in the journal")


def test_an_event_becomes_an_alarm_once_it_is_strong_enough(
    arrivals: list[LiveDocument],
    model: Path,
    filing: Filing,
    fork_server: ForkServer,
    tmp_path: Path,
):
    strongest = int(WRONG[0])
    arrivals = arrivals[strongest - 1 :]
    judging = judging_of(model, Filing(tmp_path / "before", lambda report: None, fork_server))
    scores = [judging.take(arrival).normality for arrival in arrivals]
    assert min(scores) == scores[1] < judging.threshold < scores[0], "the second is the strongest"
    judging.filing.close(within=60)
    (first, *_) = filed(judging.filing, "started")
    assert (first.alarm, first.at_half) == (True, first.details.normality < judging.thresholds[0])

    judging = judging_of(model, filing)
    between, above = (scores[0] + scores[1]) / 2, scores[0] / 2
    judging.thresholds, judging.detector.threshold = (scores[1] - 1, between, above), above
    judging.take(arrivals[0])
    soon(lambda: [e.alarm for e in filed(filing, "started")] == [False])
    judging.take(arrivals[1])
    soon(lambda: [e.alarm for e in filed(filing, "started")] == [False, True])
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (ended,) = filed(filing, "ended")
    assert ended.alarm
    assert ended.details.threshold == judging.threshold
    assert not ended.at_half
    assert (ended.start, ended.peak) == (EPOCH + strongest - 1, EPOCH + strongest)


def test_what_only_twice_the_budget_would_raise_is_no_alarm(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    judging.detector.threshold = joined = judging.threshold
    judging.thresholds = (-1e9, -1e9, joined)
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    (ended,) = filed(filing, "ended")
    assert not ended.alarm
    assert not filed(filing, "clip")


@pytest.mark.parametrize(("before", "alarm"), [(-1e9, False), (-1e-9, True)])
def test_beyond_twice_the_budget_only_what_is_less_usual_is_an_alarm(
    arrivals: list[LiveDocument], model: Path, filing: Filing, before: float, alarm: bool
):
    raised = [RaisedAlarm(60.0 + n, before) for n in range(10)]
    judging = judging_of(model, filing, limit=AlarmLimit(BUDGET, raised))
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    (ended,) = filed(filing, "ended")
    assert (ended.alarm, ended.details.quiet) == (alarm, not alarm)
    assert judging.limit.n_held == 0 if alarm else judging.limit.n_held > 0


CORNER = ((176.0, 128.0), (192.0, 128.0), (192.0, 144.0), (176.0, 144.0))
"""Where nothing moves."""


@pytest.mark.parametrize(("zone", "alarm"), [("", True), ("Corner", True), ("Gate", False)])
def test_each_budget_has_a_limit_of_its_own(
    arrivals: list[LiveDocument], model: Path, filing: Filing, zone: str, alarm: bool
):
    """Ten alarms elsewhere, at another budget, do not hold back what goes wrong in the gate."""
    zones = Zone("Gate", "own", UPPER, 1.01 * BUDGET), Zone("Corner", "own", CORNER, 1.02 * BUDGET)
    limit = AlarmLimit(BUDGET, [RaisedAlarm(1.0, -1e9, zone)] * 10)
    judging = judging_of(model, filing, limit=limit)
    judging.adjust(AlertOrder(7.0, zones[1:]))  # an edit, and back
    judging.adjust(AlertOrder(BUDGET, zones))
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    assert [ended.alarm for ended in filed(filing, "ended")] == [alarm]


def test_a_large_budget_of_a_zone_allows_no_bursts_elsewhere(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    limit = AlarmLimit(BUDGET, [RaisedAlarm(1.0, -1e9)] * 10)
    zone = Zone("Corner", "own", CORNER, 50 * BUDGET)  # ten alarms in nine seconds
    judging = judging_of(model, filing, zone, limit=limit)
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    assert [(each.alarm, each.details.quiet) for each in filed(filing, "ended")] == [(False, True)]


def test_what_was_accepted_is_counted_as_normal(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (event,) = (json.loads(entry.details.line()) for entry in filed(filing, "ended"))
    plain = SceneModel.load(model)
    taught, (often,) = with_accepted(plain, [event])
    again, times = with_accepted(plain, [{"habitus": "event"}, event])
    assert often > 0
    assert times == [0, often]
    assert plain.habits is not None
    assert taught.habits is not None
    assert again.habits is not None
    assert plain.habits.all_counts.n_documents < taught.habits.all_counts.n_documents
    assert again.habits.all_counts.n_documents == taught.habits.all_counts.n_documents


def test_what_was_counted_as_normal_is_not_counted_anew(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    """A camera would stand still at each review once there are hundreds."""
    judging, calls, taught = judging_of(model, filing), [0], TaughtScene()
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (event,) = (json.loads(entry.details.line()) for entry in filed(filing, "ended"))
    later = {**event, "track": event["track"][:1]}

    def counting() -> None:
        calls[0] += 1

    for accepted, n_counted in (
        ([event], 1),
        ([event, later], 1),
        ([event, later], 0),
        ([later], 1),
        ([], 0),
        ([event, later, later], 3),
    ):
        calls[0] = 0
        habits = taught.scene(model, accepted, counting).habits
        assert calls == [n_counted]
        anew = with_accepted(SceneModel.load(model), accepted)[0].habits
        assert habits is not None
        assert anew is not None
        assert np.array_equal(habits.all_counts.speed, anew.all_counts.speed)
        assert habits.all_counts.n_documents == anew.all_counts.n_documents


def test_how_often_events_count_is_found_out_once(
    arrivals: list[LiveDocument],
    model: Path,
    filing: Filing,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """By whichever process was first: with a hundred of them it takes many seconds."""
    model = Path(shutil.copy(model, tmp_path / "model-1.habitus"))
    judging, tried = judging_of(model, filing), [0]
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (event,) = (json.loads(entry.details.line()) for entry in filed(filing, "ended"))
    events = [event, {"habitus": "event"}, {**event, "track": event["track"][:1]}]
    anew, times = with_accepted(SceneModel.load(model), events)
    accept_all = HabitModel.accept_all

    def counted(self: HabitModel, *moments: Any, **options: Any) -> HabitModel:
        tried[0] += 1
        return accept_all(self, *moments, **options)

    monkeypatch.setattr(HabitModel, "accept_all", counted)
    beside = accepted_times_of(model)
    assert not beside.exists()

    def n_tried(accepted: list[dict[str, Any]]) -> int:
        tried[0], taught = 0, TaughtScene()
        habits = taught.scene(model, accepted).habits
        assert habits is not None
        assert anew.habits is not None
        assert taught.times == times[: len(accepted)]
        if len(accepted) == len(events):
            assert np.array_equal(habits.all_counts.speed, anew.habits.all_counts.speed)
            assert [m.times for m in habits.accepted] == [m.times for m in anew.habits.accepted]
        return tried[0]

    often = n_tried(events[:1])
    assert often > 1
    assert n_tried(events[:1]) == 1
    both = n_tried(events)
    assert n_tried(events) == 2 <= both
    beside.write_text("damaged")
    assert n_tried(events) == often + both - 1
    assert n_tried(events) == 2
    os.utime(model, ns=(1, 1))  # another model
    assert n_tried(events[:2]) == often
    assert recall(model, events[1:]) == []


UPPER = ((0.0, 16.0), (192.0, 16.0), (192.0, 72.0), (0.0, 72.0))
"""Where something goes wrong."""
LOWER = ((0.0, 80.0), (192.0, 80.0), (192.0, 144.0), (0.0, 144.0))


def ended_with(
    arrivals: list[LiveDocument], model: Path, filing: Filing, *zones: Zone
) -> list[SiteEvent]:
    judging = judging_of(model, filing, *zones)
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    return filed(filing, "ended")


def test_an_event_says_in_which_zone_it_is(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    zones = (Zone("Gate", "own", UPPER), Zone("Road", "own", LOWER))
    (ended,) = ended_with(arrivals, model, filing, *zones)
    assert (ended.alarm, ended.details.quiet, ended.details.zone) == (True, False, "Gate")
    assert ended.details.explanation.startswith("in Gate: something")


@pytest.mark.parametrize(
    "zone",
    [
        Zone("Road", "watch", LOWER),
        Zone("Gate", "own", UPPER, hours=(WeekHours((), "00:00", "00:00"),)),
    ],
    ids=["another one is watched", "never armed"],
)
def test_a_zone_silences(arrivals: list[LiveDocument], model: Path, filing: Filing, zone: Zone):
    (ended,) = ended_with(arrivals, model, filing, zone)
    assert (ended.alarm, ended.details.quiet) == (False, True)
    assert not filed(filing, "clip")


def test_a_zone_that_is_watched_raises(arrivals: list[LiveDocument], model: Path, filing: Filing):
    armed = WeekHours(DAYS, "00:00", "00:00")
    (ended,) = ended_with(arrivals, model, filing, Zone("Gate", "watch", UPPER, hours=(armed,)))
    assert (ended.alarm, ended.details.zone) == (True, "Gate")


def test_a_zone_has_the_threshold_of_its_own_budget(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    small, large = Zone("Gate", "own", UPPER, 1.0), Zone("Road", "own", LOWER, 4 * BUDGET)
    judging.adjust(AlertOrder(BUDGET, (small, large)))
    (upper, lower), bar = ((Box(0, 24, 32, 48), Box(0, 96, 32, 120)), judging.detector.bar)
    assert judging.placed((upper,)).threshold == bar(1.0).threshold < judging.threshold
    assert judging.placed((lower,)).threshold == bar(4 * BUDGET).threshold > judging.threshold
    assert judging.placed(()).threshold == judging.threshold == bar(BUDGET).threshold
    assert judging.detector.threshold == bar(8 * BUDGET).threshold, "joined at the highest"
    judging.adjust(AlertOrder(BUDGET))
    assert judging.detector.threshold == bar(2 * BUDGET).threshold


def test_what_is_beyond_the_budget_of_its_place_is_no_part_of_an_event(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    """A budget elsewhere lets more documents be abnormal than count here."""
    (plain,) = ended_with(arrivals, model, filing)
    filing = Filing(filing.folder / "zones", lambda report: None, filing.fork_server)
    zones = Zone("Corner", "own", CORNER, 1000 * BUDGET)
    found = ended_with(arrivals, model, filing, zones)
    assert [(e.start, e.end, e.alarm, e.details.normality) for e in found] == [
        (plain.start, plain.end, plain.alarm, plain.details.normality)
    ]


def test_a_zone_outside_of_the_frame_is_left_out_and_said(model: Path, filing: Filing):
    far = ((500.0, 500.0), (600.0, 500.0), (600.0, 600.0))
    judging = judging_of(model, filing, Zone("Far", "watch", far))
    assert not judging.placed((Box(0, 24, 32, 48),)).quiet
    assert [note for note in judging.notes if "'Far'" in note] == [
        "zone 'Far' must be a polygon of the frame, which has 192x144 pixels, found '500,500 "
        "600,500 600,600' outside it: it is not in use"
    ]


def test_events_name_behaviours_as_people_do(
    arrivals: list[LiveDocument], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    judging.adjust(AlertOrder(BUDGET, (), ((1, "rightward"), (2, "downward"))))
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    (ended,) = filed(filing, "ended")
    assert ended.details.behaviour_name == ("rightward", "downward")[ended.details.behaviour - 1]


def replayed(first_frame: int, folder: Path) -> list[LiveDocument]:
    """What goes wrong once more, in documents that begin at another frame."""
    path = folder / f"again-{first_frame}.mkv"
    encode(path, islice(pictures(), first_frame, None), rate=FPS)
    with Reader(Source(str(path))) as reader:
        v = vocabulary_of(reader, SETTINGS)
    found = documents(Source(str(path)), SETTINGS)
    return [LiveDocument(d, d.number > 0, 2 * EPOCH + d.time, d.time, v) for d in found]


@pytest.mark.parametrize("late", [0, 2 * FPS])
def test_the_same_footage_is_no_alarm_once_it_was_called_normal(
    arrivals: list[LiveDocument], model: Path, filing: Filing, tmp_path: Path, late: int
):
    """From the same second on, and from a later one."""
    first = (int(WRONG[0]) - 8) * FPS
    judging = judging_of(model, filing)
    judging.adjust(AlertOrder(300.0))
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (event,) = (json.loads(entry.details.line()) for entry in filed(filing, "ended"))
    assert len(event["track"]) > 1, "an event of several documents"
    assert sum(point["normality"] < judging.threshold for point in event["track"]) > 1

    taught, _ = with_accepted(SceneModel.load(model), [event])
    detector = taught.detector(alerts_per_day=300.0)
    again = [
        detector.step(arrival.document, vocabulary=arrival.vocabulary)
        for arrival in replayed(first + late, tmp_path)
    ]
    assert not any(judgement.abnormal for judgement in again), [j.normality for j in again]


def test_a_model_that_cannot_judge_is_refused(tmp_path: Path, model: Path, filing: Filing):
    with pytest.raises(FileError, match="found nothing"):
        judging_of(tmp_path / "none.habitus", filing)
    with pytest.raises(InvalidInputError):
        judging_of(model, filing).adjust(AlertOrder(0.0))


def test_a_budget_that_is_changed_and_back_is_the_budget_of_before(model: Path, filing: Filing):
    """As is that of a restart: the bar depends on the model and the number alone."""
    judging = judging_of(model, filing)
    before, notes = judging.thresholds, judging.notes
    bars = []
    for alerts_per_day in (0.1, 5.0, 50.0, BUDGET):
        judging.adjust(AlertOrder(alerts_per_day))
        bars.append(judging.threshold)
        assert bars[-1] == SceneModel.load(model).detector(alerts_per_day=alerts_per_day).threshold
    assert bars[0] < bars[1] < bars[2] < bars[3]
    assert (judging.thresholds, judging.notes) == (before, notes)
    assert judging.thresholds == judging_of(model, filing).thresholds


def test_a_model_of_minutes_says_what_to_expect(model: Path, filing: Filing):
    judging = judging_of(model, filing)
    judging.adjust(AlertOrder(5.0))
    assert "cannot tell what happens 5 times a day: expect 0 to" in judging.notes[0]
