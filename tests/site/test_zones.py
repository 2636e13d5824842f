"""Zones of a camera: where they are, when they are armed, and which can be none."""

from datetime import datetime

import pytest

from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import InvalidInputError
from habitus.site.zones import DAYS, WeekHours, Zone, ZoneMap, check_zones, ignored

GRID = Vocabulary.of_frame(192, 144)


def rectangle(
    left: float, top: float, right: float, bottom: float
) -> tuple[tuple[float, float], ...]:
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def test_a_box_is_in_the_smallest_zone_that_has_half_of_it():
    yard, gate = rectangle(0, 0, 192, 96), rectangle(0, 0, 48, 48)
    zones = ZoneMap([Zone("Yard", "own", yard), Zone("Gate", "own", gate)], GRID)

    def called(*box: int) -> str | None:
        found = zones.zone_of(box)  # type: ignore[arg-type]
        return found and found.name

    assert called(0, 0, 40, 40) == "Gate"
    assert called(24, 0, 72, 40) == "Gate", "half of it"
    assert called(32, 0, 80, 40) == "Yard", "less than half of it"
    assert called(64, 72, 96, 120) == "Yard"
    assert called(64, 88, 96, 144) is None
    assert called(0, 0, 192, 144) == "Yard", "two thirds of the picture"


def test_only_zones_are_watched_once_one_says_so():
    road = Zone("Road", "watch", rectangle(0, 96, 192, 144))
    tree = Zone("Tree", "ignore", rectangle(0, 0, 40, 40))
    with_own = ZoneMap([tree, Zone("Gate", "own", rectangle(0, 0, 48, 48))], GRID)
    assert [zone.name for zone in with_own.zones] == ["Gate"], "nothing is seen in what is ignored"
    assert not with_own.is_quiet(None, None)
    watched = ZoneMap([road, tree], GRID)
    assert watched.is_quiet(None, None)
    assert not watched.is_quiet(road, None)
    assert ignored([road, tree]) == (tree.polygon,)


@pytest.mark.parametrize(
    ("hours", "armed"),
    [
        (WeekHours(DAYS, "08:00", "17:00"), {8, 12, 16}),
        (WeekHours(DAYS, "22:00", "06:00"), {0, 5, 22}),
        (WeekHours(("wed",), "22:00", "06:00"), {22}),
        (WeekHours(("tue",), "22:00", "06:00"), {0, 5}),
        (WeekHours(("wed",), "00:00", "00:00"), {0, 5, 6, 8, 12, 16, 17, 22}),
        (WeekHours(("thu",), "00:00", "00:00"), set()),
    ],
    ids=["day", "night", "night of today", "night of yesterday", "whole day", "tomorrow"],
)
def test_a_zone_is_armed_in_its_hours(hours: WeekHours, armed: set[int]):
    wednesday = datetime(2026, 11, 18)
    zone = Zone("Gate", "own", rectangle(0, 0, 8, 8), hours=(hours,))
    all_hours = (0, 5, 6, 8, 12, 16, 17, 22)
    assert {h for h in all_hours if zone.is_armed(wednesday.replace(hour=h))} == armed
    assert zone.is_armed(None), "of a recording without a date nobody knows the hour"


def test_plain_values_are_a_zone():
    span = {"days": ["mon", "sun"], "start": "22:00", "end": "06:30"}
    values = {"name": "Gate", "kind": "watch", "polygon": [[0, 0], [8, 0], [8, 8.5]]}
    assert Zone.of(values) == Zone("Gate", "watch", ((0, 0), (8, 0), (8, 8.5)))
    with_more = Zone.of(values | {"alerts_per_day": 0.5, "hours": [span, span | {"days": []}]})
    assert with_more.alerts_per_day == 0.5
    assert with_more.hours == (
        WeekHours(("mon", "sun"), "22:00", "06:30"),
        WeekHours(DAYS, "22:00", "06:30"),
    )


@pytest.mark.parametrize(
    ("zones", "reason"),
    [
        ([Zone("A", "own", rectangle(0, 0, 8, 8))] * 2, "two zones are called 'A'"),
        ([Zone("A", "own", rectangle(200, 0, 208, 8))], "zone 'A' must be a polygon of the frame"),
        ([Zone("A", "own", ((0, 0), (4, 4), (8, 8)))], "zone 'A' must be a polygon with an area"),
        ([Zone("A", "ignore", rectangle(0, 0, 8, 8), 1.0)], "neither budget nor hours"),
        (
            [
                Zone(
                    "A", "ignore", rectangle(0, 0, 8, 8), None, (WeekHours(DAYS, "00:00", "00:00"),)
                )
            ],
            "neither budget nor hours",
        ),
    ],
)
def test_what_can_be_no_zone_is_refused(zones: list[Zone], reason: str):
    with pytest.raises(InvalidInputError, match=reason) as told:
        check_zones(zones, (192, 144))
    assert told.value.parameter == "zones"
