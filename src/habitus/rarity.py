"""How rare a moment is, set against the normal footage that was learnt from."""

from math import log
from typing import NamedTuple

COMMON = 0.5
"""Probability from which on a document is not rare at all."""
MINUTE, HOUR, DAY, YEAR = 60.0, 3600.0, 86_400.0, 365 * 86_400.0
"""Seconds of each."""


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


class NormalFootage(NamedTuple):
    """What is known of normal footage, from what was held out while learning."""

    seconds: float
    """Length of the footage."""
    judged_per_second: float
    """Documents that are judged in a second of it."""
    lowest: float
    """Normality of its most unusual document."""


def rarity_in_words(normality: float, probability: float, normal: NormalFootage) -> str:
    """Say how rare a document is, given the probability that a normal one is as unusual.

    Examples
    --------
    >>> half_an_hour = NormalFootage(1800.0, 0.5, -7.0)
    >>> rarity_in_words(-5.0, 0.01, half_an_hour)
    'about once in 3 minutes of normal footage'
    >>> rarity_in_words(-8.0, 0.0003, half_an_hour)
    'rarer than anything in the 30 minutes learnt from, about once in 111 minutes'
    >>> rarity_in_words(-30.0, 1e-12, half_an_hour)
    'rarer than anything in the 30 minutes learnt from, less than once in a year'
    """
    if probability >= COMMON:
        return "no rarer than most of normal footage"
    once = probability * normal.judged_per_second, 1 / normal.seconds
    if normality < normal.lowest:  # how much rarer, the extrapolated tail says
        every = 1 / max(min(once), 1 / (2 * YEAR))
        beyond = f"rarer than anything in the {duration_in_words(normal.seconds)} learnt from"
        if every > YEAR:
            return f"{beyond}, less than once in a year"
        return f"{beyond}, about once in {duration_in_words(every)}"
    # As it is not rarer than all of the footage, no more than the footage is needed to see it once.
    return f"about once in {duration_in_words(1 / max(once))} of normal footage"


def unusualness(probability: float | None) -> int:
    """Return how unusual something is that so many of normal seconds are as unusual as.

    From 0 for what happens each minute to 100 for what happens once a year, by its logarithm.

    >>> [unusualness(1 / seconds) for seconds in (60, 3600, 86_400, 30 * 86_400, 400 * 86_400)]
    [0, 31, 55, 81, 100]
    """
    if not probability:
        return 0 if probability is None else 100
    return round(100 * min(1.0, max(0.0, log(1 / probability / MINUTE) / log(YEAR / MINUTE))))


def how_often(rarity: str) -> str:
    """Return how often something so rare comes, of what `rarity_in_words` says.

    >>> how_often("about once in 3 hours of normal footage")
    'about once in 3 hours'
    >>> how_often("rarer than anything in the 5 minutes learnt from, about once in 3 days")
    'about once in 3 days'
    """
    return rarity.rpartition("learnt from, ")[2].removesuffix(" of normal footage")


def counted(number: int, noun: str, form: str = "") -> str:
    """Return a number with its noun, by a format for numbers.

    >>> counted(1, "second"), counted(0, "alarm"), counted(1500, "document", ",")
    ('1 second', '0 alarms', '1,500 documents')
    """
    return f"{number:{form}} {noun}{'' if number == 1 else 's'}"


def duration_in_words(seconds: float) -> str:
    """Return a length of time in the largest unit of which there are at least two.

    Examples
    --------
    >>> [duration_in_words(seconds) for seconds in (0.8, 90, 430, 9000, 259_200)]
    ['1 second', '90 seconds', '7 minutes', '2.5 hours', '3 days']
    """
    if seconds >= 2 * DAY:
        return f"{_number(seconds / DAY)} days"
    if seconds >= 2 * HOUR:
        return f"{_number(seconds / HOUR)} hours"
    if seconds >= 2 * MINUTE:
        return f"{seconds / MINUTE:.0f} minutes"
    whole = max(round(seconds), 1)
    return counted(whole, "second")


def _number(value: float) -> str:
    """Return a number with one decimal place, unless that is 0 or the number is large."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")
