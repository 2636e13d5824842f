"""The connection of a camera's process to the server, which never makes the process wait."""

import queue
import threading
from collections import deque
from multiprocessing.connection import Connection

from habitus.site.pipe_messages import Judged, Order, Report, Seen, Stop

# Judged documents that may wait for the server to read them.
MOST_JUDGED = 600


class ReportLine:
    """Sends reports and takes orders, each in a thread of its own.

    Of pictures only the latest waits to be sent, and of judged documents the latest `MOST_JUDGED`.
    Other reports are few, and all wait.

    Parameters
    ----------
    connection
        To the server.

    Attributes
    ----------
    orders
        Orders that came.
    stop
        Set when the process is to end: by an order, or because the server is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.stop = threading.Event()
        self._changed = threading.Condition()
        self._reports: deque[Report] = deque()
        self._picture: Seen | None = None
        self._n_judged, self._closed = 0, False
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()
        threading.Thread(target=self._receive, daemon=True).start()

    def tell(self, report: Report) -> None:
        """Have a report sent."""
        with self._changed:
            if isinstance(report, Seen):
                self._picture = report
            else:
                self._reports.append(report)
            if isinstance(report, Judged):
                self._n_judged += 1
                if self._n_judged > MOST_JUDGED:
                    self._drop_oldest()
            self._changed.notify()

    def next_order(self, within: float = 0.0) -> Order | None:
        """Return the next order, or None if none comes in time."""
        try:
            return self.orders.get(timeout=within) if within else self.orders.get_nowait()
        except queue.Empty:
            return None

    def close(self, *, within: float) -> None:
        """Send what waits, as far as the server reads it in time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._sender.join(within)

    def _drop_oldest(self) -> None:
        for n, report in enumerate(self._reports):
            if isinstance(report, Judged):
                del self._reports[n]
                self._n_judged -= 1
                return

    def _next(self) -> Report | None:
        """Return the next report once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._reports or self._picture or self._closed)
            if self._reports:
                report = self._reports.popleft()
                self._n_judged -= isinstance(report, Judged)
                return report
            picture, self._picture = self._picture, None
            return picture

    def _send(self) -> None:
        try:
            while (report := self._next()) is not None:
                self.connection.send(report)
        except OSError:
            self.stop.set()

    def _receive(self) -> None:
        try:
            while not self.stop.is_set():
                order: Order = self.connection.recv()
                if isinstance(order, Stop):
                    break
                self.orders.put(order)
        except (EOFError, OSError):
            pass
        self.stop.set()
