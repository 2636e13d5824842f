"""Recordings elsewhere: an S3 interface, read by workers, with credentials of the environment."""

import os
import resource
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen
from zipfile import ZipFile

import boto3
import pytest
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

import habitus
from habitus.corpus import Corpus
from habitus.errors import InvalidInputError
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_file
from habitus.site.operations import detect_archive, learn_archive
from habitus.site.pattern import Pattern, find_recordings
from habitus.site.places import at_hand, look_at
from habitus.site.shard_reading import ReadingTask, read_recording
from habitus.site.shard_store import CameraFolder
from habitus.video import Source
from reference.archives import DAY, LENGTH, clock, recorded
from reference.clusters import cluster

PATTERN = "s3://footage/{camera}/{date}/{time}.mp4"
OPTIONS = {
    "learning": habitus.LearningSettings(4, 2, n_restarts=1),
    "reading": habitus.ReadingSettings(jobs=1),
    "settled": 0,
}


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    return recorded(tmp_path_factory) / "0.mp4"


@pytest.fixture
def bucket(monkeypatch, master, tmp_path):
    """A server with two recordings of a camera, and the environment that leads to it."""
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TMPDIR": str(tmp_path / "temporary"),
    }.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()  # of the server of another test
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    # Servers of one process have the same buckets.
    urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()  # noqa: S310
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket="footage")
    for minute in range(2):
        put(client, "north", minute, master)
    yield client
    server.stop()


def put(client, camera, minute, source):
    key = f"{camera}/{DAY}/{clock(minute)}.mp4"
    client.put_object(Bucket="footage", Key=key, Body=Path(source).read_bytes())


def left_behind(tmp_path):
    return list((tmp_path / "temporary").glob(".habitus-*"))


def test_recordings_in_a_bucket_are_learnt_and_judged(bucket, master, tmp_path):
    site = tmp_path / "site"
    result = learn_archive(PATTERN, output=site, **OPTIONS)
    assert (result.reading.n_read, result.learning.learnt) == (2, ["north"])
    assert left_behind(tmp_path) == []
    first, _ = CameraFolder(site / "north").shards()
    assert first.origin["address"] == f"s3://footage/north/{DAY}/{clock(0)}.mp4"
    expected = extract_file(Source(str(master))).corpus
    assert (Corpus.load(first.path).counts != expected.counts).nnz == 0
    put(bucket, "north", 1, master)  # the same contents again
    put(bucket, "north", 2, master)
    found = detect_archive(site, jobs=1, settled=0)
    assert found.n_judged == 3
    assert len(CameraFolder(site / "north").shards()) == 3
    assert all((site / moment.thumbnail).is_file() for moment in found.moments)
    assert left_behind(tmp_path) == []
    again = learn_archive(output=site, **OPTIONS)
    assert (again.reading.n_read, again.reading.n_known) == (0, 3)


def test_workers_of_a_cluster_read_a_bucket(bucket, tmp_path):
    plain, there = tmp_path / "plain", tmp_path / "there"
    learn_archive(PATTERN, output=plain, **OPTIONS)
    with cluster(tmp_path, 2) as found:
        result = learn_archive(
            PATTERN,
            output=there,
            **{**OPTIONS, "reading": habitus.ReadingSettings(jobs=1, cluster=found.address)},
        )
    assert (result.reading.n_read, result.learning.learnt) == (2, ["north"])
    contents = [
        {str(path.relative_to(site)): path.read_bytes() for path in site.glob("north/**/*.[ch]*")}
        for site in (plain, there)
    ]
    assert len(contents[0]) == 3  # two shards and a model
    assert contents[0] == contents[1]
    assert left_behind(tmp_path) == []


def recordings():
    return find_recordings([Pattern(PATTERN)], timezone="UTC")


def test_a_file_elsewhere_is_known_by_its_checksum(bucket, master):
    first, second = recordings()
    assert first.file.size == master.stat().st_size
    assert first.file.version == second.file.version
    assert look_at(first.file.address).identity == first.file.identity
    bucket.put_object(Bucket="footage", Key=f"north/{DAY}/{clock(0)}.mp4", Body=b"other")
    assert look_at(first.file.address).identity != first.file.identity
    bucket.delete_object(Bucket="footage", Key=f"north/{DAY}/{clock(0)}.mp4")
    assert look_at(first.file.address) is None


def test_a_copy_is_removed_whatever_happens(bucket, tmp_path):
    (first, _) = recordings()

    def fail():
        with at_hand(first.file.address) as path:
            assert path.is_file()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert left_behind(tmp_path) == []


def test_a_full_disk_of_a_worker_is_no_fault_of_the_recording(bucket, tmp_path):
    (first, _) = recordings()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        read = read_recording(ReadingTask(first, DocumentSettings(), False, ""))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read.later
    assert read.reason.startswith("cannot be read here: ")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("s3://footage/{camera}/{date}.mkv", "nothing in s3://footage/north matches {date}.mkv"),
        ("s3://absent/{camera}/{date}.mp4", "s3://absent/{camera}/{date}.mp4"),
        ("gopher://x/{camera}/{date}.mp4", "gopher"),
    ],
)
def test_what_cannot_be_found_elsewhere_is_one_clear_line(bucket, pattern, message):
    with pytest.raises(InvalidInputError) as raised:
        find_recordings([Pattern(pattern)])
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_address_nobody_answers_at_is_one_clear_line(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(
        InvalidInputError, match=r"cannot read s3://footage/.*127\.0\.0\.1"
    ) as raised:
        find_recordings([Pattern(PATTERN)])
    assert "\n" not in str(raised.value)
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in str(raised.value)


def test_documents_of_all_seconds_are_there(bucket, tmp_path):
    (first, _) = recordings()
    read = read_recording(ReadingTask(first, DocumentSettings(), False, ""))
    (tmp_path / "a.corpus").write_bytes(read.contents)
    assert read.seconds == LENGTH
    assert Corpus.load(tmp_path / "a.corpus").times[0] == first.start


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def site(tmp_path, master):
    """A web server with a recording."""
    path = tmp_path / "web/north" / DAY / f"{clock(0)}.mp4"
    path.parent.mkdir(parents=True)
    path.write_bytes(master.read_bytes())
    handler = partial(Quiet, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_recordings_of_a_web_server_are_read_once(site, tmp_path):
    pattern = f"{site}/{{camera}}/{{date}}/{{time}}.mp4"
    for read in (1, 0):
        result = learn_archive(pattern, output=tmp_path / "site", **OPTIONS)
        assert (result.reading.n_read, result.reading.waiting) == (read, [])
    with pytest.raises(InvalidInputError, match=r"matches no file: ") as found:
        learn_archive(f"{site}/{{camera}}/{{date}}.mp4", output=tmp_path / "other", **OPTIONS)
    assert "\n" not in str(found.value)


def test_the_address_of_a_file_is_that_of_its_pattern(tmp_path, master):
    """Of a file in a file too."""
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(master, f"north/{DAY}/{clock(0)}.mp4")
    pattern = Pattern(f"zip://{{camera}}/{{date}}/{{time}}.mp4::{tmp_path}/all.zip")
    (recording,) = find_recordings([pattern])
    with at_hand(recording.file.address) as path:
        assert path.read_bytes() == master.read_bytes()
