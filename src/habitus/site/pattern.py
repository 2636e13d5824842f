"""Patterns that name recordings: of which camera a file is, and when it begins.

A pattern such as `recordings/{camera}/{date}/{hour}.mp4` is an address with fields in place of what
differs from one recording to the next.
"""

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from habitus.errors import InvalidInputError
from habitus.rarity import DAY, counted
from habitus.site.places import FoundFile, Place, place_of
from habitus.video.source import redacted

FIELDS = {
    "camera": r"[^/]+?",
    "date": r"\d{4}-\d{2}-\d{2}|\d{8}",
    "year": r"\d{4}",
    "month": r"\d{2}",
    "day": r"\d{2}",
    "hour": r"\d{2}(?:[-:]\d{2})?",
    "time": r"\d{2}[-:]\d{2}[-:]\d{2}|\d{2}[-:]\d{2}|\d{6}|\d{4}",
    "minute": r"\d{2}",
    "second": r"\d{2}",
}
"""What each field matches."""
ONE_CAMERA = "camera"
"""Name of the camera of a pattern that names none."""
CLOCK = "%Y-%m-%dT%H-%M-%S"
"""How the start of a recording is written in the name of a file."""
PART = re.compile(r"\{(?P<field>[^{}]*)\}|(?P<any>\*)|(?P<text>[^{}*]+)|(?P<stray>[{}])")
# Names that are shown of those that were found in place of what the pattern says.
SHOWN = 3


class Recording(NamedTuple):
    """A recording that a pattern names."""

    camera: str
    clock: str
    """Date and time at which it begins, as its address says: "2026-11-16T13-00-00"."""
    start: float
    """The same in seconds since the epoch."""
    file: FoundFile

    @property
    def name(self) -> str:
        """Address of the file, as it may be shown."""
        return redacted(self.file.address)


@dataclass(frozen=True)
class Pattern:
    """A pattern of addresses.

    Parameters
    ----------
    text
        An address with fields: {camera}; {date}, or {year}, {month} and {day}; {hour}, {time},
        {minute}, {second}; `*` stands for anything but a slash. A field that comes again stands
        for the same text.

    Raises
    ------
    InvalidInputError
        If a field is unknown, or the date is missing.

    Examples
    --------
    >>> Pattern("/video/{camera}/{date}/{hour}.mp4").match("/video/north/20261116/13.mp4")
    ('north', datetime.datetime(2026, 11, 16, 13, 0))
    >>> Pattern("/video/{camera}/{hour}.mp4")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: /video/{camera}/{hour}.mp4: a pattern must name the day of a \
recording, by {date} or by {year}, {month} and {day}
    """

    text: str

    def __post_init__(self) -> None:
        shown, fields = redacted(self.text), self.fields
        unknown = [field for field in fields if field not in FIELDS]
        if unknown or "stray" in self._kinds:
            culprit = f"{{{unknown[0]}}}" if unknown else "a brace of its own"
            choices = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise _unusable(f"{shown}: unknown field {culprit}: the fields are {choices}, and *")
        if "date" not in fields and not {"year", "month", "day"} <= set(fields):
            raise _unusable(
                f"{shown}: a pattern must name the day of a recording, by {{date}} or by {{year}}, "
                "{month} and {day}"
            )
        if "minute" in fields and not {"hour", "time"} & set(fields):
            raise _unusable(f"{shown}: {{minute}} needs {{hour}}")

    @cached_property
    def place(self) -> Place:
        """Where the recordings lie, and the pattern of their paths there."""
        return place_of(self.text)

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in order."""
        return [part["field"] for part in PART.finditer(self.text) if part["field"] is not None]

    @property
    def _kinds(self) -> set[str | None]:
        return {part.lastgroup for part in PART.finditer(self.text)}

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """What paths match."""
        return re.compile(_regex(self.place.path))

    def match(self, path: str) -> tuple[str, datetime] | None:
        """Return camera and start of the recording at a path; None where it does not match."""
        match = self.regex.fullmatch(path)
        if match is None:
            return None
        digits = {name: re.sub(r"\D", "", text) for name, text in match.groupdict().items()}
        day = digits.get("date") or "".join(digits[name] for name in ("year", "month", "day"))
        hour = digits.get("time") or digits.get("hour", "")
        time = hour if len(hour) > 2 else hour + digits.get("minute", "")
        time += digits.get("second", "") if len(time) == 4 else ""
        try:
            start = datetime.strptime(day + time.ljust(6, "0"), "%Y%m%d%H%M%S")
        except ValueError:
            return None
        return match.groupdict().get("camera", ONE_CAMERA), start

    def camera_of(self, path: str) -> str | None:
        """Return the camera of a path that matches, whether or not there is such a time."""
        match = self.regex.fullmatch(path)
        return None if match is None else match.groupdict().get("camera", ONE_CAMERA)

    def files(self) -> list[FoundFile]:
        """Return the files that match, whether or not their names make sense."""
        return self.place.files(_glob(self.place.path))

    def nearest(self) -> str:
        """Say how far the pattern can be followed, and what is there instead."""
        folder, *parts = self.place.path.split("/")
        for part in parts:
            names = self.place.names(folder or "/")
            if names is None:
                return f"there is no folder {self.place.shown(folder or '/')}"
            matches = [name for name in names if re.fullmatch(_regex(part), name)]
            if not matches:
                instead = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
                has = f"found {instead}" if names else "it is empty"
                return f"nothing in {self.place.shown(folder or '/')} matches {part}: {has}"
            folder = f"{folder}/{matches[0]}"
        return f"{self.place.shown(folder)} names no date and time that there is"


def _regex(path: str) -> str:
    parts, seen = [], set()
    for part in PART.finditer(path):
        field = part["field"]
        if field is None:
            parts.append("[^/]*" if part["any"] else re.escape(part[0]))
        elif field in seen:
            parts.append(f"(?P={field})")
        else:
            parts.append(f"(?P<{field}>{FIELDS[field]})")
            seen.add(field)
    return "".join(parts)


def _glob(path: str) -> str:
    parts = (glob.escape(part["text"] or "") or "*" for part in PART.finditer(path))
    return re.sub(r"\*+", "*", "".join(parts))


def find_recordings(
    patterns: Sequence[Pattern],
    *,
    timezone: str | None = None,
    cameras: Sequence[str] = (),
    notes: list[str] | None = None,
) -> list[Recording]:
    """Return the recordings that patterns name; of all cameras if none is named.

    `timezone` is that which recordings are named in, such as "Europe/Berlin"; that of this machine
    if None. To `notes` is added which files are passed over, a line for each camera.
    InvalidInputError if a pattern matches nothing, two files are of the same time of one
    camera, or a camera that is wanted is not there.
    """
    zone, recordings = zone_of(timezone), list[Recording]()
    passed_over: dict[str, list[str]] = {}
    for pattern in patterns:
        files = pattern.files()
        matches = [
            Recording(camera, clock.strftime(CLOCK), start, file)
            for file in files
            for camera, clock in _named(pattern, file)
            for start in _seconds(clock, zone)
        ]
        if not matches:
            raise _unusable(f"{redacted(pattern.text)} matches no file: {pattern.nearest()}")
        recordings += matches
        taken = {recording.file.path for recording in matches}
        for path in (file.path for file in files if file.path not in taken):
            if (camera := pattern.camera_of(path)) and not camera.startswith("."):
                passed_over.setdefault(camera, []).append(pattern.place.shown(path))
    if notes is not None:
        notes += (
            _passed_over(camera, names)
            for camera, names in sorted(passed_over.items())
            if not cameras or camera in cameras
        )
    unknown = sorted(set(cameras) - {recording.camera for recording in recordings})
    if unknown:
        names = ", ".join(sorted({recording.camera for recording in recordings}))
        raise InvalidInputError(
            f"no recording of {', '.join(unknown)}: there are {names}", parameter="cameras"
        )
    recordings = [
        recording for recording in recordings if not cameras or recording.camera in cameras
    ]
    recordings = list(_put_back(recordings, zone))
    recordings.sort(key=lambda recording: (recording.camera, recording.start, recording.name))
    _check_single(recordings)
    return recordings


def _passed_over(camera: str, names: Sequence[str]) -> str:
    """Return a line about files whose names match, with a date or hour that there is not."""
    shown = ", ".join(sorted(names)[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return (
        f"{camera}: passed over {counted(len(names), 'file')} with no date and time that there is "
        f"in the name: {shown}"
    )


def _put_back(recordings: Sequence[Recording], zone: tzinfo | None) -> Iterator[Recording]:
    """Yield recordings, of the hour that clocks show twice those of its second time an hour later.

    They are known by their times of change: where clocks of later ones are earlier, the hour has
    begun again.
    """
    latest: dict[tuple[str, str], datetime] = {}
    again = set[tuple[str, str]]()
    for recording in sorted(
        recordings, key=lambda recording: (recording.camera, recording.file.changed or 0.0)
    ):
        clock = datetime.strptime(recording.clock, CLOCK)
        later = [*_seconds(clock.replace(fold=1), zone)]
        changed = recording.file.changed
        dated = changed is not None and abs(changed - recording.start) < DAY  # else copied since
        if not (dated and later and later[0] > recording.start):
            yield recording
            continue
        night = recording.camera, recording.clock[:10]
        if clock < latest.get(night, clock):
            again.add(night)
        latest[night] = clock
        yield recording._replace(start=later[0]) if night in again else recording


def _named(pattern: Pattern, file: FoundFile) -> list[tuple[str, datetime]]:
    """Return camera and start, if the name of a file makes sense and is not hidden."""
    named = pattern.match(file.path)
    return [named] if named is not None and not named[0].startswith(".") else []


def _check_single(recordings: Sequence[Recording]) -> None:
    """Raise if two recordings of a camera begin at the same time."""
    for one, other in pairwise(recordings):
        if (one.camera, one.clock) == (other.camera, other.clock):
            raise _unusable(
                f"two files for {one.clock} of camera {one.camera}, {one.name} and {other.name}: "
                "remove one, or let the pattern tell them apart by {time}, {minute} or {camera}"
            )


def zone_of(name: str | None) -> tzinfo | None:
    """Return a time zone by its name; None for that of this machine."""
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInputError(
            f"unknown time zone {name}: expected a name such as Europe/Berlin or UTC",
            parameter="timezone",
        ) from error


def _seconds(clock: datetime, zone: tzinfo | None) -> Iterator[float]:
    """Yield a local time in seconds since the epoch, if there is such a time.

    `zone` is this machine's if None.
    """
    try:
        local = clock.astimezone() if zone is None else clock.replace(tzinfo=zone)
        yield local.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):  # in the year 1, or in 9999
        return


def _unusable(message: str) -> InvalidInputError:
    return InvalidInputError(message, parameter="patterns")
