"""habitus tune, run as a person runs it."""

import json
import shlex

import numpy as np
import pytest

from habitus import Corpus, MarkovClusteringTopicModel
from habitus.cli.tune import learn_command
from habitus.lab.tuning.advice import Tuning
from habitus.lab.tuning.selection import Candidate, Choice, Prediction
from reference.commands import habitus
from reference.traffic import traffic

FEW = ("--topics", "2,4", "--behaviours", "1,2", "--restarts", 2, "--trials", 8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    corpus = traffic(180)
    corpus.save(folder / "lanes.corpus")
    corpus.take(np.arange(40)).save(folder / "short.corpus")
    Corpus(corpus.counts).save(folder / "bare.corpus")
    return folder


@pytest.fixture(scope="module")
def told(folder):
    runs = [
        habitus("tune", "lanes.corpus", *FEW, "--json", "--jobs", jobs, cwd=folder)
        for jobs in (1, 2)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    return [run.stdout for run in runs]


def test_the_same_bits_for_any_number_of_jobs(told):
    assert told[0] == told[1]


def test_the_advice_is_the_two_lanes_and_can_be_followed(told, folder):
    advice = json.loads(told[0])
    assert advice["recommended"]["behaviours"] == 2
    sizes = {(s["behaviours"], s["topics"]): s for s in advice["sizes"]}
    assert set(sizes) == {(1, 2), (1, 4), (2, 2), (2, 4)}
    best = sizes[advice["best"]["behaviours"], advice["best"]["topics"]]
    assert best["log_likelihood_per_word"] == max(
        s["log_likelihood_per_word"] for s in sizes.values()
    )
    bound = np.array(advice["hyperparameters"]["bound"])
    assert np.diff(bound).min() >= -1e-12 * abs(bound).max()
    _, *arguments = shlex.split(advice["recommended"]["command"])
    learnt = habitus(*arguments, "--restarts", 1, cwd=folder)
    assert learnt.returncode == 0, learnt.stderr
    model = MarkovClusteringTopicModel.load(folder / "scene.model")
    assert (model.n_behaviours, model.n_topics) == (2, advice["recommended"]["topics"])


def test_what_would_be_found_comes_with_its_interval(told):
    recall = json.loads(told[0])["recall"]
    kinds = {share["kind"] for share in recall["shares"]}
    assert kinds == {"wrong way", "out of place", "foreign path", "out of turn", "out of order"}
    for share in recall["shares"]:
        if share["n_trials"]:
            assert share["low"] <= share["share"] <= share["high"]
    assert {share["alerts_per_day"] for share in recall["shares"]} == {5.0, 24.0, 480.0}


def test_in_words_and_as_a_picture(folder):
    options = (*FEW, "--no-hyperparameters", "--alerts-per-day", 48, "--picture", "evidence.svg")
    options += ("--duration", 170.5, "--continue", "--seed", 3)
    run = habitus("tune", "lanes.corpus", *options, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "(*<): the best; no simpler one is within one standard error of it" in run.stdout
    assert "learn    habitus learn lanes.corpus --behaviours 2 --topics" in run.stdout
    assert "--continue --duration 170.5 --seed 3 -o scene.model" in run.stdout
    assert "at 48 alerts per day this camera would find" in run.stdout
    assert "of 10 wrong-way drivers" in run.stdout
    assert "nan" not in run.stdout
    assert "</svg>" in (folder / "evidence.svg").read_text()


def test_words_without_places_leave_only_the_recall_out(folder):
    options = ("--topics", 2, "--behaviours", "1,2", "--restarts", 1, "--no-hyperparameters")
    run = habitus("tune", "bare.corpus", *options, cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "note: no recall: this corpus has no vocabulary" in run.stderr
    assert "this camera would find" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("short.corpus",), "tuning needs at least 60 documents of 20 words or more, found 40"),
        (("lanes.corpus", "--topics", "4;8"), "topics must be whole numbers separated by commas"),
        (("lanes.corpus", "--behaviours", "0,2"), "behaviours to try must be whole numbers"),
        (("lanes.corpus", "--behaviours", "200"), "n_behaviours=200 needs at least as many"),
        (("lanes.corpus", "--alerts-per-day", "0"), "alerts_per_day must be above 0, found 0"),
        (("lanes.corpus", "--trials", "-1"), "n_trials must be 0 or more, found -1"),
        (
            ("lanes.corpus", "--picture", "x.gif"),
            "ends in .png, .jpg, .jpeg, .svg, .pdf, found .gif",
        ),
        (("lanes.corpus", "--prior", "beta=x"), "prior must be"),
        (("absent.corpus",), "no such file"),
    ],
)
def test_bad_input_is_one_line(folder, arguments, message):
    run = habitus("tune", *arguments, cwd=folder)
    assert run.returncode == 1
    assert message in run.stderr
    assert len(run.stderr.strip().splitlines()) == 1


def recommended(candidate):
    """A tuning that recommends a candidate."""
    prediction = Prediction(np.array([-7.0, -8.0]), np.ones(2))
    return Tuning(Choice([candidate], [prediction], 0, 0), None, None, [])


def test_the_command_learns_the_recommended_model():
    line = learn_command(recommended(Candidate(8, 4)), ["a b.mp4"], [])
    assert line == "habitus learn 'a b.mp4' --behaviours 4 --topics 8 -o scene.model"
    line = learn_command(recommended(Candidate(8, 4, "vb", "alpha=2")), ["x"], ["--seed", "3"])
    assert line == (
        "habitus learn x --behaviours 4 --topics 8 --learning vb --prior alpha=2 --seed 3 "
        "-o scene.model"
    )
