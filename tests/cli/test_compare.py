"""habitus compare, run as a person runs it: killed, gone on, and told what is wrong."""

import json
import subprocess
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from habitus import Corpus
from habitus.cli import command_for
from habitus.errors import InvalidInputError
from habitus.evaluation.labels import Label
from habitus.files import FileFormat
from habitus.lab import Junction, render
from habitus.pipeline import parse_duration
from reference.commands import COMMAND, habitus
from reference.labelled import BOX, labelled_corpus, labels, write_csv
from reference.processes import descendants, running, wait_until

HOW = (
    "scene.corpus",
    "--labels",
    "labels.csv",
    "--train",
    "1:30",
    "--runs",
    4,
    "--jobs",
    1,
    "--methods",
    "vb,em-1",
)
CHAINS = [
    f"{name}-{n:03d}.safetensors"
    for name in ("em-1", "vb-1", "vb-H", "vb-H+1")
    for n in range(1, 5)
]


def compare(*arguments, cwd):
    return habitus("compare", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    labelled_corpus().save(folder / "scene.corpus")
    write_csv(folder / "labels.csv", labels())
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    """A comparison that nobody disturbed."""
    run = compare(*HOW, "-o", "whole", cwd=folder)
    assert run.returncode == 0, run.stderr
    return run


def scores(path):
    return FileFormat("run", 1).read(path).tensors


def test_it_tells_a_table_and_where_the_page_is(folder, whole):
    lines = whole.stdout.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:5]] == [
        "EM 1 p",
        "VB 1 p",
        "VB 1 mc 5",
        "VB 1 mc 100",
    ]
    assert len(lines) == 1 + 10 + 2
    assert lines[-1] == "wrote whole/comparison.html and whole/comparison.md"
    assert (folder / "whole" / "comparison.html").exists()
    assert whole.stderr == ""


def test_killed_it_goes_on_where_it_was_and_ends_the_same(folder, whole, start):
    runs = folder / "killed" / "runs"
    process = start(
        [*COMMAND, "compare", *HOW, "-o", "killed"], cwd=folder, stdout=subprocess.DEVNULL
    )
    while len(list(runs.glob("[!.]*"))) < 2:
        assert process.poll() is None, "over before it could be killed"
        time.sleep(0.01)
    workers = descendants(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(running, workers)), "workers end with their parent")
    kept = {path.name: path.stat().st_mtime_ns for path in runs.glob("[!.]*")}
    assert 2 <= len(kept) < len(CHAINS)
    run = compare(*HOW, "-o", "killed", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert sorted(path.name for path in runs.iterdir()) == sorted(CHAINS)
    for name in CHAINS:
        assert kept.get(name, 0) in (0, (runs / name).stat().st_mtime_ns)
        ours, theirs = scores(runs / name), scores(folder / "whole" / "runs" / name)
        assert sorted(ours) == sorted(theirs)
        for tensor in ours:
            np.testing.assert_array_equal(ours[tensor], theirs[tensor])


def test_json_has_every_figure(folder, whole):
    run = compare(*HOW, "-o", "whole", "--json", cwd=folder)
    found = json.loads(run.stdout)
    assert found["chance"]["average_precision"] == pytest.approx(11 / 70)
    assert [len(row["average_precisions"]) for row in found["methods"]] == [4] * 10
    assert found["protocol"]["burn_in"] == 500


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--seed", 1), "holds a comparison with other settings"),
        (("--train", "80s"), "holds a comparison with another training part"),
        (
            ("--train", "soon"),
            "a length of time is written as 300s, 5min, 5:00 or 14d, found 'soon' (--train)",
        ),
        (("--train", "1h"), "training must leave documents to judge"),
        (("--methods", "em,svm"), "found 'svm'"),
        (("--runs", 0), "runs must be at least 1, found 0"),
        (("--labels", "none.csv"), "none.csv: cannot be read"),
        (("--topics", 0), "topics must be at least 1, found 0"),
        (("--label-line", 2), "there is no line 2 to choose"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(folder, whole, changed, said, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = list(map(str, ("compare", *HOW, "-o", "whole", *changed)))
    run = CliRunner().invoke(command_for(arguments), arguments)
    assert run.exit_code == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("habitus: ")
    assert said in line


def test_a_video_is_read_once_and_another_is_refused(tmp_path):
    for seed in (300, 301):
        junction = Junction(seed=seed, seconds=8, width=160, height=128, fps=12.5)
        render(junction, tmp_path / f"{seed}.mp4")
    write_csv(tmp_path / "labels.csv", [Label(5.0, 7.0, "made up", BOX)])
    how = ("--labels", "labels.csv", "--train", 4, "--methods", "amount", "-o", "out")
    for _ in range(2):
        run = compare("300.mp4", *how, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
    kept = tmp_path / "out" / "documents.corpus"
    before = kept.read_bytes()
    assert len(Corpus.load(kept)) == 8
    run = compare("301.mp4", *how, cwd=tmp_path)
    assert (run.returncode, len(run.stderr.splitlines())) == (1, 1)
    assert "out holds a comparison on another video than 301.mp4" in run.stderr
    assert kept.read_bytes() == before
    assert not list((tmp_path / "out").glob(".*"))


def test_lengths_of_time():
    assert [parse_duration(text) for text in ("90", "90 s", "1.5min", "1:30")] == [90.0] * 4
    with pytest.raises(InvalidInputError, match="found 'soon'"):
        parse_duration("soon")
