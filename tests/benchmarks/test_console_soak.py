"""How the soak of the console counts: what is missing, what is there twice, and what may be."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from habitus.web.database import EventRow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
APART = 60.0
SPEED = 10.0


@pytest.fixture(scope="module")
def soak() -> Iterator[ModuleType]:
    """The script as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        spec = importlib.util.spec_from_file_location(
            "console_soak", BENCHMARKS / "console_soak.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["console_soak"] = module
        spec.loader.exec_module(module)
        yield module
        del sys.modules["console_soak"]


@pytest.fixture
def video(soak: ModuleType):
    return soak.Video(Path("lanes.mkv"), (50.0, 110.0, 170.0), 240)


def played(*seconds: float, since: float = 1000.0, lasts: float = 1.0) -> list[EventRow]:
    """Alarms at these seconds of a playback that began at a time."""
    return [
        EventRow(
            start=since + each / SPEED, alarm=True, details={"start": each, "end": each + lasts}
        )
        for each in seconds
    ]


WHOLE = (50.0, 111.0, 169.0, 290.0, 350.0)
"""The first turn, and the second up to its second anomaly."""


def test_a_whole_playback_is_counted_over_its_turns(soak, video):
    found = soak.playback_counts(video, played(*WHOLE), [])
    assert found == soak.PlaybackCounts(5, [], [], 0, 1)


def test_an_anomaly_without_an_event_is_missing(soak, video):
    found = soak.playback_counts(video, played(50.0, 111.0, 290.0, 350.0), [])
    assert len(found.missing) == 1
    assert "anomaly 2" in found.missing[0]


def test_an_anomaly_with_two_events_is_there_twice(soak, video):
    found = soak.playback_counts(video, played(50.0, 51.0, 111.0), [])
    assert len(found.twice) == 1
    assert not found.missing


def test_an_alarm_elsewhere_is_unasked(soak, video):
    assert soak.playback_counts(video, played(20.0, 50.0), []).unasked == 1


def test_what_is_unusual_just_before_an_anomaly_is_one_event_with_it(soak, video):
    found = soak.playback_counts(video, played(40.0, 111.0, 230.0, lasts=14.0), [])
    assert found == soak.PlaybackCounts(2, [], [], 1, 1)


def test_after_a_kill_it_begins_anew_and_must_be_whole_again(soak, video):
    killed = soak.Disturbance(1050.0, 1052.0, "process killed")
    alarms = played(*WHOLE) + played(50.0, 111.0, since=1060.0)
    found = soak.playback_counts(video, alarms, [killed])
    assert (found.played, found.missing, found.twice, found.lives) == (7, [], [], 2)
    assert soak.playback_counts(video, alarms, []).twice, "without a kill it is told twice"
    late = played(*WHOLE) + played(111.0, since=1060.0)
    assert soak.playback_counts(video, late, [killed]).missing


def test_what_was_called_normal_may_be_missing(soak, video):
    taught = soak.Disturbance(1010.0, 1013.0, "called normal")
    found = soak.playback_counts(video, played(50.0, 290.0), [taught])
    assert not found.missing


def test_counts_of_any_kind_are_shown_as_a_table(soak):
    row = soak._row("stream-mpegts", "3 clear of 5", np.int64(0), np.int64(1), 0)
    assert "| stream-mpegts | 3 clear of 5 |" in soak.table([row])
