"""Clocks: local minutes, their hours and days, and what is no date."""

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from habitus.corpus import Corpus, ShardedCorpus
from habitus.corpus.clocks import (
    LAST_YEAR,
    NO_CLOCK,
    clock_text,
    clocks_since,
    days_of,
    hours_of,
    minute_of,
    parse_clock,
    spans_weeks,
)
from habitus.errors import InvalidInputError


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("utc", "hour"),
    [
        ("2026-10-25T00:30", 24 + 2),  # clocks are put back at 3:00: this hour comes twice
        ("2026-10-25T01:30", 24 + 2),
        ("2026-10-25T02:30", 24 + 3),
        ("2026-03-29T00:59", 24 + 1),
        ("2026-03-29T01:00", 24 + 3),  # and at 2:00 they are put forward
        ("2026-11-20T22:59", 23),  # a Friday
        ("2026-11-20T23:00", 24),
        ("2026-11-22T22:59", 24 + 23),
        ("2026-11-22T23:00", 0),
        ("2026-07-01T22:00", 0),
    ],
)
def test_the_minute_of_a_time_is_what_the_clock_of_this_machine_shows(berlin, utc, hour):
    seconds = datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()
    assert hours_of(np.array(minute_of(seconds))) == hour


def test_weeks_are_known_by_two_week_ends_and_workdays_of_two_weeks():
    days = np.arange(20_000, 20_014)  # two weeks from a Friday on
    assert days_of(np.array([20_000 * 1440])) == 20_000
    friday = datetime(1970, 1, 1) + timedelta(days=20_000)
    weekdays = (friday.weekday() + np.arange(14)) % 7
    assert spans_weeks(days)
    assert spans_weeks(np.append(days, -1))
    assert not spans_weeks(days[weekdays < 5])
    assert not spans_weeks(days[weekdays >= 5])
    assert not spans_weeks(days[:7])
    assert not spans_weeks(np.full(5, -1))


@pytest.mark.parametrize("seconds", [-1e9, 1e18, -1e18, np.inf, np.nan])
def test_a_time_that_no_clock_shows_has_no_minute(seconds):
    assert minute_of(seconds) == NO_CLOCK


def test_a_minute_is_written_and_read():
    start = datetime(2026, 11, 16, 3, 12)
    minute = int(clocks_since(start, 0.0))
    assert clock_text(minute) == "2026-11-16T03:12"
    assert parse_clock(clock_text(minute)) == start
    assert days_of(np.array([minute, NO_CLOCK])).tolist() == [
        (start - datetime(1970, 1, 1)) // timedelta(days=1),
        -1,
    ]
    assert parse_clock(f"{LAST_YEAR}-12-31T23:59+02:00").hour == 23


@pytest.mark.parametrize(
    "text", ["", "13:00", "1969-12-31", f"{LAST_YEAR + 1}-01-01", "2026-13-01"]
)
def test_what_is_no_date_is_told(text):
    with pytest.raises(InvalidInputError, match="a date and time such as 2026-11-16 13:00"):
        parse_clock(text)


def test_clocks_stay_with_their_documents(tmp_path):
    known = Corpus([[1], [2], [3]], clocks=[5, NO_CLOCK, 7], times=[0, 1, 2])
    unknown = Corpus([[4]])
    assert unknown.clocks.tolist() == [NO_CLOCK]
    whole = Corpus.joined([known.take([0, 2]), unknown])
    assert whole.clocks.tolist() == [5, 7, NO_CLOCK]
    shards = []
    for name, corpus in {"known": known, "unknown": unknown}.items():
        corpus.save(tmp_path / name)
        shards.append(tmp_path / name)
    assert ShardedCorpus.open(shards).joined().clocks.tolist() == [5, NO_CLOCK, 7, NO_CLOCK]
    assert b'"clocks"' in shards[0].read_bytes()
    assert b'"clocks"' not in shards[1].read_bytes()  # to the bit the file that it was


@pytest.mark.parametrize("clocks", [[1], [1, -2], [1, 2.5], [1, 1 << 31], [[1, 2]]])
def test_clocks_are_minutes(clocks):
    with pytest.raises(InvalidInputError, match="clocks must be 2 integers from -1"):
        Corpus([[1], [2]], clocks=clocks)
