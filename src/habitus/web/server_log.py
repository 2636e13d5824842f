"""The server's log: a file of the data folder, in which no secrets are, and its last lines."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

import habitus

NAME = "server.log"
LARGEST = 1_000_000
"""Bytes of the file; then it becomes the one before it, which is deleted."""
N_LINES = 300
SECRETS = re.compile(r"(?i)(habitus_[\w-]{6,}|(?<=bearer )\S+|(?<=password[=:])\s*\S+)")
ADDRESS = re.compile(r"\S+://\S+")
LOGGER = logging.getLogger("habitus.web")
"""What the server itself says."""


class _RedactingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = ADDRESS.sub(lambda found: habitus.redacted(found[0]), super().format(record))
        return SECRETS.sub("***", text)


class _QuietHandler(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - theirs
        """Go on without the line, as on a full disk."""


@contextmanager
def logged(data: Path) -> Iterator[None]:
    """Write what is logged meanwhile to the log of a data folder."""
    path = data / NAME
    path.touch(mode=0o600)
    handler = _QuietHandler(path, maxBytes=LARGEST, backupCount=1, encoding="utf-8")
    handler.setFormatter(_RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    shown = logging.StreamHandler()  # what is wrong, as without a log
    shown.setLevel(logging.WARNING)
    before = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    for one in (handler, shown):
        LOGGER.addHandler(one)
    try:
        yield
    finally:
        for one in (handler, shown):
            LOGGER.removeHandler(one)
        LOGGER.setLevel(before)
        handler.close()


def last_lines(data: Path) -> list[str]:
    """Return the last lines of the log, the newest last."""
    try:
        with (data / NAME).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 400 * N_LINES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return text.splitlines()[-N_LINES:]
