"""Writing without waiting: a thread writes what others add, as soon as it can be written."""

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from habitus.errors import HabitusError

# Seconds from one attempt to write an item to the next.
RETRY = 1.0

T = TypeVar("T")


class Backlog(Generic[T]):
    """Items that a thread of their own writes in order: whoever adds one never waits.

    `write` may block, and raises OSError or HabitusError if an item cannot be written now: that
    one stays the first, and is tried again every `RETRY` seconds. `note` is called with the reason
    then, and with "" once one can be written again. At most `room` items wait; how many found no
    room is `dropped`. Any other exception ends the thread, and is raised where the next is added.

    Examples
    --------
    >>> written = []
    >>> backlog = Backlog(written.append)
    >>> backlog.add("a")
    >>> backlog.add("b")
    >>> backlog.close(within=60), written
    ([], ['a', 'b'])
    """

    def __init__(
        self,
        write: Callable[[T], object],
        *,
        room: int | None = None,
        note: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._write, self._room, self._note, self._trouble = write, room, note, ""
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed, self.dropped = False, 0
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: T) -> None:
        """Add an item, or drop it if there is no room."""
        with self._changed:
            if self._fault is not None:
                raise self._fault
            if self._room is not None and len(self._items) >= self._room:
                self.dropped += 1
            else:
                self._items.append(item)
            self._changed.notify()

    def close(self, *, within: float) -> list[T]:
        """Try once more to write what waits; return what was not written `within` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(within)
        with self._changed:
            return list(self._items)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._closed)
                if not self._items:
                    return
                item, last_attempt = self._items[0], self._closed
            try:
                self._write(item)
            except (OSError, HabitusError) as error:
                self._change(str(getattr(error, "strerror", None) or error))
                if last_attempt:
                    return
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, RETRY)
            except Exception as error:
                self._fault = error
                raise
            else:
                self._change("")
                with self._changed:
                    self._items.popleft()

    def _change(self, trouble: str) -> None:
        """Say what is wrong now, if that is news."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._note(trouble)


def growing_wait(n_failures: int, first: float, longest: float) -> float:
    """Return the seconds to wait after failures in a row: twice as long each time, up to a limit.

    Examples
    --------
    >>> [growing_wait(n, first=1.0, longest=60.0) for n in (1, 2, 3, 5000)]
    [1.0, 2.0, 4.0, 60.0]
    """
    return min(first * 2.0 ** min(n_failures - 1, 30), longest)


def write_some(descriptor: int, data: bytes) -> bytes:
    """Write bytes to an open file, waiting for whoever reads it; return what is left of them."""
    while True:
        try:
            return data[os.write(descriptor, data) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
