"""Events within the budget of a camera, also where its model knows little."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from habitus.anomaly.scene_model import SceneModel
from habitus.cameras.filing import Filing
from habitus.cameras.journal import JournalEntry, filed_entries
from habitus.cameras.judging import DAY, HEAD_START, Judging, Ration, load_scene
from habitus.cameras.messages import Report
from habitus.cameras.nursery import Nursery
from habitus.errors import FileError, InvalidInputError
from habitus.ingest.clips import DocumentSettings, documents, vocabulary_of
from habitus.ingest.live import Arrived
from habitus.video import Reader, Source
from reference.processes import wait_until
from reference.two_lanes import WRONG

EPOCH = 1.7e9
SETTINGS = DocumentSettings(still_every=1)


@pytest.fixture(scope="module")
def arrivals(video: Path) -> list[Arrived]:
    with Reader(Source(str(video))) as reader:
        v = vocabulary_of(reader, SETTINGS)
    found = documents(Source(str(video)), SETTINGS)
    return [Arrived(d, d.number > 0, EPOCH + d.time, d.time, v) for d in found]


@pytest.fixture
def filing(nursery: Nursery, tmp_path: Path) -> Iterator[Filing]:
    reports: list[Report] = []
    filing = Filing(tmp_path, reports.append, nursery)
    yield filing
    filing.close(within=60)


def judging_of(model: Path, filing: Filing) -> Judging:
    return Judging(
        SceneModel.load(model), 5.0, name="camera", filing=filing, new_id=lambda start: "e1"
    )


def filed(filing: Filing, kind: str) -> list[JournalEntry]:
    found = [entry for _, entry in filed_entries(filing.folder / "journal")]
    return [e for e in found if isinstance(e, JournalEntry) and e.kind == kind]


def soon(condition: Callable[[], object]) -> None:
    wait_until(condition, "it is in the journal")


def test_an_event_becomes_an_alarm_once_it_is_strong_enough(
    arrivals: list[Arrived], model: Path, filing: Filing, nursery: Nursery, tmp_path: Path
):
    strongest = int(WRONG[0])
    arrivals = arrivals[strongest - 1 :]
    judging = judging_of(model, Filing(tmp_path / "before", lambda report: None, nursery))
    scores = [judging.take(arrival).normality for arrival in arrivals]
    assert min(scores) == scores[1] < judging.threshold < scores[0], "the second is the strongest"
    judging.filing.close(within=60)
    assert [entry.alarm for entry in filed(judging.filing, "started")][:1] == [True]

    judging = judging_of(model, filing)
    between, above = (scores[0] + scores[1]) / 2, scores[0] / 2
    judging.ration = None
    judging.thresholds, judging.detector.threshold = (between - 1, between, above), above
    judging.take(arrivals[0])
    soon(lambda: [e.alarm for e in filed(filing, "started")] == [False])
    judging.take(arrivals[1])
    soon(lambda: [e.alarm for e in filed(filing, "started")] == [False, True])
    judging.end_event()
    soon(lambda: filed(filing, "ended"))
    (ended,) = filed(filing, "ended")
    assert ended.alarm
    assert ended.event["alarm"]
    assert ended.thresholds == judging.thresholds
    assert (ended.start, ended.peak) == (EPOCH + strongest - 1, EPOCH + strongest)


def test_what_only_twice_the_budget_would_raise_is_no_alarm(
    arrivals: list[Arrived], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    judging.ration = None
    judging.thresholds = (-1e9, -1e9, judging.thresholds[-1])
    for arrival in arrivals:
        judging.take(arrival)
    judging.end_event()
    filing.close(within=60)
    (ended,) = filed(filing, "ended")
    assert not ended.alarm
    assert not ended.event["alarm"]
    assert not filed(filing, "clip")


def test_what_was_accepted_is_counted_as_normal(
    arrivals: list[Arrived], model: Path, filing: Filing
):
    judging = judging_of(model, filing)
    for arrival in arrivals:
        judging.take(arrival)
    soon(lambda: filed(filing, "ended"))
    (event,) = (entry.event for entry in filed(filing, "ended"))
    plain, taught = load_scene(model, []), load_scene(model, [json.loads(json.dumps(event))])
    again = load_scene(model, [{"habitus": "event"}, event])
    assert plain.habits is not None
    assert taught.habits is not None
    assert again.habits is not None
    assert plain.habits.all_counts.n_documents < taught.habits.all_counts.n_documents
    assert again.habits.all_counts.n_documents == taught.habits.all_counts.n_documents


def test_a_model_that_cannot_judge_is_refused(tmp_path: Path, model: Path, filing: Filing):
    with pytest.raises(FileError, match="found nothing"):
        load_scene(tmp_path / "none.habitus", [])
    with pytest.raises(InvalidInputError):
        judging_of(model, filing).set_budget(0.0)


def alarms(normalities, times, alerts_per_day) -> int:
    """Return how many of these events a ration makes alarms."""
    ration, n_alarms = Ration(), 0
    for time, normality in zip(times, normalities, strict=True):
        ration.watch(time)
        n_alarms += normality < ration.threshold(alerts_per_day)
        ration.add(time, normality)
    return n_alarms


@pytest.mark.parametrize("seed", range(5))
def test_first_hour_has_few_alarms(seed):
    normalities = -np.random.default_rng(seed).exponential(size=90) - 3
    found = alarms(normalities, np.arange(90) * 40.0, 5)
    # Records among so many: HEAD_START times the sum of 1 / n, about 9.
    assert HEAD_START <= found <= 20


def test_most_unusual_is_always_an_alarm():
    normalities = -np.random.default_rng(1).exponential(size=500) - 3
    normalities[400] = -50
    assert alarms(normalities[:401], np.arange(401.0), 5) > alarms(normalities[:400], range(400), 5)


def test_days_hold_about_the_budget():
    per_day, days = 500, 10
    normalities = -np.random.default_rng(2).exponential(size=per_day * days) - 3
    times = np.arange(per_day * days) * DAY / per_day
    later = times > 2 * DAY
    ration, n_alarms = Ration(), 0
    for time, normality, counts in zip(times, normalities, later, strict=True):
        ration.watch(time)
        n_alarms += counts and normality < ration.threshold(5)
        ration.add(time, normality)
    assert 0.5 * 5 * 8 <= n_alarms <= 2 * 7 * 8


def test_clock_set_back_takes_nothing_away():
    ration = Ration()
    ration.add(2 * DAY, -9.0)
    ration.add(2 * DAY - 3600, -8.0)
    ration.watch(DAY)
    assert len(ration.peaks) == 2
    assert ration.threshold(5) == -8.0
