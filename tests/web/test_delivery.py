import asyncio
import json
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from habitus.web.bulletin import News
from habitus.web.database import Channel
from habitus.web.delivery import GIVEN_UP_AFTER, LARGEST_LOG, Deliverer, DeliveryLog
from habitus.web.server import Console
from reference.consoles import PostgresServer, add_camera
from reference.processes import LONG, wait_until
from reference.streams import free_port
from reference.telling import (
    START,
    Receiver,
    add_channel,
    all_told,
    an_event,
    deliverer_process,
    outbox,
    outcomes,
    receiver,
    tell,
)

SMALL_LOG = 2048
"""Bytes: less than 200 messages would take."""
# Committing that something was told fails, as it does when the database is away.
AWAY = (
    "CREATE TRIGGER away BEFORE UPDATE ON outbox WHEN NEW.outcome = 'sent' "
    "BEGIN SELECT RAISE(ABORT, 'the database is away'); END"
)
BACK = "DROP TRIGGER away"


@contextmanager
def delivering(console: Console, **options: Any) -> Iterator[list[str]]:
    """The outbox is told meanwhile; gives the notices."""
    notices: list[str] = []
    deliverer = Deliverer(console, notice=notices.append, **{"first_wait": 0.05, **options})
    deliverer.start()
    try:
        yield notices
    finally:
        deliverer.stop()
    assert not deliverer.is_alive


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


@pytest.fixture(autouse=True)
def north(request: pytest.FixtureRequest) -> None:
    for name in ("console", "any_console"):
        if name in request.fixturenames:
            add_camera(request.getfixturevalue(name))
            return


def execute(console: Console, statement: str) -> None:
    with closing(sqlite3.connect(console.settings.data / "habitus.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()


def keys(first: int, last: int) -> list[str]:
    return [f"event{k}/started" for k in range(first, last + 1)]


def test_many_messages_are_told_in_their_order(
    console: Console, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is noted of them is written anew before it grows too large."""
    monkeypatch.setattr("habitus.web.delivery.LARGEST_LOG", SMALL_LOG)
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", *(an_event(k) for k in range(1, 101)))
    with delivering(console):
        wait_until(lambda: len(hook.posted) > 20, "some are told")
        tell(console, "started", *(an_event(k) for k in range(101, 201)))
        wait_until(lambda: all_told(console), "all are told")
    assert hook.keys == keys(1, 200)
    assert (console.settings.data / "telling.log").stat().st_size < 2 * SMALL_LOG


def test_a_receiver_that_is_away_gets_all_in_order_and_delays_nobody(
    any_console: Console, hook: Receiver
) -> None:
    port = free_port()
    add_channel(any_console, "webhook", {"url": f"http://127.0.0.1:{port}/"}, name="garage")
    add_channel(any_console, "webhook", {"url": hook.url})
    tell(any_console, "started", *(an_event(k) for k in range(1, 6)))
    with delivering(any_console) as notices:
        wait_until(lambda: len(hook.posted) == 5, "the other channel is told")
        wait_until(lambda: outbox(any_console)[0].attempts >= 2, "it is tried again")
        assert "refused" in outbox(any_console)[0].error
        wait_until(lambda: outcomes(any_console).count("waiting") == 5, "the others are told")
        with receiver(port) as late:
            late.status = 503
            wait_until(lambda: late.posted, "it is tried")
            late.status = 200
            wait_until(lambda: all_told(any_console), "it is told")
            assert sorted(set(late.keys), key=late.keys.index) == keys(1, 5)
            last_headers = late.posted[-1].headers
        assert last_headers["X-Habitus-Attempt"] == "1"
        assert "refused" in notices[0]
        assert notices[0].startswith("garage cannot be sent anything now")
        wait_until(lambda: "garage works again" in notices, "people are told")
        assert len(notices) == 2
    assert hook.keys == keys(1, 5)


def test_what_cannot_be_committed_is_not_told_again(console: Console, hook: Receiver) -> None:
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1), an_event(2))
    execute(console, AWAY)
    with delivering(console) as notices:
        wait_until(lambda: any("database is away" in line for line in notices), "a notice")
        wait_until(lambda: len(hook.posted) == 1, "the first is told")
        assert outcomes(console) == ["waiting", "waiting"]
        execute(console, BACK)
        wait_until(lambda: all_told(console), "both are committed")
    assert hook.keys == keys(1, 2)


def test_a_database_that_is_away_meanwhile_is_told_later(
    postgres_console: Console, postgres_server: PostgresServer, hook: Receiver
) -> None:
    add_camera(postgres_console)
    add_channel(postgres_console, "webhook", {"url": hook.url})
    tell(postgres_console, "started", an_event(1), an_event(2))
    hook.gate.clear()
    with delivering(postgres_console) as notices:
        wait_until(lambda: hook.posted, "the receiver has it")
        postgres_server.stop()
        try:
            hook.gate.set()
            wait_until(lambda: any("away" in line for line in notices), "a notice")
        finally:
            postgres_server.start()
        wait_until(lambda: all_told(postgres_console), "both are committed")
    assert hook.keys == keys(1, 2)


def test_killed_before_the_commit_it_does_not_tell_again(
    console: Console, hook: Receiver, start: Any
) -> None:
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1), an_event(2))
    execute(console, AWAY)
    process = deliverer_process(start, console)
    log = console.settings.data / "telling.log"
    wait_until(lambda: log.exists() and log.read_text().count("\n") == 2, "it is noted")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert outcomes(console) == ["waiting", "waiting"]
    execute(console, BACK)
    deliverer_process(start, console)
    wait_until(lambda: all_told(console), "all are told")
    assert hook.keys == keys(1, 2)


def test_killed_while_the_receiver_has_it_it_tells_again_and_says_so(
    console: Console, hook: Receiver, start: Any
) -> None:
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1), an_event(2))
    hook.gate.clear()
    process = deliverer_process(start, console)
    wait_until(lambda: hook.posted, "the receiver has it")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    hook.gate.set()
    deliverer_process(start, console)
    wait_until(lambda: all_told(console), "all are told")
    assert hook.keys == ["event1/started", *keys(1, 2)]
    attempts = [posted.headers["X-Habitus-Attempt"] for posted in hook.posted]
    assert attempts == ["1", "2", "1"]


def test_stopping_waits_for_the_message_under_way(console: Console, hook: Receiver) -> None:
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1), an_event(2))
    hook.gate.clear()
    deliverer = Deliverer(console)
    deliverer.start()
    wait_until(lambda: hook.posted, "the receiver has it")
    stopping = threading.Thread(target=deliverer.stop)
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    hook.gate.set()
    stopping.join()
    deliverer.stop()  # again is nothing
    assert outcomes(console) == ["sent", "waiting"]
    with delivering(console):
        wait_until(lambda: all_told(console), "the rest is told")
    assert hook.keys == keys(1, 2)


def test_after_a_week_of_failures_it_is_given_up(console: Console) -> None:
    add_channel(console, "webhook", {"url": f"http://127.0.0.1:{free_port()}/"})
    late = START + GIVEN_UP_AFTER
    tell(console, "started", an_event(1), an_event(2), now=START)
    tell(console, "started", an_event(3), now=late - 60)
    options = {"clock": lambda: late, "first_wait": 0.001, "longest_wait": 0.001}
    with delivering(console, **options) as notices:
        wait_until(lambda: outcomes(console)[0] == "given up", "it is given up")
        wait_until(lambda: len(notices) == 2, "people are told")
    assert outcomes(console) == ["given up", "given up", "waiting"]
    assert outbox(console)[0].attempts == 100
    assert "2 messages were given up" in notices[1]


def test_a_clock_that_is_far_ahead_for_a_moment_gives_nothing_up(
    console: Console, hook: Receiver
) -> None:
    hook.status = 500
    add_channel(console, "webhook", {"url": hook.url})
    tell(console, "started", an_event(1), now=0.0)  # before the clock was set
    with delivering(console):
        wait_until(lambda: outbox(console)[0].attempts >= 2, "it is tried again")
        hook.status = 200
        wait_until(lambda: all_told(console), "it is told")


def test_settings_that_change_are_used_at_once(console: Console, hook: Receiver) -> None:
    channel = add_channel(console, "webhook", {"url": f"http://127.0.0.1:{free_port()}/"})
    tell(console, "started", an_event(1))
    with delivering(console, first_wait=3600.0, longest_wait=3600.0) as notices:
        wait_until(lambda: notices, "the first attempt failed")
        with console.database.transaction() as session:
            row = session.get_one(Channel, channel.id)
            row.secret_settings = console.vault.seal({"url": hook.url})
        wait_until(lambda: all_told(console), "it is told")
        with console.database.transaction() as session:
            session.get_one(Channel, channel.id).enabled = False
        tell(console, "started", an_event(2))
    assert hook.keys == keys(1, 1)


def test_channels_that_cannot_be_opened_are_a_notice(console: Console, hook: Receiver) -> None:
    broken = add_channel(console, "webhook", {"url": hook.url}, name="broken")
    add_channel(console, "webhook", {"url": hook.url})
    with console.database.transaction() as session:
        session.get_one(Channel, broken.id).secret_settings = b"sealed with another key"
    tell(console, "started", an_event(1))
    with delivering(console) as notices:
        wait_until(lambda: hook.posted and notices, "the other one is told")
    assert "restore secret.key" in notices[0]


def test_notices_are_published(console: Console) -> None:
    add_channel(console, "webhook", {"url": f"http://127.0.0.1:{free_port()}/"}, name="garage")
    tell(console, "started", an_event(1))

    async def first() -> News:
        listening = console.bulletin.listen()
        news = asyncio.create_task(anext(listening))  # type: ignore[arg-type]
        while not len(console.bulletin):
            await asyncio.sleep(0)
        deliverer.start()
        return await asyncio.wait_for(news, LONG)

    deliverer = Deliverer(console)
    topic, data = asyncio.run(first())
    deliverer.stop()
    assert topic == "notice"
    assert data["text"].startswith("garage cannot be sent")
    assert console.bulletin.notices()[0].text == data["text"]


def test_a_log_that_is_damaged_or_large_is_read_and_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "telling.log"
    lines = ['["1:a/started", null]', '["1:a/started", 5.0]', '["1:b/started", null]', "[1, 2]"]
    path.write_text("\n".join(lines) + '\n["1:c/st')
    log = DeliveryLog(path)
    assert log.sent == {"1:a/started": 5.0, 1: 2.0}
    assert log.interrupted == {"1:b/started"}
    with path.open("a") as file:
        file.write("\n" * LARGEST_LOG)
    log.settle("1:a/started")
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        ["1:b/started", None],
        [1, 2.0],
    ]
