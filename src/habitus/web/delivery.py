"""Sends what is in the outbox: a thread with an event loop, and in it one task a channel.

Within a channel everything is sent in order, one after the other, and a failure is tried again
with growing waits; no channel waits for another. All channels send at least once:

- What was sent is committed right after. Where it cannot be, as the database is away, it is
  remembered, and committed before the channel sends anything else: never twice within a run.
- Before and after each message one line is appended to a file, the log of delivery, which takes
  microseconds and outlives a killed process. At the next start what it says was sent is committed
  as such. So a message is sent twice only if the process dies while the receiver has it and its
  answer is not here yet, or if the machine loses power before the commit. Nobody can distinguish
  that from one that never arrived, and a lost alarm is worse than a double one: it is sent again,
  with the same id. Receivers of webhooks and MQTT can drop it by that id; for people the message
  says that it may have been sent before.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from habitus.backlog import growing_wait
from habitus.errors import HabitusError
from habitus.files import written_whole
from habitus.web.channels import DeliveryError, Notification, Sender, open_sender
from habitus.web.database import Channel, OutboxEntry, first_line
from habitus.web.outbox import take_next

if TYPE_CHECKING:
    from habitus.web.server import Console

TICK = 0.5
"""Seconds between two looks at the outbox."""
LONGEST_DATABASE_WAIT = 5.0
"""Seconds between two attempts while the database is away, at most."""
GRACE = 12.0
"""Seconds that a message that is being sent has at the end; a webhook has 10."""
N_THREADS = 64
LARGEST_LOG = 1 << 20
GIVEN_UP_AFTER = 7 * 86400.0
LEAST_ATTEMPTS = 100
"""Attempts before anything is given up, whatever the clock says."""


class DeliveryLog:
    """File of what is being sent and what was sent, where the database may not know it yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self.sent: dict[str, float] = {}
        """When, by key, that is not committed yet."""
        self.interrupted: set[str] = set()
        """Keys of what was being sent when the process before this one died."""
        lines: list[str] = []
        with contextlib.suppress(FileNotFoundError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):  # cut off as the disk was full
                key, sent = json.loads(line)
                self.interrupted.add(key)
                if sent is not None:
                    self.sent[key] = float(sent)
                    self.interrupted.discard(key)

    def begin(self, key: str) -> None:
        """Note that something is being sent from now on."""
        self._open.add(key)
        self._append(key, None)

    def sent_at(self, key: str, now: float) -> None:
        """Note that it was sent."""
        self.sent[key] = now
        self._append(key, now)

    def failed(self, key: str) -> None:
        """Note that sending it failed; it will begin again."""
        self._open.discard(key)

    def settle(self, key: str) -> None:
        """Forget what is committed."""
        self.sent.pop(key, None)
        self._open.discard(key)
        self.interrupted.discard(key)
        with self._lock, contextlib.suppress(OSError, HabitusError):
            if self._path.stat().st_size > LARGEST_LOG:
                self._rewrite()

    def _rewrite(self) -> None:
        open_keys = sorted(self._open | self.interrupted)
        lines = [[key, None] for key in open_keys] + [[*item] for item in self.sent.items()]
        with written_whole(self._path) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _append(self, key: str, sent: float | None) -> None:
        line = json.dumps([key, sent]) + "\n"
        # On a full disk it is remembered by this process alone.
        with self._lock, contextlib.suppress(OSError), self._path.open("ab", buffering=0) as file:
            file.write(line.encode())


class Deliverer:
    """Sends what is in the outbox, in a thread of its own.

    A line for a person, of a channel that is away or back, goes to `notice`, or is posted. The
    waits are before the second attempt, and between two attempts at most.
    """

    def __init__(
        self,
        console: "Console",
        *,
        notice: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        first_wait: float = 1.0,
        longest_wait: float = 300.0,
    ) -> None:
        self.console, self.clock = console, clock
        self.first_wait, self.longest_wait = first_wait, longest_wait
        self.notice = notice or console.bulletin.post
        self.log = DeliveryLog(console.settings.data / "telling.log")
        self.stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._workers: dict[int, _Worker] = {}

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main()), name="delivery", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """End, once what is being sent is sent or failed."""
        if self._thread is None or self._loop is None or self.stopping is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self.stopping.set)
        self._thread.join()
        self._thread = None

    @property
    def is_alive(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None and self._thread.is_alive()

    async def _main(self) -> None:
        self._loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(N_THREADS, "delivery"))
        self._ready.set()
        away = False
        while not self.stopping.is_set():
            try:
                self._follow(await asyncio.to_thread(self.console.database.read, _enabled))
                away = False
            except Exception as error:  # whatever it is, it is looked at again
                if not away:
                    self.notice(f"the outbox cannot be read: {_line(error)}")
                away = True
            await _set_within(self.stopping, TICK)
        for worker in self._workers.values():
            worker.wake.set()
        if tasks := [worker.task for worker in self._workers.values()]:
            _, late = await asyncio.wait(tasks, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _follow(self, channels: list[Channel]) -> None:
        """Have one worker for each channel; wake those whose settings are others than before."""
        for channel in channels:
            worker, settings = self._workers.get(channel.id), _settings(channel)
            if worker is None or worker.task.done():
                self._workers[channel.id] = _Worker(self, channel.id, settings)
            elif worker.seen != settings:
                worker.seen = settings
                worker.wake.set()
        for gone in {*self._workers} - {channel.id for channel in channels}:
            self._workers[gone].wake.set()  # it looks, and ends
            if self._workers[gone].task.done():
                del self._workers[gone]


class _Worker:
    """What sends by one channel, in a task that ends once the channel is disabled or removed."""

    def __init__(self, deliverer: Deliverer, channel_id: int, seen: tuple[object, ...]) -> None:
        self._deliverer, self._log = deliverer, deliverer.log
        self._database, self._clock = deliverer.console.database, deliverer.clock
        self._id, self._name = channel_id, f"channel {channel_id}"
        self._sender: Sender | None = None
        self._settings: tuple[object, ...] = ()
        """Of the sender."""
        self._n_failures = 0
        self._removed = False
        self.seen = seen
        """Settings of the channel when it was last looked at."""
        self.wake = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        stopping = self._deliverer.stopping
        try:
            while stopping is not None and not stopping.is_set():
                wait = await self._step()
                if wait is None:
                    return
                await _set_within(self.wake, wait)
                self.wake.clear()
        finally:
            if self._sender is not None:
                with contextlib.suppress(Exception):  # whatever it is, nobody is there to hear it
                    await self._sender.close(removed=self._removed)

    async def _step(self) -> float | None:
        """Send one message if there is one; return the seconds to wait, or None to end."""
        try:
            channel = await asyncio.to_thread(self._channel)
            if channel is None:
                return None
            sender = await self._open(channel)
            await sender.refresh()
            sent = await self._send_next(channel, sender)
        except SQLAlchemyError as error:
            return self._failed(f"the database is away: {_line(error)}", LONGEST_DATABASE_WAIT)
        except Exception as error:  # of a library, or of a service: a channel never ends by it
            return self._failed(_line(error), self._deliverer.longest_wait)
        if self._n_failures:
            self._n_failures = 0
            self._deliverer.notice(f"{self._name} works again")
        return 0.0 if sent else TICK

    def _failed(self, reason: str, longest: float) -> float:
        if self._n_failures == 0:
            self._deliverer.notice(f"{self._name} cannot be sent anything now: {reason}")
        self._n_failures += 1
        return growing_wait(self._n_failures, self._deliverer.first_wait, longest)

    def _channel(self) -> Channel | None:
        with self._database.session() as session:
            channel = session.get(Channel, self._id)
        self._removed = channel is None
        return channel if channel is not None and channel.enabled else None

    async def _open(self, channel: Channel) -> Sender:
        self._name = channel.name
        if self._sender is None or self._settings != _settings(channel):
            if self._sender is not None:
                await self._sender.close()
            self._sender = None
            console = self._deliverer.console
            self._sender = await asyncio.to_thread(open_sender, console, channel)
            self._settings = _settings(channel)
        return self._sender

    async def _send_next(self, channel: Channel, sender: Sender) -> bool:
        """Send the next message; return whether there was one."""
        entry = await asyncio.to_thread(self._next, channel)
        if entry is None:
            return False
        key = f"{self._id}:{entry.subject}"
        again = key in self._log.interrupted
        notification = Notification(
            entry.subject, entry.kind, entry.created, entry.body, entry.attempts + 1, again
        )
        await asyncio.to_thread(self._log.begin, key)
        try:
            await sender.send(notification)
        except Exception as error:
            self._log.failed(key)
            await asyncio.to_thread(self._write_failure, entry, _line(error))
            raise
        self._log.sent_at(key, self._clock())
        await asyncio.to_thread(self._settle)
        return True

    def _next(self, channel: Channel) -> OutboxEntry | None:
        self._settle()
        with self._database.transaction() as session:
            return take_next(session, channel, self._clock())

    def _settle(self) -> None:
        """Commit what was sent by this channel and is not committed."""
        mine = {key: at for key, at in self._log.sent.items() if key.startswith(f"{self._id}:")}
        if not mine:
            return
        waiting = update(OutboxEntry).where(
            OutboxEntry.channel_id == self._id, OutboxEntry.outcome == "waiting"
        )
        with self._database.transaction() as session:
            for key, at in mine.items():
                one = waiting.where(OutboxEntry.subject == key.partition(":")[2])
                session.execute(one.values(sent=at, outcome="sent", error=""))
        for key in mine:
            self._log.settle(key)

    def _write_failure(self, entry: OutboxEntry, reason: str) -> None:
        """Write why it failed, and give up what failed for a week."""
        now, n_attempts = self._clock(), entry.attempts + 1
        with self._database.transaction() as session:
            failed = update(OutboxEntry).where(OutboxEntry.id == entry.id)
            session.execute(failed.values(attempts=n_attempts, error=reason))
            if now - entry.created < GIVEN_UP_AFTER or n_attempts < LEAST_ATTEMPTS:
                return
            given_up = session.execute(
                update(OutboxEntry)
                .where(
                    OutboxEntry.channel_id == self._id,
                    OutboxEntry.outcome == "waiting",
                    OutboxEntry.created <= now - GIVEN_UP_AFTER,
                )
                .values(outcome="given up")
                .returning(OutboxEntry.id)
            ).all()
        number = len(given_up)
        self._deliverer.notice(
            f"{self._name}: {number} messages were given up after a week: {reason}"
        )


def _enabled(session: Session) -> list[Channel]:
    return list(session.scalars(select(Channel).where(Channel.enabled)))


def _settings(channel: Channel) -> tuple[object, ...]:
    """Return what a channel's sender is opened with."""
    return channel.kind, channel.secret_settings, channel.cameras


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, or so many seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _line(error: Exception) -> str:
    """Return an error in one line, without statements and values of the database."""
    line = first_line(error)
    plain = isinstance(error, (DeliveryError, SQLAlchemyError))
    return line if plain else f"{type(error).__name__}: {line}"
