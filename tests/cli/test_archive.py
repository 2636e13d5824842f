"""habitus archive: tables, JSON, and one line for each error."""

import inspect
import json

import pytest
from typer.testing import CliRunner

import habitus
from habitus.cli import command_for
from reference.archives import PATTERN, put, recorded


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Recordings of a camera and the archive that the command made of them, and what it said."""
    folder = tmp_path_factory.mktemp("archive")
    master = recorded(tmp_path_factory) / "0.mp4"
    for minute in range(2):
        put(folder / "recordings", "north", minute, master)
    result = run("learn", f"{folder}/recordings/{PATTERN}", "-o", folder / "site", "--restarts", 1)
    return folder, result


def run(*arguments):
    return CliRunner().invoke(
        command_for(["archive"]),
        ["archive", *map(str, arguments), *(["--jobs", "1"] if arguments[0] != "report" else [])],
    )


def test_learning_ends_with_a_table_and_what_was_done(site):
    _, result = site
    assert result.exit_code == 0
    assert "north" in result.stdout
    assert "192x144" in result.stdout
    assert "read 2 recordings" in result.stdout
    assert "learnt 1 camera" in result.stdout


def test_detecting_ranks_moments_and_writes_them(site):
    folder, _ = site
    result = run("detect", folder / "site")
    assert result.exit_code == 0
    assert " 1  " in result.stdout
    assert "budget 5 per day for all cameras" in result.stdout
    told = [
        json.loads(line) for line in run("detect", folder / "site", "--json").stdout.splitlines()
    ]
    assert {each["camera"] for each in told} == {"north"}


def test_the_report_is_a_table_and_a_page(site):
    folder, _ = site
    result = run("report", folder / "site")
    assert result.exit_code == 0
    assert f"wrote {folder}/site/report.html" in result.stdout
    assert "made by habitus" in (folder / "site/report.html").read_text()
    found = json.loads(run("report", folder / "site", "--json").stdout)
    assert [camera["camera"] for camera in found["cameras"]] == ["north"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "{camera}/{hour}.mp4"], "must name the day of a recording"),
        (["learn", "none/{camera}/{date}.mp4"], "matches no file"),
        (["learn", "-o", "nowhere"], "say where the recordings are"),
        (["detect", "nowhere"], "nowhere: expected the folder of an archive, found nothing"),
        (["report", "nowhere"], "nowhere: expected the folder of an archive, found nothing"),
    ],
)
def test_an_error_is_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("habitus: ")
    assert message in line


def test_settings_of_an_archive_change_only_with_its_patterns(site):
    folder, _ = site
    result = run("learn", "-o", folder / "site", "--cell", 16)
    assert result.exit_code == 1
    assert "--cell 16: " in result.stderr
    assert "has its own; to change it, give the patterns too" in result.stderr


def test_a_command_has_the_defaults_of_its_function():
    from habitus.cli import archive

    for name in ("learn", "detect", "report"):
        function = getattr(habitus, f"{name}_archive")
        wanted = inspect.signature(function).parameters
        for option, given in inspect.signature(getattr(archive, name)).parameters.items():
            if option in wanted and given.default not in (None, inspect.Parameter.empty):
                default = getattr(given.default, "value", given.default)
                if option == "half_life":
                    default = habitus.parse_duration(default)
                assert default == wanted[option].default
