"""Zones: named parts of a camera's picture, and what becomes of the events in them.

- `ignore`: nothing that moves there is seen, as behind a mask;
- `watch`: alarms come from zones alone, no longer from the rest of the picture;
- `own`: a part with a name, and with a budget and hours of its own if it has any.

All but the first act on events once they are found, so that no model is learnt anew. An event is in
a zone if at least half of one of its boxes lies there; the smallest such zone decides. Where a zone
has a budget, its events are alarms below the threshold of that budget: normal footage of the whole
picture raises no more events below it than the budget says, so that the zone alone, a part of them,
raises no more either. In all, a camera raises at most as many as the largest of its budgets.
Outside of the hours of a zone its events are kept, and are no alarms.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from habitus.errors import InvalidInputError
from habitus.schema import check_polygon

if TYPE_CHECKING:
    from habitus.corpus.vocabulary import Vocabulary

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SHARE = 0.5
"""Share of a box that lies in a zone if the box is in it."""
Kind = Literal["ignore", "watch", "own"]
Polygons = tuple[tuple[tuple[float, float], ...], ...]


class WeekHours(NamedTuple):
    """The same hours of some days, by the clock on the wall."""

    days: tuple[str, ...]
    """Of `DAYS`: those on which they begin."""
    start: str
    """Such as 06:30."""
    end: str
    """The same; of the next day, unless it is after the start."""

    def hold(self, moment: datetime) -> bool:
        """Return whether a local time lies in these hours.

        >>> night = WeekHours(("fri",), "22:00", "06:00")
        >>> [night.hold(datetime(2026, 11, *at)) for at in ((20, 23), (21, 5), (21, 6))]
        [True, True, False]
        """
        now, today, yesterday = (f"{moment:%H:%M}", *(DAYS[moment.weekday() - n] for n in (0, 1)))
        if self.start < self.end:
            return today in self.days and self.start <= now < self.end
        return (today in self.days and now >= self.start) or (
            yesterday in self.days and now < self.end
        )


@dataclass(frozen=True)
class Zone:
    """A part of a camera's picture; its corners are in pixels."""

    name: str
    kind: Kind
    polygon: tuple[tuple[float, float], ...]
    alerts_per_day: float | None = None
    """Its own budget; None for that of the camera."""
    hours: tuple[WeekHours, ...] = ()
    """When it is armed; always if empty."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Zone":
        """Return the zone of plain values, as the API takes them."""
        return cls(
            name=values["name"],
            kind=values["kind"],
            polygon=tuple((float(x), float(y)) for x, y in values["polygon"]),
            alerts_per_day=values.get("alerts_per_day"),
            hours=tuple(
                WeekHours(tuple(span.get("days") or DAYS), span["start"], span["end"])
                for span in values.get("hours") or ()
            ),
        )

    def is_armed(self, moment: datetime | None) -> bool:
        """Return whether its events may be alarms at a local time; one that is not known, too."""
        return moment is None or not self.hours or any(span.hold(moment) for span in self.hours)


def check_zones(zones: Sequence[Zone], size: tuple[int, int] | None) -> None:
    """Raise unless a camera can have these zones; `size` is that of its picture, if known.

    >>> square = ((0, 0), (8, 0), (8, 8), (0, 8))
    >>> check_zones([Zone("Tree", "ignore", square, alerts_per_day=1.0)], None)
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: zone 'Tree' is ignored, and has neither budget nor hours: \
make it a zone of its own
    """
    names = [zone.name for zone in zones]
    for zone in zones:
        what = f"zone {zone.name!r}"
        if names.count(zone.name) > 1:
            raise InvalidInputError(f"two zones are called {zone.name!r}", parameter="zones")
        if zone.kind == "ignore" and (zone.hours or zone.alerts_per_day is not None):
            raise InvalidInputError(
                f"{what} is ignored, and has neither budget nor hours: make it a zone of its own",
                parameter="zones",
            )
        width, height = size or (1 << 16, 1 << 16)
        check_polygon(zone.polygon, width, height, "zones", f"{what} must be a polygon")


def ignored(zones: Collection[Zone]) -> Polygons:
    """Return the polygons in which nothing is seen."""
    return tuple(zone.polygon for zone in zones if zone.kind == "ignore")


class ZoneMap:
    """Zones on the grid of a camera; `notes` say which do not fit it, and are left out."""

    def __init__(self, zones: Collection[Zone], vocabulary: "Vocabulary") -> None:
        from habitus.video.mask import covered_shares

        self.side, self.notes = vocabulary.cell_side, list[str]()
        shares = []
        for zone in zones:
            if zone.kind == "ignore":
                continue
            try:
                check_zones([zone], (vocabulary.width, vocabulary.height))
            except InvalidInputError as error:
                self.notes.append(f"{error}: it is not in use")
                continue
            shares.append(
                (zone, covered_shares(polygon_text((zone.polygon,)) or "", vocabulary, "zones"))
            )
        self._shares = sorted(shares, key=lambda one: float(one[1].sum()))
        self.zones = [zone for zone, _ in self._shares]
        """The smallest first."""
        self.elsewhere = not any(zone.kind == "watch" for zone in self.zones)
        """Whether what is in no zone is watched."""

    def zone_of(self, box: tuple[int, int, int, int]) -> Zone | None:
        """Return the smallest zone that has at least half of a box."""
        left, top = box[0] // self.side, box[1] // self.side
        right, bottom = (max(-(-edge // self.side), 1) for edge in box[2:])
        for zone, shares in self._shares:
            within = shares[top:bottom, left:right]
            if within.size and within.mean() >= SHARE:
                return zone
        return None

    def is_quiet(self, zone: Zone | None, moment: datetime | None) -> bool:
        """Return whether nothing is an alarm in a zone, or outside of all, at a local time."""
        return not (self.elsewhere if zone is None else zone.is_armed(moment))


def polygon_text(polygons: Polygons) -> str | None:
    """Return polygons as `habitus.video.watched_cells` takes them; None if there is none.

    Examples
    --------
    >>> polygon_text((((0, 0), (8.5, 0), (8, 8)), ((1, 1), (2, 1), (2, 2))))
    '0,0 8.5,0 8,8; 1,1 2,1 2,2'
    """
    texts = [" ".join(f"{x:g},{y:g}" for x, y in polygon) for polygon in polygons]
    return "; ".join(texts) or None
