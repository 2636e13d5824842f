"""Cameras that are named in cameras.toml."""

from pathlib import Path

import pytest

from habitus.errors import FileError
from habitus.web.camera_file import apply_camera_file
from habitus.web.database import AuditEntry, CameraRow
from habitus.web.server import Console

GATE = """
[[camera]]
name = "North gate"
address = "rtsp://me:hunter2@192.0.2.1/main"
alerts_per_day = 3
options = { fps = 5 }

[[camera.zones]]
name = "Bay"
polygon = [[0, 0], [120, 0], [120, 40]]
hours = [{ start = "22:00", end = "06:00" }]
"""
YARD = """
[[camera]]
id = "yard"
name = "Yard"
address = "videos/yard.mp4"
"""


def write(console: Console, text: str) -> Path:
    path = console.settings.data / "cameras.toml"
    path.write_text(text, encoding="utf-8")
    return path


def cameras(console: Console) -> dict[str, CameraRow]:
    with console.database.session() as session:
        return {camera.id: camera for camera in session.query(CameraRow)}


def n_noted(console: Console) -> int:
    with console.database.session() as session:
        return session.query(AuditEntry).count()


def test_without_a_file_nothing_is_done(console: Console) -> None:
    assert apply_camera_file(console) == 0


def test_cameras_are_added_and_changed(console: Console) -> None:
    videos = console.settings.data / "videos"
    videos.mkdir()
    (videos / "yard.mp4").write_bytes(b"video")
    write(console, GATE + YARD)
    assert apply_camera_file(console) == 2
    found = cameras(console)
    gate, yard = found["north-gate"], found["yard"]
    assert (gate.alerts_per_day, gate.kind, gate.shown_address) == (
        3,
        "stream",
        "rtsp://192.0.2.1/main",
    )
    assert gate.options == {"local": True, "fps": 5}
    assert [zone["name"] for zone in gate.zones] == ["Bay"]
    assert yard.kind == "playback"
    assert console.vault.open(yard.secret_address) == str((videos / "yard.mp4").resolve())

    noted = n_noted(console)
    assert apply_camera_file(console) == 2
    assert n_noted(console) == noted, "nothing was changed, so that nothing is written down"

    write(console, GATE.replace("alerts_per_day = 3", "alerts_per_day = 9"))
    apply_camera_file(console)
    found = cameras(console)
    assert found["north-gate"].alerts_per_day == 9
    assert "yard" in found, "a camera that is not in the file any more stays"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[camera]\n", "line 1"),
        ('[[camera]]\nname = "a"\naddress = \n', "line 3"),
        ('\n\n[[camera]]\nname = "a"\n', "line 3: address is missing"),
        (f"{GATE}\n[[camera]]\nadress = 1\n", "line 13: there is no adress, only name, address"),
        (GATE.replace("= 3", '= "3"'), "line 2: alerts_per_day: .*valid number"),
        (GATE.replace("= 3", "= true"), "line 2: alerts_per_day: .*not be true"),
        (GATE.replace("= 3", "= 0"), "line 2: alerts_per_day: .*greater than or equal to 0.01"),
        (GATE.replace("fps", "fpz"), "line 2: there is no options.fpz"),
        (GATE.replace("[[0, 0]", "[[0, 0, 0]"), "line 2: zones.0.polygon.0: .*at most 2 items"),
        (GATE.replace("[[0, 0]", '["a"'), "line 2: zones.0.polygon.0: .*valid array"),
        (GATE.replace("22:00", "22"), "line 2: zones.0.hours.0.start: .*match"),
        (GATE.replace("hours", "times"), "line 2: there is no zones.0.times"),
        (GATE.replace("[120, 40]", "[60, 0]"), "line 2: zone 'Bay' must be a polygon with an area"),
        (
            GATE.replace("camera.zones", "camera.mask"),
            "line 2: there is no mask, only .*zones",
        ),
        (GATE + GATE, "line 13: the camera of line 2 has the same id"),
        (YARD, "line 2: there is no file"),
        (YARD.replace('"yard"', '"../yard"'), "line 2: an id has"),
        ("[camera]\nname = 1\n", r"expected tables named \[\[camera\]\]"),
        ("camera = [1]\n", "line 1: expected a table"),
        ("[[cameras]]\nname = 1\n", "found cameras"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(console: Console, text: str, said: str) -> None:
    path = write(console, text)
    with pytest.raises(FileError, match=said) as refused:
        apply_camera_file(console)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_text(console: Console) -> None:
    (console.settings.data / "cameras.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="UTF-8"):
        apply_camera_file(console)


def test_a_camera_of_another_kind_is_not_changed(console: Console) -> None:
    write(console, GATE)
    apply_camera_file(console)
    write(console, GATE.replace("options", 'kind = "recording"\noptions'))
    with pytest.raises(FileError, match="north-gate is a stream"):
        apply_camera_file(console)
