"""Extraction and live decoding work wherever Python runs: no `__main__` guard is needed."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import habitus
from habitus import Corpus
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.video import Source
from reference.footage import FPS, encode, moving_square

X264 = {"preset": "ultrafast", "crf": "15", "g": "25"}
# Seconds that one run may take on a busy machine, with kernels to compile.
TIMEOUT = 300
# Clips so short that a few seconds make several chunks, and two workers have something to do.
CLIP = 0.08
SECONDS = 25

CODE = f"""
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.decoder import Job
from habitus.ingest.extraction import extract_corpus
from habitus.ingest.live import LiveSource
from habitus.video import Source

settings = DocumentSettings(clip={CLIP})
corpus, notes = extract_corpus([Source("a.mp4")], settings, jobs=2)
corpus.save("a.corpus")
live = LiveSource(Job(Source("a.mp4"), settings))
print(len(corpus), sum(one.document.counts.sum() for one in live), notes)
"""


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    pictures = moving_square(SECONDS * FPS, width=96, height=80, side=32, start=(0, 24))
    return encode(tmp_path_factory.mktemp("anywhere") / "a.mp4", pictures, options=X264)


@pytest.fixture(scope="module")
def expected(video):
    corpus = extract_corpus([Source(str(video))], DocumentSettings(clip=CLIP)).corpus
    assert len(corpus) > 2 * 120
    return corpus


@pytest.fixture
def folder(tmp_path, video):
    (tmp_path / "a.mp4").write_bytes(video.read_bytes())
    return tmp_path


def run(arguments, folder, **how):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        **how,
    )


def assert_extracted(folder, output, expected):
    """The corpus is the usual one, and the live documents hold the same words."""
    corpus = Corpus.load(folder / "a.corpus")
    assert np.array_equal(corpus.counts.toarray(), expected.counts.toarray())
    tokens = int(expected.n_tokens.sum())
    assert output.strip() == f"{len(expected)} {tokens} []"


def test_a_bare_script(folder, expected):
    (folder / "script.py").write_text(CODE)
    found = run(["script.py"], folder)
    assert found.stderr == ""
    assert_extracted(folder, found.stdout, expected)


def test_a_script_on_standard_input(folder, expected):
    found = run(["-"], folder, input=CODE)
    assert found.stderr == ""
    assert_extracted(folder, found.stdout, expected)


def test_a_package_found_through_a_changed_path(folder, expected):
    """A script that finds habitus by `sys.path` alone: its processes find the same package.

    The package differs from any other that is installed: a decoder of another one would not be
    understood.
    """
    package, other = Path(habitus.__file__).parent, folder / "elsewhere" / "habitus"
    (other / "ingest").mkdir(parents=True)
    for path in [*package.iterdir(), *(package / "ingest").iterdir()]:
        place = other / path.relative_to(package)
        if path.name not in ("ingest", "decoder.py"):
            place.symlink_to(path)
    decoder = (package / "ingest" / "decoder.py").read_text()
    (other / "ingest" / "decoder.py").write_text(decoder.replace("OPEN = 0", 'OPEN = "another"'))
    code = f"import sys\nsys.path.insert(0, {str(other.parent)!r})\n{CODE}"
    (folder / "script.py").write_text(code)
    found = run(["-E", "script.py"], folder)
    assert found.stderr == ""
    assert_extracted(folder, found.stdout, expected)


def test_a_notebook(folder, expected):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    (output,) = notebook.cells[0].outputs
    assert_extracted(folder, output.text, expected)


ELSEWHERE = """
import os, signal, sys
for name in ("sched_getaffinity", "sched_setaffinity"):
    delattr(os, name)
del signal.pthread_sigmask
sys.modules["fcntl"] = None
"""


def test_a_system_without_what_only_linux_has(folder, expected):
    """No affinity, no file control, no signal masks; and no file of the program.

    Its temporary files cannot be locked: processes that can would take them for left behind.
    """
    alone = {**os.environ, "TMPDIR": str(folder)}
    found = run(["-c", ELSEWHERE + CODE.replace("jobs=2", "jobs=-1")], folder, env=alone)
    assert found.stderr == ""
    assert_extracted(folder, found.stdout, expected)


def test_what_is_printed_in_the_decoder_does_not_reach_its_messages(folder, expected):
    """Something prints when Python starts, before the decoder can prevent it."""
    (folder / "sitecustomize.py").write_text(
        "print('one line')\nprint('no end of line', end='', flush=True)\n"
    )
    code = f"import sys\nsys.path.append({str(folder)!r})\n{CODE}"
    found = run(["-c", code], folder)
    assert_extracted(folder, found.stdout, expected)
