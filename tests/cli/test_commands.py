"""The command line, run as a person runs it: real processes, real files."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from habitus import MarkovClusteringTopicModel, generate
from habitus.lab.crossing import crossing, crossing_vocabulary
from habitus.model.learning import WORTH_A_THREAD
from reference.commands import COMMAND, done, habitus
from reference.processes import LONG, wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)

    drawn = generate(crossing(), rng.poisson(80, 60), rng, vocabulary=crossing_vocabulary())
    drawn.corpus.save(folder / "scene.corpus")
    long = generate(crossing(), rng.poisson(80, 900), rng, vocabulary=crossing_vocabulary())
    assert long.corpus.counts.nnz > WORTH_A_THREAD
    long.corpus.save(folder / "long.corpus")
    return folder


def test_learn_and_show(folder):
    learnt = habitus("learn", "scene.corpus", "-o", "scene.model", "--restarts", 2, cwd=folder)
    assert learnt.returncode == 0, learnt.stderr
    assert "learnt 4 behaviours and 8 topics from 60 documents" in learnt.stdout
    shown = habitus("show", "scene.model", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    for heading in ("behaviour", "share", "lasts", "then", "heaviest topics"):
        assert heading in shown.stdout


def test_json_is_for_machines(folder):
    arguments = ("scene.corpus", "-o", "json.model", "--restarts", 2, "--json")
    learnt = json.loads(habitus("learn", *arguments, cwd=folder).stdout)
    shown = json.loads(habitus("show", "json.model", "--json", cwd=folder).stdout)
    assert learnt == shown
    model = MarkovClusteringTopicModel.load(folder / "json.model")
    assert shown["restarts"] == model.restarts_.tolist()
    assert [b["number"] for b in shown["behaviours"]] == [1, 2, 3, 4]
    assert sum(b["share"] for b in shown["behaviours"]) == pytest.approx(1, rel=1e-12)
    for behaviour in shown["behaviours"]:
        following = sum(likely["probability"] for likely in behaviour["successors"])
        assert following == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("learning", ["vb", "gibbs", "blocked-gibbs"])
def test_every_algorithm_and_the_same_seed_twice(folder, learning):
    options = ("--learning", learning, "--restarts", 2, "--iterations", 5, "--burn-in", 4)
    options += ("--samples", 2, "--thinning", 2, "--seed", 3)
    for name, jobs in (("one.model", 1), ("two.model", 2)):
        run = habitus("learn", "scene.corpus", "-o", name, *options, "--jobs", jobs, cwd=folder)
        assert run.returncode == 0, run.stderr
    one, two = (MarkovClusteringTopicModel.load(folder / f"{n}.model") for n in ("one", "two"))
    assert all(np.array_equal(a, b) for a, b in zip(one.parameters_, two.parameters_, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "absent.corpus", "-o", "x.model"), "no such file"),
        (("learn", "scene.corpus", "-o", "no/such/x.model", "--restarts", 1), "cannot write"),
        (("learn", "scene.corpus", "-o", "x.model", "--behaviours", 100), "n_behaviours=100"),
        (("learn", "scene.corpus", "-o", "x.model", "--topics", 0), "n_topics must be"),
        (("learn", "scene.corpus", "-o", "x.model", "--prior", "Z"), "prior must be"),
        (("learn", "scene.corpus", "-o", "x.model", "--seed", -1), "random_state must be"),
        (("show", "absent.model"), "expected a habitus model file, found nothing"),
        (("demo", "-o", "scene.corpus"), "cannot make the folder"),
    ],
)
def test_errors_are_one_line_and_exit_code_one(folder, arguments, message):
    before = sorted(folder.iterdir())
    run = habitus(*arguments, cwd=folder)
    assert run.returncode == 1
    assert run.stdout == ""
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("habitus: ")
    assert message in last
    assert "Traceback" not in run.stderr
    assert sorted(folder.iterdir()) == before


def test_errors_name_arguments_as_the_help_does(folder):
    run = habitus("archive", "detect", "nowhere", cwd=folder)
    assert run.stderr.endswith("learn one first (DIR)\n")
    (folder / "none.jsonl").write_text("")
    done("learn", "scene.corpus", "-o", "named.model", "--restarts", 1, cwd=folder)
    run = habitus("accept", "none.jsonl", 3, "-m", "named.model", cwd=folder)
    assert run.stderr.endswith("has no event on line 3: it has 0 events (LINE)\n")
    assert "Missing argument 'MODEL|CORPUS'" in habitus("show", cwd=folder).stderr


def test_one_of_a_kind_is_no_plural(folder):
    few = ("--behaviours", 1, "--topics", 1, "--restarts", 1)
    told = done("learn", "scene.corpus", "-o", "one.model", *few, cwd=folder).stdout
    assert told.startswith("learnt 1 behaviour and 1 topic from ")
    shown = done("show", "one.model", cwd=folder).stdout
    assert shown.startswith("1 behaviour, 1 topic, ")
    assert "best of 1 run\n" in shown


def test_wrong_usage_is_exit_code_two(folder):
    run = habitus("learn", "scene.corpus", cwd=folder)
    assert run.returncode == 2
    assert "--output" in run.stderr


def test_help_and_version_start_fast_libraries_only(folder):
    code = (
        "import sys; from habitus.cli import command_for; "
        "from typer.testing import CliRunner; r = CliRunner().invoke(command_for(), ['--help']); "
        "assert r.exit_code == 0 and 'learn' in r.output; "
        "print([m for m in ('numba', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert habitus("--version", cwd=folder).stdout.startswith("habitus ")


@pytest.mark.parametrize("corpus", ["scene.corpus", "long.corpus"])  # one thread, and several
def test_interrupted_learning_leaves_nothing_behind(folder, corpus, tmp_path, start):
    before = sorted(folder.iterdir())
    arguments = ("learn", corpus, "-o", "cut.model", "--iterations", "10000000")
    errors = tmp_path / "errors"
    with errors.open("w") as told:
        process = start(
            [*COMMAND, *arguments],
            cwd=folder,
            stderr=told,
            stdout=subprocess.PIPE,
            env=os.environ | {"FORCE_COLOR": "1"},  # with a progress bar
        )
        wait_until(lambda: "learning" in errors.read_text(), "a first iteration")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONG)
    assert process.returncode == 130, errors.read_text()
    assert "interrupted" in errors.read_text()
    assert "Traceback" not in errors.read_text()
    assert out == ""
    assert sorted(folder.iterdir()) == before
