"""Addresses: which kinds there are, and what of them may be shown."""

import contextlib
import http.server
import os
import re
import string
import subprocess
import sys
import tempfile
import threading
from functools import partial

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from habitus import Corpus
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.ingest.live import LiveDocument
from habitus.video import Source
from habitus.video.source import redacted, redacted_text
from reference.commands import habitus
from reference.footage import FPS, encode, moving_square
from reference.live import live_documents
from reference.two_lanes import two_lanes

X264 = {"preset": "ultrafast", "crf": "15", "g": "25"}
SECONDS = 4


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://camera:554/1", "rtsp://camera:554/1"),
        ("rtsp://me:secret@camera/1", "rtsp://camera/1"),
        ("rtsp://me@camera/1", "rtsp://camera/1"),
        ("rtsp://me:pa/ss#w?r@d@camera:554/1", "rtsp://camera:554/1"),
        ("rtsp://me:12/34@camera/1", "rtsp://camera/1"),
        ("http://camera/a?user=me&pwd=p@s#s&n=2", "http://camera/a?user=***&pwd=***&n=2"),
        ("http://camera:80/a?password=p@ss", "http://camera:80/a?password=***"),
        ("http://me:x@camera/a?pwd=p@ss&n=1", "http://camera/a?pwd=***&n=1"),
        ("http://camera/?loginpas=x&Token=y", "http://camera/?loginpas=***&Token=***"),
        ("rtsp://camera/user=me_password=x_n=1.sdp", "rtsp://camera/user=***_password=***_n=1.sdp"),
        ("http://camera/large@2x.m3u8?channel=2", "http://camera/large@2x.m3u8?channel=2"),
        ("http://[::1]:80/a", "http://[::1]:80/a"),
        ("folder/a?password=b@c.mp4", "folder/a?password=b@c.mp4"),
    ],
)
def test_secrets_are_not_shown(address, shown):
    assert redacted(address) == Source(address).name == redacted(shown) == shown
    assert redacted_text(f"habitus learn {address} -o b") == f"habitus learn {shown} -o b"


SECRET = st.text("QXZ", min_size=4, max_size=4)
"""Letters that no address below has."""
ANYTHING = st.text(string.punctuation + string.digits + "ab", max_size=6)


@settings(derandomize=True, max_examples=500, deadline=None)
@given(before=ANYTHING, secret=SECRET, after=ANYTHING, port=st.sampled_from(["", ":554"]))
def test_no_password_is_shown_whatever_is_in_it(before, secret, after, port):
    password = f"{before}{secret}{after}"
    assert redacted(f"rtsp://me:{password}@camera{port}/1").endswith(f"camera{port}/1")
    assert secret not in redacted(f"rtsp://me:{password}@camera{port}/1")
    encoded = re.sub("[&;]", "", password)  # these would start another parameter
    assert secret not in redacted(f"http://camera{port}/a?user=me&password={encoded}&channel=1")


@pytest.mark.parametrize(
    "address",
    [
        "rtsp://me:QX/ZZ#1@127.0.0.1:9/a",
        "http://me:QX/ZZ#1@127.0.0.1:9/a",
        "http://127.0.0.1:9/a?password=QXZZ",
    ],
)
def test_errors_show_no_password(tmp_path, address):
    found = habitus("extract", address, "-o", "a.corpus", cwd=tmp_path)
    assert found.returncode == 1
    assert "127.0.0.1:9/a" in found.stderr
    assert "QX" not in found.stderr + found.stdout


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """What is told beside it is the command's own."""


@contextlib.contextmanager
def served(folder):
    """A server of files, as a camera with a password in its address; gives that address."""
    handler = partial(Silent, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://me:its-one@127.0.0.1:{server.server_port}/a.ts?user=me&password=its-two"
        server.shutdown()


def test_nothing_that_is_written_or_told_has_a_password(tmp_path):
    two_lanes(tmp_path / "a.mp4")
    with av.open(str(tmp_path / "a.mp4")) as video, av.open(str(tmp_path / "a.ts"), "w") as copy:
        stream = copy.add_stream_from_template(video.streams.video[0])
        for packet in video.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    small = ("--topics", 2, "--behaviours", 2, "--restarts", 1)
    judged = ("--model", "a.model", "--share", 0.1)
    with served(tmp_path) as address:
        found = [
            habitus("learn", address, "-o", "a.model", *small, cwd=tmp_path),
            habitus("detect", address, *judged, "-o", "a.jsonl", "--json", cwd=tmp_path),
            habitus("report", address, *judged, "-o", "a.html", cwd=tmp_path),
            habitus("tune", address, *small, "--no-hyperparameters", "--no-recall", cwd=tmp_path),
        ]
    told = "".join(each.stdout + each.stderr for each in found)
    page, events = ((tmp_path / name).read_text() for name in ("a.html", "a.jsonl"))
    assert "/a.ts?user=***&amp;password=***" in page
    assert '/a.ts?user=***&password=***"' in events
    assert "habitus learn 'http://127.0.0.1" in told
    for text in (told, page, events):
        assert "its-" not in text


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A transport stream, which can be read from a pipe."""
    path = tmp_path_factory.mktemp("sources") / "a.ts"
    return encode(path, moving_square(SECONDS * FPS), options=X264, format="mpegts")


@pytest.fixture(scope="module")
def expected(stream):
    return extract_corpus([Source(str(stream))]).corpus.counts.toarray()


@pytest.mark.parametrize(
    "name", ["2026-01-01T12:00:00.ts", "http:a.ts", "pipe:0", "file:b%20c.ts", "-a.ts"]
)
def test_names_of_files_may_look_like_anything(tmp_path, monkeypatch, stream, expected, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(stream.read_bytes())
    source = Source(name)
    assert not source.is_live
    assert (extract_corpus([source]).corpus.counts.toarray() == expected).all()


@pytest.fixture
def pipe(tmp_path, stream):
    """A named pipe that somebody writes the stream to, once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_bytes(stream.read_bytes()), daemon=True).start()
    return Source(str(pipe))


def test_a_named_pipe_is_read_once(pipe, expected):
    assert pipe.is_live
    assert pipe.is_pipe
    assert (extract_corpus([pipe]).corpus.counts.toarray() == expected).all()


def test_watching_a_named_pipe_ends_with_it(pipe, expected):
    found = live_documents(pipe, DocumentSettings(), stop=threading.Event())
    arrived = [each.document.counts.sum() for each in found if isinstance(each, LiveDocument)]
    assert sum(arrived) == expected.sum()


SHELL = {
    "standard input": 'cat "$1" | "$0" -m habitus extract /dev/stdin -o b.corpus',
    "a redirection": '"$0" -m habitus extract /dev/stdin -o b.corpus < "$1"',
    "its descriptor": 'cat "$1" | "$0" -m habitus extract /dev/fd/0 -o b.corpus',
    "a substitution": '"$0" -m habitus extract <(cat "$1") -o b.corpus',
    "an open file": '"$0" -m habitus extract /dev/fd/7 -o b.corpus 7< "$1"',
}


@pytest.mark.parametrize("name", SHELL)
def test_what_a_shell_opens_is_read(tmp_path, stream, expected, name):
    command = ["bash", "-c", SHELL[name], sys.executable, str(stream)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert (Corpus.load(tmp_path / "b.corpus").counts.toarray() == expected).all()


def test_a_camera_may_be_absent_and_files_in_memory_are_files():
    assert Source("/dev/video99").is_live
    assert not Source("/dev/fd").is_live
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        assert not Source(file.name).is_live
        assert not Source(f"{file.name}.absent").is_live
