"""What is opened is what was asked for: no other file, no other host."""

import re
from pathlib import Path

import cv2
import pytest

import habitus
from habitus.errors import VideoError
from habitus.ingest.extraction import extract_corpus
from habitus.video import Reader, Source, own_host
from habitus.video.source import IMAGES
from reference.footage import encode, moving_square, texture
from reference.streams import free_port
from reference.web import HERE, THERE, playlist, rtsp_redirection, site, variants

N = 50
X264 = {"preset": "ultrafast", "crf": "15", "g": "10"}


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("opening") / "v.ts", moving_square(N), options=X264)


@pytest.fixture
def here(video):
    with site(HERE) as server:
        server.pages["/v.ts"] = video.read_bytes()
        yield server


@pytest.fixture
def there(video):
    with site(THERE) as server:
        server.pages["/v.ts"] = video.read_bytes()
        yield server


def n_frames(address, **options):
    with Reader(Source(str(address), timeout=60.0, **options)) as reader:
        return sum(1 for _ in reader)


def refused(address, **options):
    with pytest.raises(VideoError) as raised:
        n_frames(address, **options)
    (line,) = str(raised.value).splitlines()
    return line


def test_a_file_of_ours_is_no_video_and_says_what_it_is(tmp_path):
    file = tmp_path / "normal.corpus"
    habitus.Corpus([[3, 0], [0, 2]]).save(file)
    assert refused(file).endswith("can be opened: it is a habitus corpus file")
    file.write_bytes(file.read_bytes()[:-1])
    assert refused(file).endswith("it is a habitus corpus file, and not a complete one")


LISTS = {
    "a playlist": ("list.m3u8", lambda video: playlist(video)),
    "a playlist of relative names": ("list.m3u8", lambda video: playlist(video.name)),
    "a playlist named as a video": ("list.mp4", lambda video: playlist(video)),
    "a list to join": ("list.ffconcat", lambda video: b"ffconcat version 1.0\nfile v.ts\n"),
    "a list to join, named as a video": (
        "list.mp4",
        lambda video: b"ffconcat version 1.0\nfile v.ts\n",
    ),
    "a session": (
        "list.sdp",
        lambda _: (
            b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
            b"m=video 5004 RTP/AVP 33\n"
        ),
    ),
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_file_is_opened_alone(video, kind):
    name, contents = LISTS[kind]
    path = video.parent / name
    path.write_bytes(contents(video))
    assert n_frames(video) == N
    line = refused(path)
    assert str(path) in line
    assert "it names other files or addresses, and a file is opened alone" in line


@pytest.mark.parametrize("address", ["concat:{0}|{0}", "subfile,,start,0,end,0,,:{0}", "async:{0}"])
def test_a_protocol_is_no_file(video, address):
    assert "no such file" in refused(address.format(video))


@pytest.mark.parametrize("address", ["gopher://host/v.ts", "data://x", "concat://a|b"])
def test_addresses_of_other_kinds_are_refused(address):
    assert "addresses of this kind are not opened, only file, pipe" in refused(address)


def test_an_image_is_no_pattern(tmp_path):
    for name in ("a%d.png", "a0.png", "a1.png", "a2.png"):
        assert cv2.imwrite(str(tmp_path / name), texture(64, 64, 0))
    assert n_frames(tmp_path / "a%d.png") == 1
    assert n_frames(tmp_path, fps=10) == 4
    (tmp_path / "a%d.png").write_bytes(b"no image")
    assert "a%d.png" in refused(tmp_path / "a%d.png")


def test_a_stream_of_the_web(here):
    assert n_frames(here.address("/v.ts")) == N


def test_a_redirection_within_a_host_is_followed(here):
    here.pages |= {"/old": "/older", "/older": here.address("/v.ts")}
    assert n_frames(here.address("/old")) == N


def test_a_redirection_to_another_host_is_refused(here, there):
    here.pages |= {"/old": "/away", "/away": there.address("/v.ts")}
    line = refused(here.address("/old"))
    assert line.startswith(f"{here.address('/old')}: it leads to {there.address('/v.ts')}")
    assert "other_hosts" in line
    assert there.asked == []
    assert n_frames(here.address("/old"), other_hosts=True) == N


def test_one_host_has_one_name(here):
    """Names that stand for the same address today need not do so tomorrow."""
    here.pages["/away"] = here.address("/v.ts").replace(HERE, "localhost")
    assert "it leads to http://localhost" in refused(here.address("/away"))
    assert set(here.asked) == {"/away"}


@pytest.mark.parametrize("part", ["v.ts", "/v.ts", "{here}", "moved.ts"])
def test_a_playlist_within_a_host(here, part):
    here.pages["/moved.ts"] = "/v.ts"
    part = part.format(here=here.address("/v.ts"))
    here.pages |= {"/live.m3u8": playlist(part), "/all.m3u8": variants("live.m3u8")}
    for path in ("/live.m3u8", "/all.m3u8"):
        assert n_frames(here.address(path)) == N


@pytest.mark.parametrize("way", ["named", "moved", "listed"])
def test_a_playlist_that_leads_to_another_host_is_refused(here, there, way):
    away = there.address("/v.ts")
    there.pages["/live.m3u8"] = playlist("v.ts")
    here.pages |= {
        "/named.m3u8": playlist("v.ts", away),
        "/moved.m3u8": playlist("v.ts", "away.ts"),
        "/away.ts": away,
        "/listed.m3u8": variants(there.address("/live.m3u8")),
    }
    line = refused(here.address(f"/{way}.m3u8"))
    assert f"it leads to {there.address('/')}" in line
    assert there.asked == []
    assert n_frames(here.address(f"/{way}.m3u8"), other_hosts=True) >= N


def test_a_playlist_of_the_web_reads_no_file(here, video):
    here.pages["/live.m3u8"] = playlist(video.as_uri())
    assert f"it leads to {video.as_uri()}" in refused(here.address("/live.m3u8"))
    with pytest.raises(VideoError):
        n_frames(here.address("/live.m3u8"), other_hosts=True)


def test_a_part_that_is_missing_is_left_out(here):
    here.pages["/live.m3u8"] = playlist("absent.ts", "v.ts")
    assert n_frames(here.address("/live.m3u8")) == N


def test_users_are_told_to_their_own_host(here):
    here.pages |= {"/live.m3u8": playlist("v.ts"), "/old": "/v.ts"}
    for path in ("/live.m3u8", "/old"):
        address = here.address(path).replace("://", "://me:se%40cret@")
        assert n_frames(address) == N
    assert "Basic bWU6c2VAY3JldA==" in here.users


def test_a_redirection_of_rtsp_is_refused():
    with rtsp_redirection(HERE, "") as there:
        away = f"rtsp://{HERE}:{there.port}/camera"
        with rtsp_redirection(THERE, away) as camera:
            address = f"rtsp://me:secret@{THERE}:{camera.port}/camera"
            line = refused(address)
            assert "a redirection is followed only where other_hosts allows it" in line
            assert "secret" not in line
            assert camera.asked == ["OPTIONS", "DESCRIBE"]
            assert there.asked == []
            refused(address, other_hosts=True)
            assert there.asked == ["OPTIONS", "DESCRIBE"]


@pytest.mark.parametrize("suffix", sorted(IMAGES))
def test_images_of_each_kind_are_read(tmp_path, suffix):
    """Large ones: FFmpeg knows a small JPEG by its contents, a large one by its name."""
    for n in range(3):
        grey = texture(320, 240, n)
        picture = grey if suffix == ".pgm" else cv2.merge([grey] * 3)
        assert cv2.imwrite(str(tmp_path / f"{n}{suffix}"), picture)
    assert n_frames(tmp_path, fps=10) == 3


def test_what_is_not_there_is_told_in_one_line(here):
    assert "404" in refused(here.address("/absent"))
    here.pages["/again"] = here.address("/again")
    assert "infinite loop" in refused(here.address("/again"))
    assert "not an address that can be understood" in refused("http://[::1")


def test_a_refused_connection_is_no_video_that_cannot_be_opened():
    with pytest.raises(VideoError, match="cannot be reached: connection refused") as told:
        Reader(Source(f"rtsp://127.0.0.1:{free_port()}/1")).__enter__()
    assert "not a video" not in str(told.value)


def test_a_whole_extraction_stays_on_its_host(here, there):
    here.pages |= {"/old": there.address("/v.ts"), "/new": "/v.ts"}
    assert len(extract_corpus([Source(here.address("/new"))]).corpus) == 2
    with pytest.raises(VideoError, match="it leads to"):
        extract_corpus([Source(here.address("/old"))])
    here.pages["/advertised.m3u8"] = playlist("v.ts", there.address("/v.ts"))
    with pytest.raises(VideoError, match="it leads to"):  # not read from the start for ever
        extract_corpus([Source(here.address("/advertised.m3u8"))])
    assert there.asked == []


def test_containers_are_opened_in_one_place():
    root = Path(habitus.__file__).parent
    opening = re.compile(r"\bav\.open\(|VideoCapture\(")
    found = {p.name for p in root.rglob("*.py") if opening.search(p.read_text("utf-8"))}
    writing = {"film.py", "packet_ring.py", "recording.py"}
    wanted = {"opening.py", "recent_footage.py", *writing}  # the second: files of our own ring
    assert found == wanted


@pytest.mark.parametrize(
    ("own", "part", "sent"),
    [("https", "https", True), ("https", "http", False), ("http", "http", True)],
)
def test_a_password_that_was_given_for_https_is_not_sent_in_clear(own, part, sent):
    host = own_host.OwnHost(Source(f"{own}://me:secret@camera/list.m3u8"))
    request = host._request(f"{part}://camera/1.ts", {})
    assert request.has_header("Authorization") == sent


def test_a_recording_that_was_cut_short_is_told_from_what_is_no_video(tmp_path):
    path = encode(tmp_path / "v.mp4", moving_square(N), options=X264)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    assert "lacks the index (moov)" in refused(path)
    assert "repair it" in refused(path)
    path.write_bytes(b"no video at all, of any kind")
    assert refused(path).endswith("Invalid data found when processing input")
