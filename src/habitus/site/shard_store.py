"""The folder of an archive: shards of documents, models and what is known of each camera.

    DIR/archive.json                              patterns and settings
    DIR/CAMERA/shards/2026-11-16T13-00-00.corpus  documents of one recording
    DIR/CAMERA/shards/2026-11-16T13-00-00.damaged the same, set aside
    DIR/CAMERA/unread.json                        recordings that cannot be read, and why
    DIR/CAMERA/model.habitus, learnt.json         the model, and what it was learnt from
    DIR/CAMERA/camera.fleet                       what cameras like it can learn from it, as counts
    DIR/CAMERA/judged/2026-11-16T13-00-00.jsonl   what is unusual in one recording
    DIR/archive.fleet                             the same of all cameras
    DIR/events.jsonl, events-thumbnails/          what is unusual in all

Shards themselves say which recording they were made of: there is no list that could disagree with
them. Every file is written whole.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from annotated_types import Interval
from typing_extensions import TypedDict

from habitus.corpus.documents import FORMAT, Corpus, CorpusHeader
from habitus.corpus.vocabulary import Vocabulary
from habitus.errors import FileError, HabitusError, InvalidInputError
from habitus.files import sole_use, write_file, writing
from habitus.schema import ClipSeconds, Count, Text, Time, decoded
from habitus.site.pattern import Recording
from habitus.video.source import redacted

K = TypeVar("K", bound=Any)
FileSize = Annotated[int, Interval(ge=0, le=1 << 62)]
SUFFIX, DAMAGED = ".corpus", ".damaged"
FILES = f"[0-9]*{SUFFIX}"
"""Shards; one that is being written has another name."""
ARCHIVE, CONSOLE = "shards", "documents"
"""Name of the folder of a camera's shards, in each layout."""
MODEL, LEARNT = "model.habitus", "learnt.json"
FLEET = "camera.fleet"
UNREAD = "unread.json"
SETTINGS = "archive.json"
EVENTS, ALL_FLEET = "events.jsonl", "archive.fleet"


class RecordingFile(TypedDict):
    """Which recording something was made of, and how."""

    address: Text
    """Where it was when it was read."""
    size: FileSize
    version: Text
    """What changes whenever the contents do."""
    start: Time
    """In seconds since the epoch."""
    made: Text
    """Digest of the settings of its documents."""


def is_of(file: RecordingFile, recording: Recording, made: str) -> bool:
    """Return whether that is a recording as it is now, with settings of this digest."""
    same = (file["size"], file["version"]) == recording.file.identity
    return same and (file["start"], file["made"]) == (recording.start, made)


class Origin(RecordingFile):
    """Which recording a shard was made of."""

    usable: Count
    """Documents during which the camera was usable."""
    notes: list[Text]


class ShardHeader(CorpusHeader):
    """Header of the corpus file of a shard."""

    recording: Origin


class UnreadRecording(RecordingFile):
    """A recording that cannot be read."""

    tried: Time
    """When it could not be read, in seconds since the epoch."""
    reason: Text


class ArchiveSettings(TypedDict):
    """What the commands of an archive share."""

    patterns: list[Text]
    timezone: Text | None
    documents: dict[str, Any]
    """Settings of documents."""
    fast: bool


class RecordedShard(NamedTuple):
    """Documents of one recording, as the header of their file describes them."""

    camera: str
    path: Path
    origin: Origin
    n_documents: int
    clip: ClipSeconds
    vocabulary: Vocabulary | None
    n_bytes: int

    @property
    def clock(self) -> str:
        """When the recording begins, as its address says."""
        return self.path.name.removesuffix(SUFFIX)

    @property
    def start(self) -> float:
        """The same in seconds since the epoch."""
        return self.origin["start"]

    @property
    def seconds(self) -> float:
        """Length of the recording."""
        return self.n_documents * self.clip

    @property
    def end(self) -> float:
        """When the recording ends, in seconds since the epoch."""
        return self.start + self.seconds

    @property
    def name(self) -> str:
        """Address of the recording, as it may be shown."""
        return redacted(self.origin["address"])

    @property
    def kind(self) -> object:
        """How its documents are made; only those of one kind are learnt from together."""
        return self.vocabulary, self.origin["made"]


def like_latest(shards: Sequence[K]) -> list[K]:
    """Return the shards that are of the same kind as the last one, of whatever era.

    An hour of another frame size takes nothing away from what was learnt before it.
    """
    return [shard for shard in shards if shard.kind == shards[-1].kind]


def described_shards(folder: Path, describe: Callable[[Path], K], notes: list[str]) -> Iterator[K]:
    """Yield the shards of a folder, as their headers describe them; what is damaged is noted."""
    for path in sorted(folder.glob(FILES)):  # an hour before its minutes
        try:
            yield describe(path)
        except (HabitusError, LookupError) as error:
            if path.exists():  # not deleted meanwhile
                notes.append(f"{path.name} is damaged and was left out: {error}")


@dataclass(frozen=True)
class CameraFolder:
    """What an archive or, in its layout, the console holds of one camera."""

    path: Path
    layout: str = ARCHIVE

    @property
    def documents(self) -> Path:
        """Folder of the shards."""
        return self.path / self.layout

    @property
    def camera(self) -> str:
        """Name of the camera."""
        return self.path.name

    @property
    def model(self) -> Path:
        """File of the model."""
        return self.path / MODEL

    @property
    def fleet(self) -> Path:
        """File of what cameras like it can learn from it."""
        return self.path / FLEET

    def shard_path(self, clock: str) -> Path:
        """Return the file of a shard."""
        return self.documents / f"{clock}{SUFFIX}"

    def judged_path(self, clock: str) -> Path:
        """Return the file of what is unusual in a shard."""
        return self.path / "judged" / f"{clock}.jsonl"

    def shards(self) -> list[RecordedShard]:
        """Return the shards in order of time; those whose header is damaged are left out."""
        shards = described_shards(self.documents, self._described, [])
        return sorted(shards, key=lambda shard: shard.start)

    def _described(self, path: Path) -> RecordedShard:
        header, arrays, _ = FORMAT._replace(schema=ShardHeader).read_header(path)
        return RecordedShard(
            self.camera,
            path,
            header["recording"],
            arrays["times"].shape[0],
            (header.get("settings") or {}).get("clip", 1.0),
            header["vocabulary"],
            path.stat().st_size,
        )

    def lost(self, shards: Sequence[RecordedShard]) -> list[str]:
        """Return the clocks of damaged shards: of which there are files, and no shard."""
        files = self.documents.glob("[0-9]*")
        clocks = {path.stem for path in files if path.suffix in (SUFFIX, DAMAGED)}
        return sorted(clocks - {shard.clock for shard in shards})

    def put_shard(self, clock: str, contents: bytes) -> None:
        """Write a shard; what was judged of the one before it is deleted first."""
        path = self.shard_path(clock)
        self.judged_path(clock).unlink(missing_ok=True)
        write_file(path, contents)
        path.with_suffix(DAMAGED).unlink(missing_ok=True)

    def delete_shard(self, clock: str) -> None:
        """Delete a shard, and what was judged of it."""
        self.judged_path(clock).unlink(missing_ok=True)
        self.shard_path(clock).unlink(missing_ok=True)

    def unread(self) -> dict[str, UnreadRecording]:
        """Return the recordings that cannot be read, by their clocks."""
        return read_json(self.path / UNREAD, dict[str, UnreadRecording]) or {}

    def put_unread(self, unread: dict[str, UnreadRecording]) -> None:
        """Keep which recordings cannot be read."""
        path = self.path / UNREAD
        if unread:
            write_json(path, unread)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class ArchiveFolder:
    """The folder of an archive."""

    path: Path

    def cameras(self, wanted: Sequence[str] = ()) -> list[CameraFolder]:
        """Return the cameras that have shards or troubles, in order; of all if none is wanted."""
        folders = [
            CameraFolder(path)
            for path in sorted(self.path.iterdir() if self.path.is_dir() else ())
            if (path / ARCHIVE).is_dir() or (path / UNREAD).is_file()
        ]
        unknown = sorted(set(wanted) - {folder.camera for folder in folders})
        if unknown:
            names = ", ".join(folder.camera for folder in folders) or "none"
            raise InvalidInputError(
                f"{self.path} has no camera {', '.join(unknown)}: it has {names}",
                parameter="cameras",
            )
        return [folder for folder in folders if not wanted or folder.camera in wanted]

    def camera(self, name: str) -> CameraFolder:
        """Return the folder of a camera."""
        return CameraFolder(self.path / name)

    @property
    def events(self) -> Path:
        """File of what is unusual in all recordings."""
        return self.path / EVENTS

    @property
    def fleet(self) -> Path:
        """File of what all cameras have in common."""
        return self.path / ALL_FLEET

    def settings(self) -> ArchiveSettings | None:
        """Return what the commands share; None before the first one."""
        path = self.path / SETTINGS
        settings: ArchiveSettings | None = read_json(path, ArchiveSettings)
        if settings is None and path.exists():
            raise FileError(f"{path}: damaged: learn with the patterns of the recordings again")
        return settings

    def put_settings(self, settings: ArchiveSettings) -> None:
        """Keep what the commands share."""
        if settings != read_json(self.path / SETTINGS, ArchiveSettings):
            write_json(self.path / SETTINGS, settings)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from working on the archive."""
        refusal = InvalidInputError(
            f"another habitus works on {self.path}: wait until it is done", parameter="output"
        )
        with ExitStack() as stack:
            with writing(self.path, "output"):
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(sole_use(self.path / ".lock", refusal))
            yield


def set_aside(path: Path) -> bool:
    """Rename a shard that is damaged, so that its recording is read again; return whether it is.

    One that is whole, or that the disk does not give, stays: a worker that finds it damaged may
    look at another disk.
    """
    try:
        path.read_bytes()
    except OSError:
        return False
    damaged = is_damaged(path)
    if damaged:
        path.rename(path.with_suffix(DAMAGED))
    return damaged


def is_damaged(path: str | Path) -> bool:
    """Return whether the file of a shard cannot be read."""
    try:
        Corpus.load(path)
    except FileError:
        return True
    return False


def unseen_by_worker(path: str) -> str:
    """Say that a worker cannot read a file that is whole."""
    return (
        f"a worker cannot read {path}, which is whole: workers need the folder of the archive at "
        "the same path"
    )


def write_json(path: Path, value: Any) -> None:
    """Write plain values to a file of their own."""
    write_file(path, json.dumps(value, indent=1, sort_keys=True, allow_nan=False).encode())


def read_json(path: Path, kind: Any) -> Any:
    """Return what such a file holds; None where there is none, or it is damaged."""
    try:
        return decoded(path.read_bytes(), kind)
    except (OSError, FileError):
        return None
