"""Files that are given on the page: their size, their kind, and what is left of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from habitus.errors import VideoError
from habitus.site import probe as probing
from habitus.site.probe import probe
from habitus.web import uploads
from habitus.web.administration import change_preferences
from habitus.web.answers import HttpError, Preferences
from habitus.web.app import create_app
from habitus.web.server import Console
from reference.footage import encode, moving_square
from reference.visitors import Visitor
from reference.web import playlist

PLAYLIST = playlist("/etc/passwd")
NO_VIDEOS = {
    "nothing": b"",
    "text": b"not a video at all\n" * 100,
    "page": b"<!doctype html><script>alert(1)</script>",
    "playlist": PLAYLIST,
    "concat": b"ffconcat version 1.0\nfile /etc/passwd\n",
    "sdp": b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nm=video 5000 RTP/AVP 96\r\n",
    "zip": b"PK\x03\x04" + b"\0" * 500,
    "program": b"\x7fELF" + b"\0" * 500,
}


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("video") / "a.mp4"
    return encode(path, moving_square(75)).read_bytes()


@pytest.fixture
def browser(console: Console) -> Visitor:
    return Visitor(create_app(console))


def kept(console: Console) -> list[Path]:
    return list(console.settings.uploads.glob("*"))


def test_a_video_is_kept_under_a_new_name(browser: Visitor, console: Console, video: bytes) -> None:
    answer = browser.change(
        "POST", "/api/uploads?name=../../evil.mp4", content=video,
        headers={"Content-Type": "text/html"},
    )  # fmt: skip
    assert answer.status_code == 201
    found = answer.json()
    assert (found["width"], found["height"], found["n_bytes"]) == (160, 128, len(video))
    assert [path.name for path in kept(console)] == [found["id"]]
    assert uploads.path_of(console.settings, found["id"]).read_bytes() == video


@pytest.mark.parametrize("kind", ["playback", "recording"])
def test_the_page_makes_an_upload_a_camera(browser: Visitor, video: bytes, kind: str) -> None:
    upload = browser.change("POST", "/api/uploads", content=video).json()["id"]
    form = {"name": "Dropped", "upload": upload, "kind": kind}
    answer = browser.change("POST", "/cameras", data=form)
    assert answer.status_code == 303
    camera = browser.get("/api/cameras/dropped").json()
    assert (camera["kind"], camera["shown_address"]) == (kind, "a file that was uploaded")
    changed = browser.change("POST", "/cameras/dropped", data={"name": "Still there"})
    assert changed.status_code == 303


@pytest.mark.parametrize("name", NO_VIDEOS)
def test_what_is_no_video_is_refused_and_not_kept(
    browser: Visitor, console: Console, name: str
) -> None:
    answer = browser.change("POST", "/api/uploads", content=NO_VIDEOS[name])
    assert answer.status_code == 422
    assert str(console.settings.data) not in answer.text
    assert kept(console) == []


def test_a_picture_is_no_video(browser: Visitor, console: Console, tmp_path: Path) -> None:
    short = encode(tmp_path / "short.mp4", moving_square(5)).read_bytes()
    answer = browser.change("POST", "/api/uploads", content=short)
    assert answer.status_code == 422
    assert "at least 2 s" in answer.json()["detail"]
    assert kept(console) == []


def test_a_video_may_be_cut_but_not_empty(browser: Visitor, video: bytes) -> None:
    answer = browser.change("POST", "/api/uploads", content=video[:200])
    assert answer.status_code == 422


def test_size_is_limited_as_said_and_as_sent(
    browser: Visitor, console: Console, video: bytes
) -> None:
    change_preferences(console, "test", Preferences(upload_bytes=len(video) - 1))
    assert browser.change("POST", "/api/uploads", content=video).status_code == 413
    pieces = (video[k : k + 1000] for k in range(0, len(video), 1000))
    assert browser.change("POST", "/api/uploads", content=pieces).status_code == 413
    assert kept(console) == []
    change_preferences(console, "test", Preferences(upload_bytes=len(video)))
    assert browser.change("POST", "/api/uploads", content=video).status_code == 201


def test_the_quota_holds_for_uploads(browser: Visitor, console: Console, video: bytes) -> None:
    change_preferences(console, "test", Preferences(quota_bytes=100_000_000))
    console.settings.uploads.mkdir()
    with (console.settings.uploads / "large").open("wb") as file:
        file.truncate(100_000_000)
    assert browser.change("POST", "/api/uploads", content=video).status_code == 413


def test_an_upload_that_is_cut_off_leaves_nothing(console: Console, video: bytes) -> None:
    async def cut_off() -> AsyncIterator[bytes]:
        yield video[:5000]
        raise ConnectionError("gone")

    with pytest.raises(Exception, match="gone"):
        asyncio.run(uploads.receive(console, cut_off(), None))
    assert kept(console) == []


def test_uploads_at_once_do_not_fill_the_disk(
    console: Console, video: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def filled_meanwhile() -> AsyncIterator[bytes]:
        yield video
        monkeypatch.setattr(uploads, "SPARE", 10**18)

    with pytest.raises(HttpError, match="no room"):
        asyncio.run(uploads.receive(console, filled_meanwhile(), None))
    assert kept(console) == []


@pytest.mark.parametrize("name", ["", "..", "../secret.key", "0" * 31, "G" * 32, "0" * 32])
def test_names_of_uploads_are_no_paths(console: Console, name: str) -> None:
    console.settings.uploads.mkdir()
    with pytest.raises(HttpError, match="no such upload"):
        uploads.path_of(console.settings, name)


def test_looking_at_a_file_takes_no_longer_than_it_may(tmp_path: Path, video: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(video)
    assert probe(path)[:2] == (160, 128)
    with pytest.raises(VideoError, match=r"within 1e-06 s"):
        probe(path, within=1e-6)


def test_a_reader_that_dies_is_one_line(
    tmp_path: Path, video: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(video)
    monkeypatch.setattr(probing, "__name__", "os")  # which has no such function
    with pytest.raises(VideoError, match="cannot be read"):
        probe(path)
