import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from habitus import InvalidInputError
from habitus.web import administration
from habitus.web.answers import NewChannel, checked
from habitus.web.channels import Notification
from habitus.web.database import CameraRow, Channel, OutboxEntry
from habitus.web.outbox import HOUR, digest_of, enqueue, is_quiet, snooze, take_next
from habitus.web.server import Console
from reference.consoles import add_camera
from reference.telling import START, a_trouble, add_channel, an_event, outbox, outcomes, tell

HOOK = {"url": "http://127.0.0.1:9/hook"}
MAIL = {"url": "mailto://a:b@example.org"}
BROKER = {"host": "127.0.0.1"}


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ZoneInfo]:
    """The local time of Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield ZoneInfo("Europe/Berlin")
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def cameras(request: pytest.FixtureRequest) -> None:
    """Two cameras on whatever console the test has."""
    for name in ("console", "any_console"):
        if name in request.fixturenames:
            for camera in ("north", "south"):
                add_camera(request.getfixturevalue(name), camera)
            return


def quiet(quiet_from: str, quiet_until: str) -> Channel:
    return Channel(quiet_from=quiet_from, quiet_until=quiet_until)


def told(console: Console, channel: Channel, now: float) -> OutboxEntry | None:
    """What the channel tells next, taken as told."""
    with console.database.transaction() as session:
        entry = take_next(session, channel, now)
        if entry is not None:
            entry.outcome, entry.sent = "sent", now
        return entry


def all_told(console: Console, channel: Channel, now: float) -> list[str]:
    found = []
    while (entry := told(console, channel, now)) is not None:
        found.append(entry.subject)
    return found


def test_every_channel_that_wants_it_has_a_row_and_only_one(any_console: Console) -> None:
    add_channel(any_console, "webhook", HOOK)
    add_channel(any_console, "apprise", MAIL, cameras=["north", "west"])
    add_channel(any_console, "mqtt", BROKER, cameras=["south"])
    add_channel(any_console, "webhook", HOOK, enabled=False)
    for _ in range(2):
        tell(any_console, "started", an_event(1))
        tell(any_console, "ended", an_event(1, end=START + 30))
    rows = [(row.channel_id, row.subject, row.outcome) for row in outbox(any_console)]
    assert rows == [
        (1, "event1/started", "waiting"),
        (2, "event1/started", "waiting"),
        (1, "event1/ended", "waiting"),  # people are told once
    ]


def test_nothing_is_told_of_what_is_not_committed(console: Console) -> None:
    add_channel(console, "webhook", HOOK)

    def fail() -> None:
        with console.database.transaction() as session:
            event = an_event(1)
            session.add(event)
            session.flush()
            assert enqueue(session, "started", event) == 1
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert outbox(console) == []


def test_troubles_are_told_to_people_too(console: Console) -> None:
    add_channel(console, "apprise", MAIL)
    tell(console, "trouble", a_trouble(5))
    tell(console, "recovered", a_trouble(5, id=1, end=START + 100))
    rows = outbox(console)
    assert [row.subject.rpartition("/")[2] for row in rows] == ["trouble", "recovered"]
    assert rows[1].body["trouble"]["end"] == START + 100


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ("21:59", False),
        ("22:00", True),
        ("23:59", True),
        ("00:00", True),
        ("06:29", True),
        ("06:30", False),
        ("12:00", False),
    ],
)
def test_quiet_hours_cross_midnight(berlin: ZoneInfo, clock: str, expected: bool) -> None:
    hour, minute = map(int, clock.split(":"))
    now = datetime(2026, 1, 15, hour, minute, tzinfo=berlin).timestamp()
    assert is_quiet(quiet("22:00", "06:30"), now) is expected
    assert is_quiet(quiet("06:30", "22:00"), now) is not expected


@pytest.mark.parametrize(("month", "day"), [(3, 29), (10, 25), (6, 1)])
def test_quiet_hours_are_one_span_when_clocks_change(
    berlin: ZoneInfo, month: int, day: int
) -> None:
    noon = datetime(2026, month, day, 12, tzinfo=berlin).timestamp()
    minutes = [noon - 86400 + 60 * k for k in range(1440)]
    for span in (quiet("22:00", "02:30"), quiet("02:30", "07:00"), quiet("01:00", "02:15")):
        states = [is_quiet(span, now) for now in minutes]
        changes = sum(a != b for a, b in pairwise(states))
        assert changes == 2
    assert is_quiet(quiet("22:00", "08:00"), datetime(2026, month, day, 7, 59).timestamp())
    assert not is_quiet(quiet("22:00", "08:00"), datetime(2026, month, day, 8, 0).timestamp())


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"quiet_from": "22", "quiet_until": "06:00"}, "quiet_from: .*match"),
        ({"quiet_from": "25:00", "quiet_until": "06:00"}, "quiet_from: .*match"),
        ({"quiet_from": "22:00"}, "start and another time"),
        ({"quiet_from": "22:00", "quiet_until": "22:00"}, "start and another time"),
        ({"most_per_hour": 0}, "most_per_hour: .*greater than"),
        ({"most_per_day": 1}, "there is no most_per_day"),
    ],
)
def test_limits_that_make_no_sense_are_refused(
    console: Console, limits: dict[str, Any], message: str
) -> None:
    values: dict[str, Any] = {"name": "a", "kind": "webhook", "settings": {"url": "http://a.test"}}
    with pytest.raises(InvalidInputError, match=message):
        administration.add_channel(console, "test", checked(NewChannel, values | limits))
    limits = {"quiet_from": "22:00", "quiet_until": "06:00", "most_per_hour": 3}
    wanted = checked(NewChannel, values | limits)
    assert administration.add_channel(console, "test", wanted).most_per_hour == 3


def test_what_comes_in_quiet_hours_is_one_digest_at_their_end(
    any_console: Console, berlin: ZoneInfo
) -> None:
    channel = add_channel(any_console, "webhook", HOOK, quiet_from="22:00", quiet_until="06:30")
    night = datetime(2026, 1, 15, 23, tzinfo=berlin).timestamp()
    tell(any_console, "started", an_event(0), now=night - 2 * HOUR)
    assert all_told(any_console, channel, night - 2 * HOUR) == ["event0/started"]
    for k in range(1, 8):
        camera = "north" if k < 6 else "south"
        event = {"camera": camera, "probability": 10.0**-k, "explanation": f"thing {k}"}
        tell(any_console, "started", an_event(k, **event), now=night + k)
        tell(any_console, "ended", an_event(k, **event, end=START + 90), now=night + k)
    tell(any_console, "trouble", a_trouble(camera="south"), now=night + HOUR)
    assert all_told(any_console, channel, night + HOUR) == []
    morning = night + 7.5 * HOUR
    digest = told(any_console, channel, morning)
    assert digest is not None
    assert told(any_console, channel, morning) is None
    assert outcomes(any_console) == ["sent", *["in digest"] * 15, "sent"]
    body = digest.body["digest"]
    assert (body["since"], body["until"]) == (night + 1, morning)
    assert [(c["id"], c["started"], c["trouble"]) for c in body["cameras"]] == [
        ("north", 5, 0),
        ("south", 2, 1),
    ]
    assert [told["event"]["id"] for told in body["most_unusual"]] == [
        f"event{k}" for k in (7, 6, 5, 4, 3)
    ]
    assert body["most_unusual"][0]["event"]["end"] == START + 90
    notification = Notification(digest.subject, "digest", morning, digest.body)
    assert notification.title() == "habitus: 7 unusual events, 1 trouble"
    text = notification.text(any_console.settings)
    assert "North: 5 unusual events" in text
    assert "South: thing 7\n  http://127.0.0.1:8420/events/event7" in text
    assert "2026-01-15 23:00:01 to 2026-01-16 06:30:00" in text


def test_what_waited_for_a_channel_is_not_told_in_the_night(
    console: Console, berlin: ZoneInfo
) -> None:
    channel = add_channel(console, "webhook", HOOK, quiet_from="22:00", quiet_until="06:30")
    evening = datetime(2026, 1, 15, 21, 59, tzinfo=berlin).timestamp()
    tell(console, "started", an_event(1), now=evening)
    assert all_told(console, channel, evening + 120) == []
    assert outcomes(console) == ["held"]


def test_a_channel_that_was_away_all_night_tells_of_it_in_one_digest(
    console: Console, berlin: ZoneInfo
) -> None:
    channel = add_channel(console, "webhook", HOOK, quiet_from="22:00", quiet_until="06:30")
    night = datetime(2026, 1, 15, 23, tzinfo=berlin).timestamp()
    for k in (1, 2):
        tell(console, "started", an_event(k), now=night)
    assert all_told(console, channel, night + 8 * HOUR) == ["digest-1-2/digest"]


def test_more_than_the_most_per_hour_goes_into_a_digest(any_console: Console) -> None:
    channel = add_channel(any_console, "webhook", HOOK, most_per_hour=2)
    now = START
    for k in range(1, 6):
        tell(any_console, "started", an_event(k), now=now + k)
    assert all_told(any_console, channel, now + 10) == ["event1/started", "event2/started"]
    # The end of what was told is told; the end of what was not goes with it.
    tell(any_console, "ended", an_event(1, end=now + 20), now=now + 20)
    tell(any_console, "ended", an_event(4, end=now + 20), now=now + 20)
    assert all_told(any_console, channel, now + 20) == ["event1/ended"]
    assert all_told(any_console, channel, now + HOUR) == []
    digest = told(any_console, channel, now + 10 + HOUR)
    assert digest is not None
    assert digest.body["digest"]["started"] == 3
    # The hour is sliding: the digest is the first of the next one.
    tell(any_console, "started", an_event(6), now=now + HOUR + 20)
    tell(any_console, "started", an_event(7), now=now + HOUR + 21)
    assert all_told(any_console, channel, now + HOUR + 30) == ["event6/started"]
    # What ends after the digest that told of it needs no message.
    tell(any_console, "ended", an_event(5, end=now + HOUR + 40), now=now + HOUR + 40)
    assert all_told(any_console, channel, now + HOUR + 40) == []
    assert outcomes(any_console)[-1] == "in digest"


def test_a_clock_that_is_set_back_holds_nothing_up(console: Console) -> None:
    channel = add_channel(console, "webhook", HOOK, most_per_hour=1)
    tell(console, "started", an_event(1), now=START)
    assert all_told(console, channel, START) == ["event1/started"]
    tell(console, "started", an_event(2), now=START + 1)
    earlier = START - 10 * HOUR
    tell(console, "started", an_event(3), now=earlier)
    # Order is that of the rows; what was told "later" is no part of the last hour.
    assert all_told(console, channel, earlier) == ["event2/started"]
    assert all_told(console, channel, earlier + HOUR) == ["digest-3-3/digest"]


def test_a_removed_channel_takes_its_rows_along(any_console: Console) -> None:
    channel = add_channel(any_console, "webhook", HOOK)
    tell(any_console, "started", an_event(1))
    with any_console.database.transaction() as session:
        session.delete(session.get_one(Channel, channel.id))
    assert outbox(any_console) == []


def test_a_digest_waits_while_it_is_quiet_again(console: Console, berlin: ZoneInfo) -> None:
    channel = add_channel(console, "webhook", HOOK, quiet_from="22:00", quiet_until="06:30")
    night = datetime(2026, 1, 15, 23, tzinfo=berlin).timestamp()
    tell(console, "started", an_event(1), now=night)
    with console.database.transaction() as session:
        digest = take_next(session, channel, night + 8 * HOUR)
    assert digest is not None  # but the channel is away
    assert told(console, channel, night + 24 * HOUR) is None
    assert told(console, channel, night + 32 * HOUR) is not None


def test_events_as_probable_are_ordered_by_how_far_they_are_below_the_threshold() -> None:
    scores = [(None, -30, -5), (0.5, -12, -10), (None, -40, -10), (0.5, -11, -5), (0.1, -9, -8)]
    held = []
    for name, (probability, normality, threshold) in zip("abcde", scores, strict=True):
        event = {"id": name, "probability": probability, "normality": normality}
        body = {"camera": {"id": "north"}, "event": {**event, "threshold": threshold}}
        held.append(OutboxEntry(kind="started", created=START, body=body))
    unusual = digest_of(held, START)["most_unusual"]
    assert [body["event"]["id"] for body in unusual] == ["e", "d", "b", "c", "a"]


def test_a_snoozed_camera_tells_programs_and_troubles_alone(console: Console) -> None:
    add_channel(console, "apprise", MAIL)
    add_channel(console, "webhook", HOOK)
    with console.database.transaction() as session:
        snooze(session, "north", START + 100)
    tell(console, "started", an_event(1), now=START)
    tell(console, "trouble", a_trouble(), now=START)
    tell(console, "started", an_event(2, "south"), now=START)
    tell(console, "started", an_event(3), now=START + 101)
    told = [(entry.channel_id, entry.subject) for entry in outbox(console)]
    assert told == [
        (2, "event1/started"),
        *((channel, f"north-{START:.0f}/trouble") for channel in (1, 2)),
        *((channel, "event2/started") for channel in (1, 2)),
        *((channel, "event3/started") for channel in (1, 2)),
    ]
    with console.database.transaction() as session:
        snooze(session, "north", None)
    tell(console, "started", an_event(4), now=START)
    assert [entry.channel_id for entry in outbox(console)[-2:]] == [1, 2]


@pytest.mark.parametrize("kind", ["recording", "playback"])
def test_what_has_no_date_is_told_by_its_place(console: Console, kind: str) -> None:
    with console.database.transaction() as session:
        session.get_one(CameraRow, "north").kind = kind
    add_channel(console, "webhook", HOOK)
    tell(console, "started", an_event(1, offset=83.4, end=START + 14), now=START)
    (entry,) = outbox(console)
    assert entry.body["event"]["dated"] is False
    digest = {"digest": digest_of([entry], START)}
    for sent in (entry.body, digest):
        said = Notification("key", "digest" if sent is digest else "started", START, sent)
        lines = said.text(console.settings).splitlines()
        (line,) = [line for line in lines if "into the recording" in line]
        assert line.startswith("1:23 into the recording")
        assert "20" not in line
