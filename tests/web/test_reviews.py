import asyncio
import time
from unittest.mock import Mock

import pytest
from sqlalchemy import select, update

import habitus
from habitus.web import queries, reviews, store
from habitus.web.bulletin import News
from habitus.web.database import CameraRow, EventRow
from habitus.web.server import Console
from reference.consoles import START, add_camera, entry, event_json


@pytest.fixture
def cameras(any_console: Console) -> Console:
    add_camera(any_console)
    with any_console.database.transaction() as session:
        for number in range(4):
            start = START + 10 * number
            told = event_json(explanation=f"event {number}")
            times = {"start": start, "peak": start + 1, "end": start + 3}
            store.ingest(session, "north", entry(f"e{number}", event=told, **times))
    return any_console


def told_of(console: Console) -> list[str]:
    with console.database.session() as session:
        return [each["explanation"] for each in reviews.accepted(session, "north")]


def test_what_is_called_normal_is_accepted_in_the_order_of_the_reviews(cameras: Console) -> None:
    for event_id in ("e2", "e0", "e1"):
        done = reviews.review(cameras, event_id, "normal", "ann")
        assert (done.event_id, done.camera_id, done.verdict) == (event_id, "north", "normal")
    assert told_of(cameras) == ["event 2", "event 0", "event 1"]
    reviews.review(cameras, "e0", "normal", "bob")  # said already
    assert told_of(cameras) == ["event 2", "event 0", "event 1"]
    reviews.review(cameras, "e0", None, "ann")
    assert told_of(cameras) == ["event 2", "event 1"]
    reviews.review(cameras, "e1", "unusual", "ann")
    assert told_of(cameras) == ["event 2"]
    with cameras.database.session() as session:
        assert reviews.accepted(session, "north", but="e2") == []


def test_who_said_what_is_written(cameras: Console) -> None:
    reviews.review(cameras, "e1", "unusual", "ann")
    reviews.review(cameras, "e1", "unusual", "bob")
    with cameras.database.session() as session:
        event = session.get_one(EventRow, "e1")
        assert (event.review, event.reviewer) == ("unusual", "ann")
        assert event.reviewed is not None
    reviews.review(cameras, "e1", None, "bob")
    with cameras.database.session() as session:
        event = session.get_one(EventRow, "e1")
        assert (event.review, event.reviewer, event.reviewed) == (None, None, None)
        entries = queries.audit(session)
    assert [(each.actor, each.action, each.subject) for each in entries] == [
        ("bob", "review undone", "e1"),
        ("ann", "event reviewed", "e1"),
    ]
    assert entries[1].details == {"verdict": "unusual", "before": None}


def test_what_is_unusual_is_never_learnt_from(cameras: Console) -> None:
    reviews.review(cameras, "e3", "unusual", "ann")
    reviews.review(cameras, "e1", "unusual", "ann")
    reviews.review(cameras, "e2", "normal", "ann")
    with cameras.database.session() as session:
        spans = reviews.never_learnt(session, "north")
    assert spans == [(START + 10, START + 13), (START + 30, START + 33)]


@pytest.mark.parametrize(("meanwhile", "silenced_by"), [("normal", "e0"), (None, None)])
def test_what_is_taken_back_while_others_are_judged_silences_none(
    cameras: Console, meanwhile: str | None, silenced_by: str | None
) -> None:
    """They would never come to be reviewed."""

    def judged_again(*question: object, within: float) -> list[int]:
        reviews.review_all(cameras, ["e0"], meanwhile, "bob")
        return [0]

    with cameras.database.transaction() as session:
        session.get_one(CameraRow, "north").model = "model-1.habitus"
        session.execute(update(EventRow).values(start=time.time()))
    cameras.supervisor = Mock(fork_server=Mock(ask=judged_again))
    (silenced,) = reviews.review(cameras, "e0", "normal", "ann").silenced
    with cameras.database.session() as session:
        assert session.get_one(EventRow, silenced.id).silenced_by == silenced_by


def test_pages_are_told(console: Console) -> None:
    add_camera(console)
    with console.database.transaction() as session:
        store.ingest(session, "north", entry("e0"))

    async def first_news() -> News:
        news = console.bulletin.listen()
        waiting = asyncio.ensure_future(anext(news))
        while not len(console.bulletin):
            await asyncio.sleep(0)
        await asyncio.to_thread(reviews.review, console, "e0", "unusual", "ann")
        return await waiting

    told = asyncio.run(first_news())
    assert told.topic == "review"
    assert told.data == {"camera": "north", "event": "e0", "verdict": "unusual", "actor": "ann"}


def test_only_events_are_reviewed_and_only_so(cameras: Console) -> None:
    with pytest.raises(habitus.InvalidInputError, match="there is no event 'gone'"):
        reviews.review(cameras, "gone", "normal", "ann")
    with pytest.raises(habitus.InvalidInputError, match="normal or unusual"):
        reviews.review(cameras, "e0", "good", "ann")  # type: ignore[arg-type]
    with cameras.database.session() as session:
        assert session.scalars(select(EventRow).where(EventRow.review.is_not(None))).all() == []
