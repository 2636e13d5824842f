"""The page of an archive: hours by day, moments of all cameras, legible at any width."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from habitus.scene import Event
from habitus.site.archive_page import calendar_of, write_archive_page
from habitus.site.overview import ArchiveOverview, CameraOverview
from habitus.site.shard_store import ArchiveFolder

FIRST = date(2026, 11, 1)


def camera(name="north", days=3, **changes):
    """A camera that was read from 8:00 to 20:00 each day, but for an hour that cannot be read."""
    hours = [
        f"{FIRST + timedelta(days=day)}T{hour:02d}" for day in range(days) for hour in range(8, 20)
    ]
    found = CameraOverview(
        camera=name,
        hours=len(hours) - 1.0,
        recordings=len(hours) - 1,
        unread=1,
        first=f"{hours[0]}-00-00",
        last=f"{hours[-1]}-00-00",
        until=f"{hours[-1]}-59-59",
        gaps=days - 1,
        gap_hours=12.0 * (days - 1),
        n_bytes=1_000_000,
        eras=({"frames": "360x288", "first": hours[0], "last": hours[-1], "shards": len(hours)},),
        learnt=None,
        judged_hours=1.0,
        alarms=1,
        troubles=(f"{hours[5]}.mp4: it was <cut> short",),
        covered={hour: 0.5 if hour.endswith("T09") else 1.0 for hour in hours if hour != hours[5]},
        unread_hours=(hours[5],),
    )
    return replace(found, **changes)


def moment(name="north", hour=10, alarm=True):
    return Event(
        source="a.mp4",
        start=0.0,
        end=2.0,
        peak=0.0,
        normality=-9.0,
        threshold=-5.0,
        behaviour=1,
        expected=(1.0,),
        boxes=((0, 0, 10, 10),),
        words=(1,),
        surprise=9.0,
        misfit=9.0,
        shift=0.0,
        explanation="moving <against> the traffic",
        clock=f"{FIRST}T{hour:02d}:30:00+00:00",
        alarm=alarm,
        camera=name,
        false_alarms_per_day=0.5,
    )


def spans(calendar, state):
    return [span for span in calendar.spans if span.state == state]


def test_few_days_are_rows_of_hours():
    calendar = calendar_of(camera(), [moment()], FIRST, FIRST + timedelta(days=2))
    assert (calendar.width, len(calendar.days), len(calendar.hours)) == (240, 3, 4)
    (unread,) = spans(calendar, "unread")
    assert unread.title == "2026-11-01 13:00 to 14:00: unreadable"
    assert unread.x == 130
    assert len({span.y for span in calendar.spans}) == 3
    first = [span for span in calendar.spans if span.y == 0]
    assert [span.state for span in first] == [
        *("none", "whole", "part", "whole", "unread", "whole", "none"),
    ]
    ((x, y),) = calendar.alarms
    assert 100 < x < 110
    assert 0 < y < 7


def test_many_days_are_columns():
    calendar = calendar_of(camera(days=40), [moment()], FIRST, FIRST + timedelta(days=39))
    assert (calendar.width, calendar.height) == (40 * 12, 24 * 5)
    assert len({span.x for span in calendar.spans}) == 40
    assert 8 <= len(calendar.days) <= 13


def test_moments_of_other_cameras_are_not_in_a_calendar():
    others = [moment("south"), moment(alarm=False)]
    assert calendar_of(camera(), others, FIRST, FIRST + timedelta(days=2)).alarms == []


def write(path, *cameras, moments=()):
    overview = ArchiveOverview("site", cameras, tuple(moments))
    write_archive_page(path, ArchiveFolder(path.parent / "site"), overview)
    return path


def test_texts_of_files_are_shown_as_text(tmp_path):
    page = write(tmp_path / "a.html", camera("<b>north"), moments=[moment("<b>north")]).read_text()
    assert "<b>north" not in page
    assert "&lt;b&gt;north" in page
    assert "&lt;against&gt;" in page
    assert "&lt;cut&gt;" in page


def test_an_empty_archive_has_a_page(tmp_path):
    page = write(tmp_path / "a.html").read_text()
    assert "No alarms on 0 cameras" in page
    assert "Nothing has been judged yet" in page


@pytest.mark.parametrize("days", [3, 60])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_the_page_fits_its_width_and_asks_nobody(opened, tmp_path, days, width, scheme):
    path = write(tmp_path / "a.html", camera(days=days), camera("south", days), moments=[moment()])
    look = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    page, complaints = opened(path, **look)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_by_role("heading", name="1 alarm on 2 cameras").is_visible()
    assert page.get_by_role("img", name="hours read").count() == 2
    assert complaints == []
