"""Clocks: local time of documents in whole minutes, as the clock on the wall shows it."""

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from habitus.errors import InvalidInputError

NO_CLOCK = -1
"""In place of the minute where nobody knows it."""
LAST_MINUTE, LAST_YEAR = (1 << 31) - 1, 6000
"""Minutes since the beginning of 1970 that fit into a file, and a year that they reach."""
N_HOURS = 24
N_WEEK_HOURS = 2 * N_HOURS
"""Hours of the day on workdays, then on week-ends: Saturdays and Sundays."""
NO_HOUR = N_WEEK_HOURS
"""In place of the hour where there is no clock."""
FIRST_WEEKDAY = 3
"""1970 began with a Thursday, counted from Monday as 0."""
_START = datetime(1970, 1, 1)


def minute_of(seconds: float) -> int:
    """Return the minute that this machine's clock shows, given seconds since the epoch."""
    try:
        moment = datetime.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):  # no such year
        return NO_CLOCK
    return max(int(clocks_since(moment, 0.0)), NO_CLOCK)


def clocks_since(start: datetime, times: ArrayLike) -> NDArray[np.int32]:
    """Return the minutes of documents, given what the clock showed at time 0.

    Examples
    --------
    >>> clocks_since(datetime(1970, 1, 2, 1, 30, 50), [0.0, 9.0, 10.0]).tolist()
    [1530, 1530, 1531]
    """
    seconds = (start.replace(tzinfo=None) - _START).total_seconds() + np.asarray(times)
    return np.asarray(seconds // 60, dtype=np.int32)


def parse_clock(text: str, parameter: str = "start") -> datetime:
    """Return a date and time in ISO 8601 as a clock shows it; a zone in it is not looked at.

    Examples
    --------
    >>> parse_clock("2026-11-16 13:00")
    datetime.datetime(2026, 11, 16, 13, 0)
    """
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        moment = datetime.min
    if not 1970 <= moment.year <= LAST_YEAR:
        raise InvalidInputError(
            "a date and time such as 2026-11-16 13:00 is expected, of the years 1970 to "
            f"{LAST_YEAR}, found {text!r}",
            parameter=parameter,
        )
    return moment


def clock_text(minute: int) -> str:
    """Return a minute as ISO 8601 without a zone.

    Examples
    --------
    >>> clock_text(1530)
    '1970-01-02T01:30'
    """
    return str(np.datetime64(int(minute), "m"))


def hours_of(clocks: NDArray[Any]) -> NDArray[np.int64]:
    """Return the hour of minutes, 0 to 23, on week-ends plus 24; `NO_HOUR` without a clock.

    Examples
    --------
    >>> hours_of(np.array([-1, 0, 59, 60, 1440 + 23 * 60, 2 * 1440])).tolist()
    [48, 0, 0, 1, 23, 24]
    """
    hours = clocks // 60 % N_HOURS + N_HOURS * _is_weekend(days_of(clocks))
    return np.asarray(np.where(clocks < 0, NO_HOUR, hours), dtype=np.int64)


def days_of(clocks: NDArray[Any]) -> NDArray[np.int32]:
    """Return the number of the day of minutes, -1 where there is no clock."""
    return np.asarray(np.where(clocks < 0, -1, clocks // (60 * N_HOURS)), dtype=np.int32)


def spans_weeks(days: NDArray[Any]) -> bool:
    """Return whether there are both workdays and week-ends of two weeks at least.

    Examples
    --------
    >>> spans_weeks(np.arange(14)), spans_weeks(np.arange(7)), spans_weeks(np.array([2, 9]))
    (True, False, False)
    """
    dates = np.unique(days[days >= 0])
    weekend = _is_weekend(dates)
    weeks = (dates + FIRST_WEEKDAY) // 7
    return all(len(np.unique(weeks[kind])) >= 2 for kind in (weekend, ~weekend))


def _is_weekend(days: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((days + FIRST_WEEKDAY) % 7 >= 5)
