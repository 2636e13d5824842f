"""learn, detect, watch and report on real footage, run as a person runs them."""

import csv
import json
import os
import signal
import subprocess
from fractions import Fraction

import av
import numpy as np
import pytest

from habitus import Corpus, MarkovClusteringTopicModel, clock
from habitus.lab import Junction, render
from habitus.scene import SceneModel
from reference.commands import COMMAND, done, habitus
from reference.footage import encode
from reference.processes import LONG, wait_until
from reference.streams import free_port, playing

SIZE = {"width": 160, "height": 128, "fps": 12.5}
SECONDS = 70.0
SHARE = ("--measure", "mean", "--share", 0.05)
SPEED = 10
"""A stream plays faster than its camera would show it."""
LEARN = ("--clip", 0.5, "--restarts", 2, "--min-words", 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small junction, its documents, and a model learnt from the video itself."""
    folder = tmp_path_factory.mktemp("detect")
    render(Junction(seed=8, seconds=SECONDS, normal_for=SECONDS, **SIZE), folder / "scene.mp4")
    done("extract", "scene.mp4", "-o", "scene.corpus", "--clip", 0.5, cwd=folder)
    done("learn", "scene.mp4", "-o", "scene.model", *LEARN, cwd=folder)
    return folder


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


def test_learning_from_video_is_extracting_and_learning(folder):
    done("learn", "scene.corpus", "-o", "other.model", *LEARN, cwd=folder)
    one, other = (
        MarkovClusteringTopicModel.load(folder / f"{name}.model") for name in ("scene", "other")
    )
    assert all(
        np.array_equal(a, b) for a, b in zip(one.parameters_, other.parameters_, strict=True)
    )
    expected = {"clip": 0.5, "cell": 8, "motion": "cells", "words": "coarse"}
    expected |= {"scale": 0.5, "region": None}
    assert one.settings_ == expected
    first, second = (
        SceneModel.load(folder / f"{name}.model").calibration for name in ("scene", "other")
    )
    assert first.settings == second.settings
    assert {name: v.tolist() for name, v in first.contents().tensors.items()} == {
        name: v.tolist() for name, v in second.contents().tensors.items()
    }
    assert not list(folder.glob(".*parts*"))


def test_detect_gives_events_scores_thumbnails_and_an_annotated_video(folder):
    run = done(
        "detect",
        "scene.mp4",
        "-m",
        "scene.model",
        *SHARE,
        "-o",
        "events.jsonl",
        "--scores",
        "scores.csv",
        "--annotate",
        "seen.mp4",
        cwd=folder,
    )
    events = events_of((folder / "events.jsonl").read_text())
    *ranked, told, wrote = run.stdout.splitlines()
    assert told.startswith(f"{len(events)} alarm")
    assert wrote == "wrote events.jsonl"
    assert [line.split()[0] for line in ranked] == [str(k + 1) for k in range(len(ranked))]
    assert sum("ALARM" in line for line in ranked) == len(events)
    assert len(ranked) >= 8  # all that is not within ten seconds of an alarm
    assert events
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert len(rows) == 2 * SECONDS
    abnormal = {float(row["time"]) for row in rows if row["abnormal"] == "1"}
    for event in events:
        assert event["start"] in abnormal
        assert event["peak"] in abnormal
        picture = folder / event["thumbnail"]
        assert picture.read_bytes()[:2] == b"\xff\xd8"  # JPEG
    with av.open(str(folder / "seen.mp4")) as video:
        assert video.streams.video[0].frames == SECONDS * SIZE["fps"]


def test_video_and_corpus_give_the_same_events(folder):
    given = ("-m", "scene.model", *SHARE, "--json")
    one, other = (
        events_of(done("detect", f"scene.{kind}", *given, cwd=folder).stdout)
        for kind in ("mp4", "corpus")
    )
    assert one
    assert [e | {"source": ""} for e in one] == [e | {"source": ""} for e in other]


def test_whatever_the_budget_the_most_unusual_moments_are_ranked(folder):
    run = done("detect", "scene.corpus", "-m", "scene.model", "--threshold=-99", cwd=folder)
    *ranked, told = run.stdout.splitlines()
    assert len(ranked) == 10
    assert "ALARM" not in run.stdout
    assert all("normal footage" in line or "learnt from" in line for line in ranked)
    assert told.startswith("no alarm in 1:10 of video")


def test_the_file_of_events_has_alarms_only_unless_moments_are_asked_for(folder):
    given = ("detect", "scene.corpus", "-m", "scene.model", *SHARE)
    done(*given, "-o", "alarms.jsonl", cwd=folder)
    printed = done(*given, "-o", "moments.jsonl", "--moments", "--json", cwd=folder).stdout
    alarms, moments = (
        events_of((folder / f"{name}.jsonl").read_text()) for name in ("alarms", "moments")
    )
    assert all(event["alarm"] for event in alarms)
    flags = [event["alarm"] for event in moments]
    assert True in flags
    assert False in flags
    named = ("thumbnail",)
    kept = [{k: v for k, v in event.items() if k not in named} for event in moments]
    assert [event for event in kept if event["alarm"]] == [
        {k: v for k, v in event.items() if k not in named} for event in alarms
    ]
    assert [event["start"] for event in moments] == sorted(event["start"] for event in moments)
    ranked = [event["normality"] for event in events_of(printed)]
    assert ranked == sorted(ranked)
    assert len(ranked) == len(moments)
    assert all((folder / event["thumbnail"]).is_file() for event in moments)
    (folder / "known.csv").write_text("start,end,kind\n10,12,something\n")
    one, other = (
        done("evaluate", f"{name}.jsonl", "scene.corpus", "-l", "known.csv", "--json", cwd=folder)
        for name in ("alarms", "moments")
    )
    assert one.stdout == other.stdout


def test_a_skipped_start_is_not_judged(folder):
    given = ("-m", "scene.model", *SHARE, "--json", "--skip", 40)
    events = events_of(done("detect", "scene.corpus", *given, cwd=folder).stdout)
    assert events
    assert min(event["start"] for event in events) >= 40


def test_a_report_is_one_page(folder):
    (folder / "labels.csv").write_text("start,end,kind\n10,12,something\n")
    done(
        "report",
        "scene.mp4",
        "-m",
        "scene.model",
        "-o",
        "report.html",
        *SHARE,
        "--labels",
        "labels.csv",
        cwd=folder,
    )
    page = (folder / "report.html").read_text()
    assert "habitus report scene.mp4" in page
    assert "something" in page


def test_watching_a_file_finds_what_detecting_finds(folder):
    given = ("-m", "scene.model", "--measure", "mean", "--threshold=-5.9", "--json")
    expected = events_of(done("detect", "scene.mp4", *given, cwd=folder).stdout)
    assert expected
    run = done("watch", "scene.mp4", *given[:-1], "-o", "watched.jsonl", cwd=folder)
    assert run.stdout == ""
    found = events_of((folder / "watched.jsonl").read_text())
    for event in found:
        assert (folder / event["thumbnail"]).is_file()
        assert event["explanation"] in run.stderr or event["start"] != event["peak"]
        assert event["clock"] is None  # nobody knows when a file was recorded
        assert f"{clock(event['start'])}  " in run.stderr
    kept = ("normality", "boxes", "words", "behaviour", "misfit", "shift", "explanation")
    assert [[e[k] for k in kept] for e in found] == [[e[k] for k in kept] for e in expected]


@pytest.fixture(scope="module")
def stream(folder):
    """The same footage as a transport stream."""
    with av.open(str(folder / "scene.mp4")) as video:
        pictures = [f.to_ndarray(format="yuv420p")[: SIZE["height"]] for f in video.decode(video=0)]
    options = {"preset": "ultrafast", "tune": "zerolatency", "crf": "18", "g": "12"}
    return encode(folder / "scene.ts", pictures, rate=Fraction(SIZE["fps"]), options=options)


def n_lines(path):
    return path.read_text().count("\n") if path.is_file() else 0


def test_watching_a_stream_that_is_cut_and_comes_back(folder, stream, start):
    port, events = free_port(), folder / "live.jsonl"
    address = f"tcp://127.0.0.1:{port}"
    with playing(port, stream, fps=SPEED * SIZE["fps"]):
        process = start(
            [
                *COMMAND,
                "watch",
                address,
                "-m",
                "scene.model",
                "--measure",
                "mean",
                "--threshold=-7.1",  # events that end long before the footage does
                "-o",
                events.name,
                "--patience",
                "3",
            ],
            cwd=folder,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        wait_until(lambda: n_lines(events) >= 1 or process.poll() is not None, "an event")
    before = n_lines(events)
    with playing(port, stream, fps=SPEED * SIZE["fps"]):
        wait_until(lambda: n_lines(events) > before or process.poll() is not None, "one more")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    assert "trying again in" in errors
    assert "is back after" in errors
    assert "Traceback" not in errors
    found = events_of(events.read_text())
    assert all(event["clock"].startswith("20") and event["source"] == address for event in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("detect", "large.mp4", "-m", "scene.model"), "the model was learnt at 160x128"),
        (("watch", "large.mp4", "-m", "scene.model"), "the model was learnt at 160x128"),
        (("detect", "scene.mp4", "-m", "newer.model"), "format version 99"),
        (("detect", "scene.mp4", "-m", "scene.mp4"), "not a complete habitus model file"),
        (("detect", "scene.mp4", "-m", "absent.model"), "found nothing"),
        (("detect", "absent.mp4", "-m", "scene.model"), "no such file"),
        (("learn", "still.mp4", "-o", "x.model"), "no document to learn from"),
        (
            ("detect", "scene.corpus", "-m", "scene.model", "--measure", "mean", "--threshold=1"),
            "every document",
        ),
        (
            (
                "detect",
                "scene.corpus",
                "-m",
                "scene.model",
                "--measure",
                "mean",
                "--threshold=-9999",
            ),
            "no document",
        ),
        (
            ("detect", "scene.corpus", "-m", "scene.model", "--threshold=-1", "--share", 0.1),
            "found several",
        ),
        (
            ("detect", "scene.corpus", "-m", "scene.model", "--approximation", "monte-carlo"),
            "which em does not give",
        ),
        (("detect", "scene.corpus", "-m", "scene.model", "-o", "no/such/e.jsonl"), "cannot write"),
        (
            ("detect", "scene.corpus", "-m", "scene.model", "--annotate", "a.mp4"),
            "annotating needs the video",
        ),
        (("detect", "scene.corpus", "-m", "scene.model", "--skip", 1000), "to skip"),
        (("detect", "empty.corpus", "-m", "scene.model"), "no document in it"),
        (("watch", "scene.mp4", "-m", "scene.model", "--patience", 0), "patience must be above 0"),
        (("detect", "foreign.corpus", "-m", "scene.model"), "vocabulary of 7 words"),
        (("detect", "scene.mp4", "-m", "bare.model"), "does not know how its documents were made"),
        (("learn", "scene.mp4", "scene.corpus", "-o", "x.model"), "not both at once"),
        (
            ("report", "scene.corpus", "-m", "scene.model", "-o", "r.html", "--labels", "late.csv"),
            "outside the video",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_left(folder, bad_files, arguments, message):
    before = listed(folder)
    run = habitus(*arguments, cwd=folder)
    assert run.returncode == 1, run.stderr
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("habitus: ")
    assert message in last
    assert "Traceback" not in run.stderr
    assert listed(folder) == before


def listed(folder):
    """All files but chunks of video, which a further run goes on from."""
    return sorted(path for path in folder.iterdir() if not path.name.endswith(".chunks"))


@pytest.fixture(scope="module")
def bad_files(folder):
    still = np.full((50, SIZE["height"], SIZE["width"]), 90, dtype=np.uint8)
    encode(folder / "still.mp4", still)
    encode(folder / "large.mp4", np.random.default_rng(0).integers(0, 255, (50, 96, 128), np.uint8))
    Corpus(np.ones((30, 7)) * 9).save(folder / "foreign.corpus")
    Corpus(np.empty((0, 7))).save(folder / "empty.corpus")
    bare = SceneModel.load(folder / "scene.model")
    bare.model.settings_ = None
    bare.save(folder / "bare.model")
    data = (folder / "scene.model").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"]["version"] = "99"
    text = json.dumps(header).encode()
    (folder / "newer.model").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    (folder / "late.csv").write_text("start,end\n1000,1010\n")


def test_a_video_without_motion_has_nothing_to_judge(folder, bad_files):
    run = done("detect", "still.mp4", "-m", "scene.model", cwd=folder)
    assert run.stdout == "no alarm in 0:02 of video: nothing moved enough to be judged\n"
