"""Commands with --cluster, as a person gives them: the same results, and nothing left behind."""

import json
import os
import signal
import subprocess

import numpy as np
import pytest

from habitus import Corpus, SceneModel
from habitus.files import FileFormat
from reference.commands import COMMAND, done, habitus
from reference.labelled import labelled_corpus, labels, write_csv
from reference.processes import LONG, descendants, running, wait_until
from reference.two_lanes import two_lanes

SECONDS = 190
CHUNKS = "[0-9a-f]*.safetensors"
FEW = ("--restarts", "2", "--iterations", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    two_lanes(folder / "v.mp4", SECONDS)
    done("extract", "v.mp4", "-o", "plain.corpus", cwd=folder)
    labelled_corpus().save(folder / "scene.corpus")
    write_csv(folder / "labels.csv", labels())
    return folder


def same_corpus(one, other):
    a, b = Corpus.load(one), Corpus.load(other)
    assert (a.counts != b.counts).nnz == 0
    assert a.settings == b.settings
    for name in ("times", "lengths", "n_frames", "conditions", "picture"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    return len(a) == SECONDS


def test_extract_gives_the_same_corpus_and_leaves_no_process(folder, start):
    process = start(
        [*COMMAND, "extract", "v.mp4", "-o", "local.corpus", "--cluster", "local", "--jobs", 2],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    seen: set[int] = set()

    def ended() -> bool:
        seen.update(descendants(process.pid))
        return process.poll() is not None

    wait_until(ended, "it has ended")
    out, told = process.communicate()
    assert process.returncode == 0, told
    assert "habitus: the dashboard of the cluster is at http://127.0.0.1:" in told
    assert "wrote local.corpus" in out
    assert same_corpus(folder / "plain.corpus", folder / "local.corpus")
    assert not (folder / ".local.corpus.chunks").exists()
    assert len(seen) >= 3  # the node and two workers
    wait_until(lambda: not any(map(running, seen)), "all processes have ended")


def test_learn_gives_the_same_model(folder, two):
    given = ("learn", "plain.corpus", *FEW, "--seed", 3)
    done(*given, "-o", "plain.model", cwd=folder)
    done(*given, "-o", "cluster.model", "--cluster", two.address, cwd=folder)
    assert (folder / "plain.model").read_bytes() == (folder / "cluster.model").read_bytes()
    assert SceneModel.load(folder / "plain.model").calibration is not None


def test_evaluate_gives_the_same_figures(folder, two):
    done("learn", "plain.corpus", *FEW, "-o", "judge.model", cwd=folder)
    (folder / "wrong.csv").write_text("start,end\n5,8\n")
    given = ("evaluate", "judge.model", "v.mp4", "--labels", "wrong.csv", "--json")
    plain = done(*given, cwd=folder)
    assert json.loads(plain.stdout)["n_abnormal"] > 0
    assert done(*given, "--cluster", two.address, cwd=folder).stdout == plain.stdout


def test_compare_and_tune_give_the_same_figures(folder, two):
    given = ("scene.corpus", "--labels", "labels.csv", "--train", "1:30", "--runs", 1)
    methods = ("--methods", "em-1,vb-1")
    done("compare", *given, *methods, "-o", "plain", cwd=folder)
    done("compare", *given, *methods, "-o", "there", "--cluster", two.address, cwd=folder)
    for path in sorted((folder / "plain" / "runs").iterdir()):
        one, other = (scores(folder / name / "runs" / path.name) for name in ("plain", "there"))
        assert one.keys() == other.keys()
        assert all(one[key].tobytes() == other[key].tobytes() for key in one)
    given = ("tune", "scene.corpus", "--topics", "4", "--behaviours", "2", "--json")
    how = ("--no-recall", "--no-hyperparameters", "--restarts", 1)
    plain, there = (
        json.loads(done(*given, *how, *extra, cwd=folder).stdout)
        for extra in ((), ("--cluster", two.address))
    )
    assert plain == there


def scores(path):
    return FileFormat("run", 1).read(path).tensors


def test_ctrl_c_ends_it_quickly_and_the_same_command_goes_on(folder, two, start):
    given = [*COMMAND, "extract", "v.mp4", "-o", "cut.corpus", "--cluster", two.address]
    process = start(given, cwd=folder, stderr=subprocess.PIPE)
    chunks = folder / ".cut.corpus.chunks"
    wait_until(lambda: process.poll() is not None or any(chunks.glob(CHUNKS)), "a chunk is there")
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=LONG)
    if process.returncode:  # otherwise it was over before
        assert process.returncode == 130
        assert told.splitlines()[-1] == "habitus: interrupted; nothing was left half-written"
        assert not (folder / "cut.corpus").exists()
        assert any(chunks.glob(CHUNKS))
    done(*given[len(COMMAND) :], cwd=folder)
    assert same_corpus(folder / "plain.corpus", folder / "cut.corpus")


def test_a_command_that_is_killed_takes_its_local_cluster_with_it(folder, start):
    process = start(
        [*COMMAND, "extract", "v.mp4", "-o", "k.corpus", "--cluster", "local", "--jobs", 2],
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(descendants(process.pid)) >= 3, "node and workers run")
    own = descendants(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(running, own)), "all processes have ended")


def test_nobody_answers_is_one_line(folder):
    run = habitus("extract", "v.mp4", "-o", "x.corpus", "--cluster", "127.0.0.1:9", cwd=folder)
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("habitus: no scheduler answers at 127.0.0.1:9 within 5 s: ")
    assert line.endswith(" (--cluster)")
