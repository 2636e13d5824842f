"""Events read back from the lines of JSON that `habitus detect` and `watch` wrote."""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from habitus.errors import FileError, InvalidInputError
from habitus.events.event import SCHEMA, Event
from habitus.normality.localisation import Box


def read_events(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a file of JSON Lines, in order of time; refused if any line is none."""
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: neither a habitus model nor a file of events") from error
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    events = [_event(file, number, line) for number, line in numbered]
    return sorted(events, key=lambda event: event.start)


def _event(file: Path, number: int, line: str) -> Event:
    try:
        values: Any = json.loads(line)
        if values["habitus"] != "event":
            raise ValueError("not an event")
        if values["version"] > SCHEMA:
            raise FileError(
                f"{file}, line {number}: an event of version {values['version']}, this habitus "
                f"reads up to {SCHEMA}: upgrade habitus"
            )
        known = {field.name: values[field.name] for field in fields(Event)}
        known["boxes"] = tuple(Box(*map(int, box)) for box in known["boxes"])
        for name in ("expected", "words"):
            known[name] = tuple(known[name])
        for name in ("start", "end", "peak"):
            known[name] = float(known[name])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            f"{file}, line {number}: not an event as `habitus detect -o` writes it"
        ) from error
    return Event(**known)
