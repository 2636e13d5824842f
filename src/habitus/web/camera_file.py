"""Cameras that are named in a file of the data folder, read when the server starts.

    [[camera]]
    name = "North gate"
    address = "rtsp://viewer:secret@10.0.4.11/main"
    alerts_per_day = 3
    zones = [{name = "Tree", kind = "ignore", polygon = [[0, 0], [120, 0], [120, 40], [0, 40]]}]

A camera is added, or changed if there is one of its id: `id`, or else the name in lower-case
letters. A camera that is not in the file any more stays. Whoever writes the file has the data
folder, and is trusted: addresses may be local, and files are named by their path, from the data
folder on.
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from habitus.errors import FileError, HabitusError, InvalidInputError
from habitus.web import administration
from habitus.web.answers import CameraChanges, Name, NewCamera, checked
from habitus.web.database import CameraRow
from habitus.web.server import Console
from habitus.web.server_settings import ServerSettings

NAME = "cameras.toml"
ACTOR = NAME
"""Who acts, as the audit log has it."""


class FileCamera(CameraChanges):
    """A camera of the file."""

    id: str | None = None
    name: Name
    address: Annotated[str, Field(max_length=2000)]
    kind: Literal["stream", "playback", "recording"] | None = None


def apply_camera_file(console: Console) -> int:
    """Add and change the cameras that are named in a console's file, and return their number.

    A `FileError` says in one line what is wrong, and in which line of the file.
    """
    path = console.settings.data / NAME
    if not path.exists():
        return 0
    cameras = read_camera_file(path)
    for values, line in cameras:
        try:
            _apply(console, dict(values))
        except HabitusError as error:
            raise FileError(f"{path}, line {line}: {error}") from error
    return len(cameras)


def check_camera_file(settings: ServerSettings) -> None:
    """Raise `FileError` if there is a file that cannot be understood; nothing is changed."""
    path = settings.data / NAME
    if path.exists():
        read_camera_file(path)


def read_camera_file(path: Path) -> list[tuple[dict[str, Any], int]]:
    """Return the cameras of a file, each with the line that it begins at."""
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # says the line
        raise FileError(f"{path}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text in UTF-8"
        raise FileError(f"{path}: {reason}") from error
    unknown = tables.keys() - {"camera"}
    cameras = tables.get("camera", [])
    if unknown or not isinstance(cameras, list):
        shown = ", ".join(sorted(unknown)) or "[camera]"
        raise FileError(f"{path}: expected tables named [[camera]], found {shown}")
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.match(r"\s*\[\[\s*camera\s*\]\]", line)
    ]
    # Written in another way (an array of tables in one line), all are of the first line.
    lines = lines if len(lines) == len(cameras) else [1] * len(cameras)
    named: dict[str, int] = {}
    for camera, line in zip(cameras, lines, strict=True):
        _check(camera, f"{path}, line {line}")
        other = named.setdefault(_id(camera), line)
        if other != line:
            raise FileError(f"{path}, line {line}: the camera of line {other} has the same id")
    return list(zip(cameras, lines, strict=True))


def _check(camera: Any, where: str) -> None:
    if not isinstance(camera, dict):
        raise FileError(f"{where}: expected a table")
    try:
        checked(FileCamera, camera, strict=True)
    except InvalidInputError as error:
        raise FileError(f"{where}: {error}") from None
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", _id(camera)):
        raise FileError(f"{where}: an id has up to 40 lower-case letters, digits and hyphens")


def _id(camera: dict[str, Any]) -> str:
    camera_id: str = camera.get("id") or administration.slug(camera["name"])
    return camera_id


def _apply(console: Console, values: dict[str, Any]) -> None:
    camera_id = _id(values)
    values.pop("id", None)
    values["address"], kind = _source(console.settings, values)
    values["options"] = {"local": True, **values.get("options", {})}
    with console.database.session() as session:
        camera = session.get(CameraRow, camera_id)
    if camera is None:
        new = checked(NewCamera, {**values, "kind": kind})
        administration.add_camera(console, ACTOR, new, camera_id=camera_id, trusted=True)
        return
    if camera.kind != kind:
        raise FileError(
            f"the camera {camera_id} is a {camera.kind}: remove it before it is a {kind}"
        )
    if console.vault.open(camera.secret_address) == values["address"]:
        del values["address"]
    changes = checked(CameraChanges, values)
    administration.change_camera(console, ACTOR, camera_id, changes, trusted=True)


def _source(settings: ServerSettings, values: dict[str, Any]) -> tuple[str, str]:
    """Return address and kind of a camera: a file is a playback, if nothing else is said."""
    address: str = values["address"]
    kind: str | None = values.pop("kind", None)
    if "://" in address or re.match(r"/dev/(?!shm/)", address):
        return address, kind or "stream"
    path = (settings.data / address).resolve()
    if not path.exists():
        raise FileError(f"there is no file {path}")
    return str(path), kind or "playback"
