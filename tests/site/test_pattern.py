"""Patterns: which camera and when, from the address of a file; and what is said of bad ones."""

import os
from datetime import UTC, datetime

import pytest

from habitus.errors import InvalidInputError
from habitus.site.pattern import FIELDS, Pattern, find_recordings

NOON = datetime(2026, 11, 16, 13, 0)


@pytest.mark.parametrize(
    ("pattern", "path", "start"),
    [
        ("/v/{camera}/{date}/{hour}.mp4", "/v/north/2026-11-16/13.mp4", NOON),
        ("/v/{camera}/{date}/{hour}.mp4", "/v/north/20261116/13-00.mp4", NOON),
        ("/v/{camera}-{date}T{time}.mkv", "/v/north-2026-11-16T13-00-00.mkv", NOON),
        ("/v/{camera}-{date}T{time}.mkv", "/v/north-20261116T130000.mkv", NOON),
        ("/v/{camera}_{date}_{time}.mkv", "/v/north_20261116_13:00:00.mkv", NOON),
        (
            "/v/{year}/{month}/{day}/{camera}/{hour}/{minute}.ts",
            "/v/2026/11/16/north/13/00.ts",
            NOON,
        ),
        ("/v/{camera}/{date}/{hour}{minute}{second}.ts", "/v/north/20261116/130000.ts", NOON),
        ("/v/{camera}/{camera}.{date}.{hour}.*.ts", "/v/north/north.20261116.13.x1.ts", NOON),
        ("/v/{camera}/{date}.mp4", "/v/north/20261116.mp4", datetime(2026, 11, 16)),
    ],
)
def test_camera_and_start_are_read_from_a_path(pattern, path, start):
    assert Pattern(pattern).match(path) == ("north", start)


@pytest.mark.parametrize(
    "path",
    [
        "/v/north/2026-11-16/13.mp4.part",
        "/v/north/2026-11-16/extra/13.mp4",
        "/v/north/2026-13-16/13.mp4",
        "/v/north/2026-11-16/25.mp4",
        "/v/north/16-11-2026/13.mp4",
    ],
)
def test_other_paths_do_not_match(path):
    assert Pattern("/v/{camera}/{date}/{hour}.mp4").match(path) is None


def test_a_field_that_comes_again_is_the_same_text():
    pattern = Pattern("/v/{camera}/{camera}-{date}.mp4")
    assert pattern.match("/v/north/north-20261116.mp4")
    assert pattern.match("/v/north/south-20261116.mp4") is None


def test_a_pattern_without_a_camera_is_one_camera():
    assert Pattern("/v/{date}.mp4").match("/v/20261116.mp4")[0] == "camera"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{camera}/{date}/{hours}.mp4", "unknown field {hours}: the fields are {camera}, {date}"),
        ("{camera}/{date}/{hour.mp4", "a brace of its own"),
        ("{camera}/{hour}.mp4", "must name the day of a recording, by {date} or by {year}"),
        ("{camera}/{year}/{month}/{hour}.mp4", "must name the day"),
        ("{camera}/{date}/{minute}.mp4", "{minute} needs {hour}"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_in_one_line(text, message):
    with pytest.raises(InvalidInputError) as raised:
        Pattern(text)
    assert message in str(raised.value)
    assert raised.value.parameter == "patterns"
    assert "\n" not in str(raised.value)


def test_all_fields_are_documented():
    assert all(f"{{{field}}}" in (Pattern.__doc__ or "") for field in FIELDS)


def touch(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"video")


def found(folder, *patterns, **options):
    return find_recordings([Pattern(f"{folder}/{text}") for text in patterns], **options)


def test_recordings_are_found_by_camera_and_time(tmp_path):
    touch(tmp_path, "b/20261116/14.mp4", "b/20261116/13.mp4", "a/20261117/00.mp4", "a/notes.txt")
    recordings = found(tmp_path, "{camera}/{date}/{hour}.mp4", timezone="UTC")
    assert [(each.camera, each.clock) for each in recordings] == [
        ("a", "2026-11-17T00-00-00"),
        ("b", "2026-11-16T13-00-00"),
        ("b", "2026-11-16T14-00-00"),
    ]
    assert recordings[1].start == 1794834000.0
    assert recordings[1].file.size == 5


def test_the_time_zone_decides_when_a_recording_begins(tmp_path):
    touch(tmp_path, "a/20260701/12.mp4", "a/20261201/12.mp4")
    pattern = "{camera}/{date}/{hour}.mp4"
    utc = [each.start for each in found(tmp_path, pattern, timezone="UTC")]
    berlin = [each.start for each in found(tmp_path, pattern, timezone="Europe/Berlin")]
    assert [a - b for a, b in zip(utc, berlin, strict=True)] == [7200.0, 3600.0]
    with pytest.raises(InvalidInputError, match="unknown time zone Mars/Base"):
        found(tmp_path, pattern, timezone="Mars/Base")


def test_characters_of_globs_are_plain_text_in_a_pattern(tmp_path):
    touch(tmp_path, "site[1]/a/20261116.mp4", "site1/a/20261117.mp4")
    (recording,) = found(tmp_path, "site[1]/{camera}/{date}.mp4")
    assert recording.clock.startswith("2026-11-16")


def test_hidden_cameras_are_left_out(tmp_path):
    touch(tmp_path, ".trash/20261116.mp4", "a/20261116.mp4")
    assert [each.camera for each in found(tmp_path, "{camera}/{date}.mp4")] == ["a"]


def test_files_that_name_no_time_that_there_is_are_noted(tmp_path):
    misnamed = ["a/20261116/99.mp4", "a/20261345/13.mp4", "b/20261116/24.mp4"]
    touch(tmp_path, "a/20261116/13.mp4", "b/20261116/13.mp4", ".c/20261116/99.mp4", *misnamed)
    notes = []
    assert len(found(tmp_path, "{camera}/{date}/{hour}.mp4", notes=notes)) == 2
    assert notes == [
        "a: passed over 2 files with no date and time that there is in the name: "
        f"{tmp_path}/a/20261116/99.mp4, {tmp_path}/a/20261345/13.mp4",
        "b: passed over 1 file with no date and time that there is in the name: "
        f"{tmp_path}/b/20261116/24.mp4",
    ]
    notes.clear()
    found(tmp_path, "{camera}/{date}/{hour}.mp4", notes=notes, cameras=["b"])
    assert [note[0] for note in notes] == ["b"]


def test_some_cameras_can_be_chosen(tmp_path):
    touch(tmp_path, "a/20261116.mp4", "b/20261116.mp4")
    assert [each.camera for each in found(tmp_path, "{camera}/{date}.mp4", cameras=["b"])] == ["b"]
    with pytest.raises(InvalidInputError, match="no recording of c: there are a, b"):
        found(tmp_path, "{camera}/{date}.mp4", cameras=["c"])


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("other/{camera}/{date}/{hour}.mp4", "nothing in {folder} matches other: found cameras"),
        (
            "cameras/{camera}/{date}/{hour}.mp4",
            "nothing in {folder}/cameras/north matches {{date}}: found 16-11-2026",
        ),
        (
            "cameras/{camera}/*/{date}-{hour}.mp4",
            "nothing in {folder}/cameras/north/16-11-2026 matches {{date}}-{{hour}}.mp4: "
            "found 11.mp4, 12.mp4, 13.mp4, ...",
        ),
    ],
)
def test_a_pattern_that_matches_nothing_says_what_is_there_instead(tmp_path, pattern, nearest):
    touch(tmp_path, *(f"cameras/north/16-11-2026/{hour}.mp4" for hour in range(11, 15)))
    with pytest.raises(InvalidInputError) as raised:
        found(tmp_path, pattern)
    expected = f"{tmp_path}/{pattern} matches no file: {nearest.format(folder=tmp_path)}"
    assert str(raised.value) == expected


def test_two_files_for_one_time_of_a_camera_are_refused(tmp_path):
    touch(tmp_path, "north/20261116/13.mp4", "north/2026-11-16/13-00.mp4")
    with pytest.raises(InvalidInputError) as raised:
        found(tmp_path, "{camera}/{date}/{hour}.mp4")
    assert str(raised.value).startswith("two files for 2026-11-16T13-00-00 of camera north, ")
    assert "20261116/13.mp4" in str(raised.value)


def put_at(folder, clock, changed):
    path = folder / f"north-{clock}.mp4"
    path.write_bytes(b"")
    os.utime(path, (changed, changed))


def starts(folder, zone="Europe/Berlin"):
    pattern = Pattern(f"{folder}/{{camera}}-{{date}}T{{time}}.mp4")
    return {each.clock[-8:]: each.start for each in find_recordings([pattern], timezone=zone)}


def test_the_hour_that_clocks_show_twice_is_told_apart_by_times_of_change(tmp_path):
    """Summer time ends on 2026-10-25 at 01:00 UTC."""
    end = datetime(2026, 10, 25, 1, 0, tzinfo=UTC).timestamp()
    wanted = {
        "01-00-00": -7200,
        "02-00-01": -3599,
        "02-30-00": -1800,
        "02-00-00": 0,
        "02-29-59": 1799,
        "03-00-00": 3600,
    }
    for clock, at in wanted.items():
        put_at(tmp_path, f"2026-10-25T{clock}", end + at + 1800)
    assert {clock: start - end for clock, start in starts(tmp_path).items()} == wanted


def test_where_times_of_change_tell_nothing_it_is_the_first_time(tmp_path):
    end = datetime(2026, 10, 25, 1, 0, tzinfo=UTC).timestamp()
    for number, clock in enumerate(("02-30-00", "02-00-00")):
        put_at(tmp_path, f"2026-10-25T{clock}", end + 90 * 86_400 + number)
    assert [start - end for start in starts(tmp_path).values()] == [-3600, -1800]


def test_times_that_there_are_not_match_nothing(tmp_path):
    put_at(tmp_path, "0001-01-01T00-00-00", 0)
    put_at(tmp_path, "2026-11-16T13-00-00", 0)
    assert list(starts(tmp_path)) == ["13-00-00"]
