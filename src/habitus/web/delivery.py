"""Tells what is in the outbox: a thread with an event loop, and in it one task a channel.

Within a channel everything is told in order, one after the other, and a failure is tried again
with growing waits; no channel waits for another. All channels tell at least once:

- What was told is committed right after. Where it cannot be, as the database is away, it is
  remembered, and committed before the channel tells anything else: never twice within a run.
- Before and after each message one line is appended to a file, the slate, which takes
  microseconds and outlives a killed process. At the next start what the slate says was told is
  committed as such. So a message is told twice only if the process dies while the receiver has
  it and its answer is not here yet, or if the machine loses power before the commit. Nobody can
  tell that from one that never arrived, and a lost alarm is worse than a double one: it is told
  again, with the same id. Receivers of webhooks and MQTT can drop it by that id; for people the
  message says that it may have been told before.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError

from habitus.backlog import growing_wait
from habitus.errors import HabitusError
from habitus.files import written_whole
from habitus.web.channels import DeliveryError, Notification, Sender, open_sender
from habitus.web.database import Channel, OutboxEntry
from habitus.web.outbox import take_next

if TYPE_CHECKING:
    from habitus.web.server import Console

TICK = 0.5
"""Seconds between two looks at the outbox."""
LONGEST_DATABASE_WAIT = 5.0
"""Seconds between two attempts while the database is away, at most."""
GRACE = 12.0
"""Seconds that a message that is being told has at the end; a webhook has 10."""
N_THREADS = 64
LARGEST_SLATE = 1 << 20
GIVEN_UP_AFTER = 7 * 86400.0
LEAST_ATTEMPTS = 100
"""Attempts before anything is given up, whatever the clock says."""


class Slate:
    """File of what is being told and what was told, where the database may not know it yet.

    Parameters
    ----------
    path
        The file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self.told: dict[str, float] = {}
        """When, by key, that is not committed yet."""
        self.interrupted: set[str] = set()
        """Keys of what was being told when the process before this one died."""
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        with contextlib.suppress(ValueError, TypeError):  # cut off as the disk was full
            key, told = json.loads(line)
            self.interrupted.add(key)
            if told is not None:
                self.told[key] = float(told)
                self.interrupted.discard(key)

    def begin(self, key: str) -> None:
        """Note that something is being told from now on."""
        self._open.add(key)
        self._append(key, None)

    def told_at(self, key: str, now: float) -> None:
        """Note that it was told."""
        self.told[key] = now
        self._append(key, now)

    def failed(self, key: str) -> None:
        """Note that telling it failed; it will begin again."""
        self._open.discard(key)

    def settle(self, key: str) -> None:
        """Forget what is committed."""
        self.told.pop(key, None)
        self._open.discard(key)
        self.interrupted.discard(key)
        with self._lock, contextlib.suppress(OSError, HabitusError):
            if self._path.stat().st_size > LARGEST_SLATE:
                self._rewrite()

    def _rewrite(self) -> None:
        open_keys = sorted(self._open | self.interrupted)
        lines = [[key, None] for key in open_keys] + [[*item] for item in self.told.items()]
        with written_whole(self._path) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def _append(self, key: str, told: float | None) -> None:
        line = json.dumps([key, told]) + "\n"
        # On a full disk it is remembered by this process alone.
        with self._lock, contextlib.suppress(OSError), self._path.open("ab", buffering=0) as file:
            file.write(line.encode())


class _Task(NamedTuple):
    """The task of a channel, and what wakes it."""

    task: "asyncio.Task[None]"
    wake: asyncio.Event
    settings: tuple[object, ...]


class Deliverer:
    """Tells what is in the outbox, in a thread of its own.

    Parameters
    ----------
    console
        Whose outbox it is.
    notice
        Takes a line for a person: a channel that is away, or back; by default it is posted.
    clock
        Gives seconds since the epoch.
    first_wait, longest_wait
        Seconds before the second attempt, and between two attempts at most.
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
        self._console, self._clock = console, clock
        self._first_wait, self._longest_wait = first_wait, longest_wait
        self._notice = notice or console.bulletin.post
        self._slate = Slate(console.settings.data / "telling.log")
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._tasks: dict[int, _Task] = {}

    def start(self) -> None:
        """Begin to tell."""
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """End, once what is being told is told or failed."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    @property
    def is_alive(self) -> bool:
        """Whether the thread is there."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_default_executor(ThreadPoolExecutor(N_THREADS, "delivery"))
        self._ready.set()
        away = False
        while not self._stopping.is_set():
            try:
                self._follow(await asyncio.to_thread(self._channels))
                away = False
            except Exception as error:  # whatever it is, it is looked at again
                if not away:
                    self._notice(f"the outbox cannot be read: {_line(error)}")
                away = True
            await _set_within(self._stopping, TICK)
        await self._end()

    def _channels(self) -> list[Channel]:
        with self._console.database.session() as session:
            return list(session.scalars(select(Channel).where(Channel.enabled)))

    def _follow(self, channels: list[Channel]) -> None:
        """Have one task for each channel; wake those whose settings are others than before."""
        for channel in channels:
            settings = (channel.kind, channel.secret_settings, channel.cameras)
            known = self._tasks.get(channel.id)
            if known is None or known.task.done():
                wake = asyncio.Event()
                task = asyncio.create_task(self._serve(channel.id, wake))
                self._tasks[channel.id] = _Task(task, wake, settings)
            elif known.settings != settings:
                known.wake.set()
                self._tasks[channel.id] = known._replace(settings=settings)
        for gone in {*self._tasks} - {channel.id for channel in channels}:
            self._tasks[gone].wake.set()  # it looks, and ends
            if self._tasks[gone].task.done():
                del self._tasks[gone]

    async def _end(self) -> None:
        tasks = [known.task for known in self._tasks.values()]
        for known in self._tasks.values():
            known.wake.set()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self, channel_id: int, wake: asyncio.Event) -> None:
        """Tell what one channel has to tell, until it is disabled or removed, or at the end."""
        worker = _Worker(self, channel_id)
        try:
            while self._stopping is not None and not self._stopping.is_set():
                wait = await worker.step()
                if wait is None:
                    return
                await _set_within(wake, wait)
                wake.clear()
        finally:
            await worker.close()


class _Worker:
    """What tells by one channel."""

    def __init__(self, deliverer: Deliverer, channel_id: int) -> None:
        self._console, self._slate = deliverer._console, deliverer._slate
        self._clock, self._notice = deliverer._clock, deliverer._notice
        self._first_wait, self._longest_wait = deliverer._first_wait, deliverer._longest_wait
        self._id = channel_id
        self._name = f"channel {channel_id}"
        self._sender: Sender | None = None
        self._settings: tuple[object, ...] = ()
        self._n_failures = 0
        self._removed = False

    async def step(self) -> float | None:
        """Tell one message if there is one; return the seconds to wait, or None to end."""
        try:
            channel = await asyncio.to_thread(self._channel)
            if channel is None:
                return None
            sender = await self._open(channel)
            await sender.refresh()
            told = await self._tell_next(channel, sender)
        except SQLAlchemyError as error:
            return self._failed(f"the database is away: {_line(error)}", LONGEST_DATABASE_WAIT)
        except Exception as error:  # of a library, or of a service: a channel never ends by it
            return self._failed(_line(error), self._longest_wait)
        if self._n_failures:
            self._n_failures = 0
            self._notice(f"{self._name} works again")
        return 0.0 if told else TICK

    def _failed(self, reason: str, longest: float) -> float:
        if self._n_failures == 0:
            self._notice(f"{self._name} cannot be told anything now: {reason}")
        self._n_failures += 1
        return growing_wait(self._n_failures, self._first_wait, longest)

    async def close(self) -> None:
        """Take leave of the receiver."""
        if self._sender is not None:
            with contextlib.suppress(Exception):  # whatever it is, nobody is there to be told
                await self._sender.close(removed=self._removed)

    def _channel(self) -> Channel | None:
        with self._console.database.session() as session:
            channel = session.get(Channel, self._id)
            self._removed = channel is None
            return channel if channel is not None and channel.enabled else None

    async def _open(self, channel: Channel) -> Sender:
        settings = (channel.kind, channel.secret_settings, channel.cameras)
        self._name = channel.name
        if self._sender is None or self._settings != settings:
            if self._sender is not None:
                await self._sender.close()
            self._sender = None
            self._sender = await asyncio.to_thread(open_sender, self._console, channel)
            self._settings = settings
        return self._sender

    async def _tell_next(self, channel: Channel, sender: Sender) -> bool:
        """Tell the next message; return whether there was one."""
        entry = await asyncio.to_thread(self._next, channel)
        if entry is None:
            return False
        key = self._key(entry)
        again = key in self._slate.interrupted
        notification = Notification(
            entry.subject, entry.kind, entry.created, entry.body, entry.attempts + 1, again
        )
        await asyncio.to_thread(self._slate.begin, key)
        try:
            await sender.send(notification)
        except Exception as error:
            self._slate.failed(key)
            await asyncio.to_thread(self._write_failure, entry, _line(error))
            raise
        self._slate.told_at(key, self._clock())
        await asyncio.to_thread(self._settle)
        return True

    def _key(self, entry: OutboxEntry) -> str:
        return f"{self._id}:{entry.subject}"

    def _next(self, channel: Channel) -> OutboxEntry | None:
        self._settle()
        with self._console.database.transaction() as session:
            return take_next(session, channel, self._clock())

    def _settle(self) -> None:
        """Commit what was told by this channel and is not committed."""
        mine = {key: at for key, at in self._slate.told.items() if key.startswith(f"{self._id}:")}
        if not mine:
            return
        with self._console.database.transaction() as session:
            for key, at in mine.items():
                session.execute(
                    update(OutboxEntry)
                    .where(
                        OutboxEntry.channel_id == self._id,
                        OutboxEntry.subject == key.partition(":")[2],
                        OutboxEntry.outcome == "waiting",
                    )
                    .values(sent=at, outcome="sent", error="")
                )
        for key in mine:
            self._slate.settle(key)

    def _write_failure(self, entry: OutboxEntry, reason: str) -> None:
        """Write why it failed, and give up what failed for a week."""
        now, n_attempts = self._clock(), entry.attempts + 1
        with self._console.database.transaction() as session:
            session.execute(
                update(OutboxEntry)
                .where(OutboxEntry.id == entry.id)
                .values(attempts=n_attempts, error=reason)
            )
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
        self._notice(f"{self._name}: {len(given_up)} messages were given up after a week: {reason}")


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, or so many seconds."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _line(error: BaseException) -> str:
    """Return an error in one line, without statements and values of the database."""
    text = str(getattr(error, "orig", None) or error).strip()
    first = text.splitlines()[0] if text else ""
    known = isinstance(error, (DeliveryError, SQLAlchemyError)) and first
    return first if known else f"{type(error).__name__}: {first}"
