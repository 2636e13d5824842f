"""habitus extract, run as a person runs it: real processes, real files, real sockets."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import av
import cv2
import numpy as np
import pytest

from habitus import Corpus
from habitus.corpus.documents import VERSION
from habitus.files import FileFormat
from habitus.ingest.extraction import extract_corpus
from habitus.video import Source
from reference.commands import COMMAND, habitus
from reference.footage import FPS, HEIGHT, WIDTH, encode, moving_square, write
from reference.processes import LONG, descendants, running, wait_until

X264 = {"preset": "ultrafast", "crf": "15", "g": "25"}
SECONDS = 90
"""Of the long video."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extract")
    encode(folder / "v.mp4", moving_square(75), options=X264)
    encode(folder / "one-frame.mp4", moving_square(1), options=X264)
    (folder / "empty.mp4").touch()
    (folder / "text.mp4").write_text("Some text, not a video.\n" * 200)
    whole = (folder / "v.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "images").mkdir()
    for i, picture in enumerate(moving_square(30)):
        cv2.imwrite(str(folder / "images" / f"{i}.png"), picture)
    cv2.imwrite(str(folder / "mask.png"), np.full((10, 10), 255, np.uint8))
    with av.open(str(folder / "sound.wav"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), layout="mono")
        frame.sample_rate, frame.pts = 8000, 0
        container.mux(stream.encode(frame))
    return folder


def test_extract_and_show(folder, tmp_path):
    found = habitus("extract", folder / "v.mp4", "-o", "c.corpus", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "3 documents" in found.stdout
    assert "32 x 40 cells of 4 pixels" in found.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["c.corpus"]  # no parts are left
    shown = habitus("show", "c.corpus", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "3 documents in 1 sequence" in shown.stdout
    picture = cv2.imread(str(tmp_path / "c.png"))
    assert picture is not None
    assert min(picture.shape[:2]) > 100


def test_json_and_preview(folder, tmp_path):
    run = habitus(
        "extract",
        folder / "v.mp4",
        "-o",
        "c.corpus",
        "--preview",
        "p.mp4",
        "--json",
        "--jobs",
        1,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    found = json.loads(run.stdout)
    corpus = Corpus.load(tmp_path / "c.corpus")
    assert found["documents"] == len(corpus) == 3
    assert found["words"] == corpus.n_tokens.sum() > 100
    assert (found["sequences"], found["faults"], found["notes"]) == (1, 0, [])
    with av.open(str(tmp_path / "p.mp4")) as container:
        pictures = list(container.decode(video=0))
    assert len(pictures) == 75
    assert (pictures[0].width, pictures[0].height) == (WIDTH, HEIGHT)
    assert float(pictures[-1].time) == pytest.approx(74 / FPS, abs=0.002)
    later = pictures[40].to_ndarray(format="rgb24").astype(int)
    coloured = (later.max(axis=2) - later.min(axis=2)) > 60
    assert coloured.sum() > 100  # arrows, on a grey picture
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.corpus", "p.mp4"]


def test_images_with_a_rate(folder, tmp_path):
    run = habitus("extract", folder / "images", "--fps", 10, "-o", "c.corpus", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert Corpus.load(tmp_path / "c.corpus").n_frames.tolist() == [10, 10, 10]


def test_standard_input(folder, tmp_path):
    encode(tmp_path / "v.ts", moving_square(75), options=X264)
    with (tmp_path / "v.ts").open("rb") as video:
        run = subprocess.run(
            [*COMMAND, "extract", "-", "-o", "c.corpus"],
            cwd=tmp_path,
            stdin=video,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONG,
        )
    assert run.returncode == 0, run.stderr
    assert len(Corpus.load(tmp_path / "c.corpus")) == 3


BAD = {
    "absent": (("absent.mp4",), "no such file"),
    "empty": (("empty.mp4",), "empty"),
    "text": (("text.mp4",), "not a video"),
    "cut off": (("cut.mp4",), "not a video"),
    "sound only": (("sound.wav",), "no video"),
    "one frame": (("one-frame.mp4",), "no document"),
    "images without a rate": (("images",), "fps"),
    "second is bad": (("v.mp4", "absent.mp4"), "no such file"),
    "clip too short": (("v.mp4", "--clip", "0.05"), "two frames"),
    "clip not finite": (("v.mp4", "--clip", "inf"), "clip"),
    "mask of another size": (("v.mp4", "--mask", "mask.png"), "10x10"),
    "cell too large": (("v.mp4", "--cell", "260"), "cell must be"),
    "no answer": (("tcp://127.0.0.1:9",), "127.0.0.1"),
    "preview nowhere": (("v.mp4", "--preview", "no/such/p.mp4"), "cannot write"),
}


@pytest.mark.parametrize("kind", BAD)
def test_errors_are_one_line_and_leave_nothing(folder, kind):
    arguments, message = BAD[kind]
    before = sorted(folder.rglob("*"))
    run = habitus("extract", *arguments, "-o", "x.corpus", cwd=folder)
    assert run.returncode == 1
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    assert len(lines) == 1, run.stderr
    assert lines[0].startswith("habitus: ")
    assert message in lines[0]
    assert sorted(folder.rglob("*")) == before


def habitus_on_a_full_disk(size, *arguments, cwd):
    """With no file allowed to grow beyond `size` bytes, as on a disk with that much left."""
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    command = [sys.executable, "-c", f"{full}; from habitus.cli import main; main()"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # or half of a module is left
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )


def assert_one_line(run, *messages):
    assert run.returncode == 1
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith("habitus: cannot write ")
    for message in messages:
        assert message in line


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_at_the_first_part_leaves_nothing(folder, tmp_path, jobs):
    whole = ("extract", folder / "v.mp4", "-o", "c.corpus", "--jobs", jobs)
    assert habitus(*whole, cwd=tmp_path).returncode == 0  # kernels are compiled and kept
    (tmp_path / "c.corpus").unlink()
    run = habitus_on_a_full_disk(4096, *whole, cwd=tmp_path)
    assert_one_line(run, ".chunks", "File too large")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_at_the_corpus_keeps_the_parts_and_what_was_there(folder, tmp_path):
    command = ("extract", folder / "v.mp4", "-o", "c.corpus", "--jobs", 1)
    shelf = tmp_path / ".c.corpus.chunks"
    source = Source(str(folder / "v.mp4"))
    extract_corpus([source], output=tmp_path / "c.corpus")  # all but the corpus
    (part,) = shelf.iterdir()
    Corpus([[1, 2]]).save(tmp_path / "c.corpus")
    older = (tmp_path / "c.corpus").read_bytes()
    run = habitus_on_a_full_disk(4096, *command, cwd=tmp_path)
    assert_one_line(run, "c.corpus", "File too large")
    assert (tmp_path / "c.corpus").read_bytes() == older
    assert sorted(tmp_path.iterdir()) == [shelf, tmp_path / "c.corpus"]
    assert list(shelf.iterdir()) == [part]
    again = habitus(*command, cwd=tmp_path)  # with room again, from the parts
    assert again.returncode == 0, again.stderr
    assert len(Corpus.load(tmp_path / "c.corpus")) == 3
    assert not shelf.exists()


@contextlib.contextmanager
def served(data, seconds, half_sent=None):
    """A stream on a port of this machine: bytes over `seconds` seconds, then silence."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG)

        def serve():
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    step = max(188, len(data) // 100 // 188 * 188)
                    for start in range(0, len(data), step):
                        connection.sendall(data[start : start + step])
                        if half_sent is not None and start > len(data) / 2:
                            half_sent.set()
                        ended.wait(seconds * step / len(data))
                    ended.wait()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            thread.join(LONG)


def transport_stream(n):
    memory = io.BytesIO()
    with av.open(memory, "w", format="mpegts") as container:
        write(container, moving_square(n), options={**X264, "tune": "zerolatency"})
    return memory.getvalue()


def test_a_live_stream_for_a_given_time(tmp_path):
    with served(transport_stream(200), seconds=4) as address:
        run = habitus(
            "extract", address, "-o", "live.corpus", "--duration", 3, "--timeout", 5, cwd=tmp_path
        )
    assert run.returncode == 0, run.stderr
    corpus = Corpus.load(tmp_path / "live.corpus")
    assert corpus.n_frames.tolist() == [25, 25, 25]
    assert corpus.n_tokens.min() > 50
    assert [path.name for path in tmp_path.iterdir()] == ["live.corpus"]


def test_a_silent_address_is_given_up(tmp_path):
    with served(b"", seconds=1) as address:  # silent for as long as it is asked
        run = habitus("extract", address, "-o", "x.corpus", "--timeout", 1, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("habitus: ")
    assert len(run.stderr.splitlines()) == 1, run.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_a_live_stream_with_what_there_is(tmp_path, start):
    half_sent = threading.Event()
    with served(transport_stream(400), seconds=12, half_sent=half_sent) as address:
        process = start(
            [*COMMAND, "extract", address, "-o", "live.corpus"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
        )
        assert half_sent.wait(LONG)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert 1 <= len(Corpus.load(tmp_path / "live.corpus")) < 16


def test_killed_in_the_middle_and_run_again(tmp_path, start):
    small = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    encode(tmp_path / "long.mp4", small, options=X264)
    arguments = ["extract", "long.mp4", "--clip", "0.12", "--jobs", "1", "-o"]
    process = start(
        [*COMMAND, *arguments, "cut.corpus"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    parts = tmp_path / ".cut.corpus.chunks"
    while process.poll() is None and not list(parts.glob("[!.]*.safetensors")):
        time.sleep(0.002)
    workers = descendants(process.pid)
    process.kill()
    process.wait()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "cut.corpus").exists()
    assert len(list(parts.glob("[!.]*.safetensors"))) >= 1
    wait_until(lambda: not any(map(running, workers)), "workers end with their parent")
    again = habitus(*arguments, "cut.corpus", cwd=tmp_path)
    whole = habitus(*arguments, "whole.corpus", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert whole.returncode == 0, whole.stderr
    # The files differ in the order of their headers, which safetensors leaves to chance.
    contents = [
        FileFormat("corpus", VERSION).read(tmp_path / name)
        for name in ("cut.corpus", "whole.corpus")
    ]
    assert contents[0].header == contents[1].header
    assert contents[0].tensors.keys() == contents[1].tensors.keys()
    for name, tensor in contents[0].tensors.items():
        assert np.array_equal(tensor, contents[1].tensors[name]), name
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["cut.corpus", "long.mp4", "whole.corpus"]
