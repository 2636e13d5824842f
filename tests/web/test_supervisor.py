"""The supervisor with real processes of cameras, which play files many times as fast."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from habitus.jobs.fork_server import ForkServer
from habitus.site.journal import file_event
from habitus.site.pipe_messages import FootageExtent
from habitus.site.process import CameraJob
from habitus.web import queries, reviews, store
from habitus.web.administration import add_camera as add_by_admin
from habitus.web.administration import remove_camera
from habitus.web.answers import NewCamera, ReviewOutcome
from habitus.web.database import CameraRow, EventRow, LearningRow, Minute
from habitus.web.learner import LearningCandidate, ModelLearner
from habitus.web.queries import EventFilter
from habitus.web.server import Console
from habitus.web.supervisor import Supervisor
from reference.consoles import START, add_camera, add_playing, entry, event_json
from reference.processes import running, wait_until
from reference.two_lanes import HEIGHT, SECONDS, WIDTH, WRONG


@pytest.fixture
def supervised(console: Console, fork_server: ForkServer) -> Iterator[Callable[..., Supervisor]]:
    """A function that starts the supervisor of a console; it is stopped at the end."""

    def start(**options: Any) -> Supervisor:
        console.supervisor = Supervisor(console, fork_server, **options)
        console.supervisor.start()
        return console.supervisor

    yield start
    if console.supervisor is not None:
        console.supervisor.stop()


@pytest.fixture
def playing(console: Console, turn: Path, model: Path) -> str:
    """A camera that plays the scene for ever, with a model."""
    return add_playing(console, turn, model)


def camera(console: Console, camera_id: str = "north") -> CameraRow:
    with console.database.session() as session:
        return session.get_one(CameraRow, camera_id)


def change(console: Console, **fields: Any) -> None:
    with console.database.transaction() as session:
        found = session.get_one(CameraRow, "north")
        for name, value in fields.items():
            setattr(found, name, value)
    assert console.supervisor is not None
    console.supervisor.refresh()


def wait_for_state(console: Console, state: str, camera_id: str = "north") -> None:
    wait_until(lambda: camera(console, camera_id).state == state, f"{camera_id} is {state}")


def alarms(console: Console) -> list[EventRow]:
    with console.database.session() as session:
        return queries.events(session).events


def pid_of(supervisor: Supervisor, camera_id: str = "north") -> int:
    found: list[int] = []

    def known() -> bool:
        pid = supervisor.latest(camera_id).pid
        found[:] = [pid] if pid else []
        return bool(found)

    wait_until(known, "there is a process")
    return found[0]


def test_a_camera_is_watched_and_its_events_are_written(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    supervisor = supervised()
    wait_until(lambda: [event for event in alarms(console) if event.clip], "an event with a clip")
    found = camera(console)
    assert (found.state, found.width, found.height) == ("watching", WIDTH, HEIGHT)
    latest = supervisor.latest("north")
    assert latest.seen is not None
    assert latest.seen.jpeg[:2] == b"\xff\xd8"
    assert latest.judged is not None
    assert len(latest.recent) > 5
    supervisor.stop()
    with console.database.session() as session:
        assert session.scalar(select(func.sum(Minute.n_judged)))
        assert session.scalars(select(EventRow).where(EventRow.end.is_(None))).all() == []
        assert session.scalars(select(EventRow.signature)).first() is not None
    folder = console.settings.camera_folder("north")
    assert list((folder / "journal").glob("*.json")) == []
    for event in alarms(console):
        assert (folder / "events" / str(event.thumbnail)).is_file()


def test_a_process_that_is_killed_is_started_again(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    supervisor = supervised()
    wait_for_state(console, "watching")
    before = pid_of(supervisor)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: supervisor.latest("north").restarts == 1, "its death is noticed")
    wait_until(lambda: pid_of(supervisor) != before, "another process")
    n = len(alarms(console))
    wait_until(lambda: len(alarms(console)) > n, "events go on")
    wait_for_state(console, "watching")
    assert any("signal 9" in notice.text for notice in console.bulletin.notices())


def test_a_process_knows_the_latest_alarms_of_each_budget(console: Console, playing: str) -> None:
    square = [[0, 0], [20, 0], [20, 20]]
    gate = {"name": "Gate", "kind": "own", "polygon": square, "alerts_per_day": 50.0}
    with console.database.transaction() as session:
        known = session.get_one(CameraRow, "north")
        known.zones = [gate, {"name": "Road", "kind": "own", "polygon": square}]
        for zone, starts in (("Road", 100), ("Gate", 200), ("", 300)):
            for number in range(30):
                event = event_json(zone=zone)
                said = entry(f"{zone}{number}", start=starts + number, event=event, normality=-9.0)
                store.ingest(session, "north", said)
                ahead = time.time() + 30 * 86_400 + number  # of a clock that ran ahead
                said = entry(f"{zone}{number}-", start=ahead, event=event, normality=-9.0)
                store.ingest(session, "north", said)
    with console.database.session() as session:
        found = store.latest_alarms(session, session.get_one(CameraRow, "north"))
    assert {type(alarm) for alarm in found} == {tuple}  # rows would load SQLAlchemy in a camera
    assert sorted(found) == [
        *((200.0 + number, -9.0, "Gate") for number in range(10, 30)),
        *((300.0 + number, -9.0, "") for number in range(10, 30)),
    ]


def test_the_budget_survives_a_restart(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    with console.database.transaction() as session:
        for number in range(10):
            before = entry(f"b{number}", start=time.time(), normality=-1e9)
            store.ingest(session, "north", before)

    def held_back() -> list[EventRow]:
        with console.database.session() as session:
            return queries.events(session, EventFilter(quiet=True)).events

    supervised()
    wait_until(held_back, "an event that ten alarms just before keep from being one")
    assert len(alarms(console)) == 10


def test_a_process_that_hangs_is_killed(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    supervisor = supervised(silence=4.0)
    wait_for_state(console, "watching")
    before = pid_of(supervisor)
    os.kill(before, signal.SIGSTOP)
    wait_until(lambda: not running(before), "it was killed")
    wait_until(lambda: pid_of(supervisor) != before, "another process")


def test_what_is_changed_is_done_by_an_order_or_by_another_process(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    supervisor = supervised()
    wait_for_state(console, "watching")
    before = pid_of(supervisor)
    threshold = supervisor.latest("north").judged
    assert threshold is not None
    change(console, alerts_per_day=2000.0)

    def changed() -> bool:
        judged = supervisor.latest("north").judged
        return judged is not None and judged.threshold != threshold.threshold

    wait_until(changed, "another threshold")
    assert pid_of(supervisor) == before
    change(
        console, zones=[{"name": "Tree", "kind": "ignore", "polygon": [[0, 0], [20, 0], [20, 20]]}]
    )
    wait_until(lambda: pid_of(supervisor) != before, "another process for what is ignored")
    change(console, enabled=False)
    wait_for_state(console, "off")
    wait_until(lambda: supervisor.latest("north").pid is None, "no process")
    change(console, enabled=True)
    wait_until(lambda: camera(console).state != "off", "it is on again")
    last = pid_of(supervisor)
    with console.database.transaction() as session:
        session.delete(session.get_one(CameraRow, "north"))
    supervisor.refresh()
    folder = console.settings.camera_folder("north")
    wait_until(lambda: not running(last) and not folder.exists(), "nothing is left of it")


def test_a_zone_names_silences_and_raises_without_another_process(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    """Something goes against its lane in the upper half, in each turn of the scene."""
    supervisor = supervised()
    wait_until(lambda: alarms(console), "an alarm")
    before = pid_of(supervisor)
    upper, lower = ([[0, y], [192, y], [192, y + 56], [0, y + 56]] for y in (16, 80))

    def zones(*found: EventRow) -> set[str]:
        return {event.zone for event in found}

    def silenced() -> list[EventRow]:
        with console.database.session() as session:
            return list(session.scalars(select(EventRow).where(EventRow.quiet)))

    change(console, zones=[{"name": "Gate", "kind": "own", "polygon": upper}])
    wait_until(lambda: "Gate" in zones(*alarms(console)), "an alarm in the zone")
    change(console, zones=[{"name": "Road", "kind": "watch", "polygon": lower}])
    wait_until(lambda: "" in zones(*silenced()), "something that is no alarm, as it is elsewhere")
    assert not any(event.alarm or event.clip for event in silenced())
    change(console, zones=[{"name": "Lane", "kind": "watch", "polygon": upper}])
    wait_until(lambda: "Lane" in zones(*alarms(console)), "an alarm where alone it is watched")
    named = next(event for event in alarms(console) if event.zone == "Lane")
    assert named.explanation.startswith("in Lane: something")
    assert pid_of(supervisor) == before


def test_nothing_is_left_of_a_camera_that_was_off(
    console: Console, supervised: Callable[..., Supervisor]
) -> None:
    supervised()
    add_camera(console, enabled=False)
    clip = console.settings.camera_folder("north") / "events" / "a1.mp4"
    clip.parent.mkdir(parents=True)
    clip.write_bytes(b"what nobody wants to keep")
    remove_camera(console, "test", "north")
    wait_until(lambda: not clip.parents[1].exists(), "its folder is deleted")


def test_what_is_left_of_a_camera_is_not_another_one_s(console: Console) -> None:
    (console.settings.camera_folder("gate") / "documents").mkdir(parents=True)
    gate = NewCamera(name="Gate", address="rtsp://192.0.2.1/main")
    added = add_by_admin(console, "test", gate)
    assert added.id == "gate-2"


def test_what_cannot_be_written_of_one_camera_does_not_hold_the_others_up(
    console: Console, playing: str, video: Path, supervised: Callable[..., Supervisor]
) -> None:
    """Times that no database can count, as an earlier version took them."""
    options = {"local": True, "starts": 1e300}
    add_camera(console, "south", address=str(video), kind="recording", options=options)
    supervised()
    wait_until(
        lambda: any("minutes cannot" in notice.text for notice in console.bulletin.notices()),
        "minutes that cannot be written",
    )
    change(console, enabled=False)
    wait_for_state(console, "off")


def test_a_model_is_learnt_and_used_at_once(
    console: Console, video: Path, supervised: Callable[..., Supervisor]
) -> None:
    options = {"speed": 20.0, "local": True}
    add_camera(console, address=str(video), kind="playback", options=options)
    supervisor = supervised()
    wait_until(lambda: len(supervisor.latest("north").recent) > 70, "footage")
    change(console, enabled=False)  # what is held is written now, and not after a minute
    wait_for_state(console, "off")
    change(console, enabled=True)
    wait_until(lambda: (kept := supervisor.latest("north").kept) and kept.seconds > 60, "footage")
    pid = pid_of(supervisor)
    supervisor.learn_now("north")
    wait_until(
        lambda: supervisor.learning("north") is not None or camera(console).model,
        "it is being learnt, or was",
    )
    wait_for_state(console, "watching")
    assert pid_of(supervisor) == pid
    with console.database.session() as session:
        row = session.scalars(select(LearningRow)).one()
    assert (row.occasion, row.model) == ("asked", "model-1.habitus")
    assert row.n_documents > 50
    assert camera(console).model == "model-1.habitus"
    wait_until(
        lambda: (judged := supervisor.latest("north").judged) and judged.threshold is not None,
        "a document is judged by it",
    )


def test_a_learning_that_failed_is_not_begun_again_at_once(
    console: Console, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("habitus.web.learner.LOOK_EVERY", 0.0)
    add_camera(console)
    learner, now = ModelLearner(console, fork_server), time.time()
    job = CameraJob("north", console.settings.camera_folder("north"), "rtsp://192.0.2.1/main")
    candidates = {
        "north": LearningCandidate(job, FootageExtent(400.0, now - 400, now), waits=False)
    }
    results: list[LearningRow | None] = []

    def is_over() -> bool:
        results.append(learner.step(candidates))
        return results[-1] is not None

    wait_until(is_over, "there is nothing to learn from")
    assert results[-1] is not None
    assert results[-1].model is None
    assert learner.step(candidates) is None
    with console.database.session() as session:
        assert session.scalar(select(func.count()).select_from(LearningRow)) == 1


def test_a_recording_is_learnt_from_judged_and_done(
    console: Console, video: Path, supervised: Callable[..., Supervisor], fork_server: ForkServer
) -> None:
    options = {"local": True, "starts": START}
    add_camera(console, address=str(video), kind="recording", options=options, alerts_per_day=500.0)
    supervisor = supervised()
    wait_for_state(console, "ended")
    wait_until(lambda: supervisor.latest("north").pid is None, "its process has ended")
    supervisor.stop()
    found = alarms(console)
    assert [START + WRONG[0] - 2 < event.start < START + WRONG[1] for event in found] == [True]
    with console.database.session() as session:
        assert session.scalar(select(func.sum(Minute.n_documents))) == SECONDS
    again = supervised()
    again.refresh()
    time.sleep(1.5)  # it would be started within this time
    assert again.latest("north").pid is None


def test_a_review_teaches_and_its_undoing_too(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    supervised()
    wait_until(lambda: len(alarms(console)) >= 3, "three alarms")
    first, *others = alarms(console)
    with console.database.transaction() as session:
        for event in session.scalars(select(EventRow)):  # as if they were of these days
            event.start = time.time()
    said: list[ReviewOutcome] = []
    for event in [*others[1:], first]:
        said.append(reviews.review(console, event.id, "normal", "me"))
    assert [each.note for each in said] == [""] * len(said)
    assert {card.id for each in said for card in each.silenced} <= {
        event.id for event in alarms(console)
    }
    with console.database.session() as session:
        assert len(reviews.accepted(session, "north")) == len(said)
    undone = reviews.review(console, first.id, None, "me")
    assert undone.verdict is None
    with console.database.session() as session:
        assert len(reviews.accepted(session, "north")) == len(said) - 1
        assert [row.action for row in queries.audit(session)][:2] == [
            "review undone",
            "event reviewed",
        ]


def test_what_waits_in_journals_is_written_at_the_start(
    console: Console, supervised: Callable[..., Supervisor]
) -> None:
    add_camera(console, enabled=False)
    journal = console.settings.camera_folder("north") / "journal"
    file_event(journal, entry("a1"))
    file_event(journal, entry("a2", end=None, start=START + 5, peak=START + 5))
    file_event(journal, entry("a3", n_bytes=1 << 70))
    (journal / "0-damaged.json").write_text("{")
    supervised()
    wait_until(lambda: list(journal.glob("*.json")) == [], "the journal is empty")
    wait_until(lambda: all(event.end for event in alarms(console)), "nothing is left open")
    assert {event.id: event.end for event in alarms(console)} == {"a1": START + 1, "a2": START + 6}
    assert len(list(journal.glob("*.damaged"))) == 2
    assert sum("put aside" in notice.text for notice in console.bulletin.notices()) == 2


def test_a_process_that_takes_no_orders_holds_nothing_up(
    console: Console, playing: str, supervised: Callable[..., Supervisor]
) -> None:
    """More was called normal than a pipe holds, and the process of the camera is stopped."""
    supervisor = supervised(silence=4.0)
    wait_until(lambda: alarms(console), "an alarm")
    before = pid_of(supervisor)
    os.kill(before, signal.SIGSTOP)
    with console.database.transaction() as session:
        known = session.scalars(select(EventRow)).first()
        assert known is not None
        for number in range(200):
            details = known.details | {"explanation": "x" * 10_000}
            of_camera = {"camera_id": "north", "start": START, "peak": START, "end": START}
            session.add(
                EventRow(
                    id=f"normal-{number}",
                    **of_camera,
                    alarm=False,
                    at_half=False,
                    normality=known.normality,
                    threshold=known.threshold,
                    rarity="",
                    cue="",
                    explanation="",
                    behaviour=1,
                    details=details,
                    n_bytes=0,
                    clip_bytes=0,
                    review="normal",
                    reviewed=START + number,
                )
            )
    supervisor.refresh()
    wait_until(lambda: not running(before), "it was killed")
    wait_until(lambda: pid_of(supervisor) != before, "another process")


def test_after_a_start_nothing_is_watched_before_a_process_says_so(
    console: Console, fork_server: ForkServer
) -> None:
    add_camera(console, "north", state="watching")
    add_camera(console, "south", state="off", enabled=False)
    add_camera(console, "east", kind="recording", state="ended")
    supervisor = Supervisor(console, fork_server)
    supervisor._look()
    states = [camera(console, camera_id).state for camera_id in ("north", "south", "east")]
    assert states == ["connecting", "off", "ended"]


def test_a_camera_that_is_not_to_be_watched_is_off_at_once(console: Console) -> None:
    address = "rtsp://192.0.2.1/"
    gate = NewCamera(name="Gate", address=address, enabled=False)
    made = add_by_admin(console, "ann", gate)
    assert made.state == "off"
