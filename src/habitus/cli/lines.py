"""Lines for whoever reads standard output and standard error, without waiting for them."""

import sys
import threading
from typing import Self, TextIO

from habitus.backlog import Backlog, write_some
from habitus.cli.terminal import printable
from habitus.rarity import counted

# Lines that may wait for a reader of stderr; further ones are dropped.
ROOM = 1000
# Seconds that readers have for the last lines.
ENDING = 1.0


class ErrorLines:
    """Lines on stderr; those that nobody reads are dropped, and counted in a note."""

    def __init__(self) -> None:
        self.descriptor = _descriptor(sys.stderr, 2)
        self._failed, self._counted = 0, 0
        self._backlog = Backlog(self._write, room=ROOM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._backlog.close(within=ENDING)

    def add(self, line: str) -> None:
        """Print a line, now or when somebody reads."""
        self._backlog.add(printable(line))

    def _write(self, line: str) -> None:
        n_unread = self._backlog.dropped + self._failed
        n_new, self._counted = n_unread - self._counted, n_unread
        text = f"note: {counted(n_new, 'line')} not read\n" if n_new else ""
        data = f"{text}{line}\n".encode(errors="replace")
        try:
            while data:
                data = write_some(self.descriptor, data)
        except OSError:
            self._failed += 1
            self._counted -= n_new


class OutputLines:
    """Lines on stdout; they wait until they are read. `gone` is set when nobody will read them."""

    def __init__(self, gone: threading.Event) -> None:
        self.descriptor, self.gone = _descriptor(sys.stdout, 1), gone
        self._rest = b""
        self._backlog = Backlog(self._write)

    def add(self, line: str) -> None:
        """Add a line."""
        self._backlog.add(line)

    def close(self) -> list[str]:
        """Return the lines that were not read."""
        return self._backlog.close(within=ENDING)

    def _write(self, line: str) -> None:
        self._rest = self._rest or f"{line}\n".encode()
        try:
            while self._rest:
                self._rest = write_some(self.descriptor, self._rest)
        except BrokenPipeError:
            self.gone.set()
            raise


def _descriptor(stream: TextIO | None, usual: int) -> int:
    try:
        return stream.fileno() if stream is not None else usual
    except (OSError, ValueError):
        return usual
