"""evaluate on a rendered junction, run as a person runs it: every form of labels, every refusal."""

import json
import sys

import cv2
import numpy as np
import pytest

from habitus import Corpus
from habitus.cli import main
from habitus.evaluation.labels import footage_of_corpus
from habitus.lab import Junction, render, write_boxes, write_labels
from reference.commands import done, habitus

FPS, SECONDS, NORMAL, CLIP = 12.5, 150, 80, 0.5
GIVEN = ("--measure", "mean", "--share", 0.05, "--skip", NORMAL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small junction with three anomalies, a model of its start, its labels in every form."""
    folder = tmp_path_factory.mktemp("evaluate")
    scene = Junction(
        seed=305,
        seconds=SECONDS,
        normal_for=NORMAL,
        anomalies_per_hour=300,
        width=160,
        height=128,
        fps=FPS,
    )
    render(scene, folder / "scene.mp4")
    write_labels(scene, folder / "labels.csv")
    write_boxes(scene, folder / "boxes.csv")
    done("extract", "scene.mp4", "-o", "scene.corpus", "--clip", CLIP, cwd=folder)
    done(
        "learn",
        "scene.corpus",
        "-o",
        "scene.model",
        "--duration",
        NORMAL,
        "--restarts",
        2,
        "--min-words",
        5,
        cwd=folder,
    )
    done("detect", "scene.corpus", "-m", "scene.model", *GIVEN, "-o", "events.jsonl", cwd=folder)
    _other_forms(folder, scene)
    return folder


def _other_forms(folder, scene):
    frames = np.zeros((scene.n_frames, 128, 160), np.uint8)
    for event in scene.truth():
        for k, left, top, right, bottom in event.boxes.tolist():
            frames[k, top:bottom, left:right] = 255
        # Masks have no holes in time, as intervals have none.
        first, last = event.boxes[[0, -1], 0]
        for k in range(first, last):
            frames[k, event.box[1], event.box[0]] = 255
    flags = frames.any(axis=(1, 2))
    (folder / "frames.txt").write_text("\n".join(map(str, flags.astype(int))))
    (folder / "masks").mkdir()
    for k, mask in enumerate(frames):
        cv2.imwrite(str(folder / "masks" / f"{k:05d}.png"), mask)


@pytest.fixture
def figures(folder, monkeypatch, capsys):
    """What `evaluate --json` says, in this very process."""

    def run(labels):
        arguments = ["evaluate", "scene.model", "scene.corpus", "-l", labels, *GIVEN, "--json"]
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["habitus", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_all_forms_of_the_same_labels_give_the_same_figures(figures):
    intervals = figures("labels.csv")
    assert intervals["n_documents"] == (SECONDS - NORMAL) / CLIP
    assert intervals["n_events"] == 3
    assert sorted(intervals["events"]["chosen"]["kinds"]) == ["breakdown", "pavement", "u-turn"]
    assert intervals["localisation"]["n_documents"] > 3
    placed = {"boxes.csv": True, "frames.txt": False, "masks": True}
    for form, has_places in placed.items():
        other = figures(form)
        assert other["documents"] == intervals["documents"], form
        assert other["n_events"] == 3
        assert (other["localisation"] is not None) == has_places


def test_a_table_and_a_picture_of_the_video_itself(folder):
    run = done(
        "evaluate",
        "scene.model",
        "scene.mp4",
        "--labels",
        "boxes.csv",
        *GIVEN,
        "--picture",
        "curves.png",
        cwd=folder,
    )
    for words in (
        "average precision",
        "area under ROC",
        "best accuracy",
        "precision at",
        "recall at",
        "chance",
        "30/h",
        "median delay",
        "u-turn",
        "least likely words",
        "average_precision_score",
        "wrote curves.png",
    ):
        assert words in run.stdout, words
    assert "nan" not in run.stdout
    assert cv2.imread(str(folder / "curves.png")) is not None


@pytest.fixture(scope="module")
def clips(folder):
    """The abnormal part of the junction as two clips, with labels and masks by frame."""
    corpus = Corpus.load(folder / "scene.corpus")
    start = np.searchsorted(np.cumsum(corpus.n_frames), NORMAL * FPS, side="right")
    middle = (start + len(corpus)) // 2
    rows, n = [], int(corpus.n_frames[:start].sum())
    flags = np.array((folder / "frames.txt").read_text().split()) == "1"
    for name, part in (("a", range(start, middle)), ("b", range(middle, len(corpus)))):
        own = corpus.take(part)
        own.save(folder / f"{name}.corpus")
        (folder / "clip-masks" / name).mkdir(parents=True)
        for frame in range(int(own.n_frames.sum())):
            if flags[n + frame]:
                rows.append(f"{name},{frame},{frame}\n")
                mask = (folder / "masks" / f"{n + frame:05d}.png").read_bytes()
                (folder / "clip-masks" / name / f"{frame}.png").write_bytes(mask)
        n += int(own.n_frames.sum())
    (folder / "clips-of.csv").write_text("clip,first_frame,last_frame\n" + "".join(rows))
    return int(flags[int(NORMAL * FPS) :].sum())


def test_several_clips_have_one_label_file(folder, clips):
    given = ("a.corpus", "b.corpus", "-l", "clips-of.csv", "--masks", "clip-masks")
    given = ("evaluate", "scene.model", *given, *GIVEN[:4])
    found = json.loads(done(*given, "--json", cwd=folder).stdout)
    frames = found["frames"]
    assert found["n_documents"] == (SECONDS - NORMAL) / CLIP
    assert (frames["n_clips"], frames["n_abnormal"]) == (2, clips)
    assert frames["pixels"]["n_frames"] == clips
    assert frames["ranking"]["roc_auc"]["value"] == pytest.approx(
        found["documents"]["roc_auc"]["value"], abs=0.1
    )
    table = done(*given, cwd=folder).stdout
    for words in ("scene.model on 2 clips", "per pixel", "not smoothed", "equal error rate"):
        assert words in table, words
    assert "Gaussian of 1.5 s" in done(*given, "--smooth", 1.5, cwd=folder).stdout


def test_events_alone_tell_what_they_can(folder, figures):
    whole = figures("boxes.csv")
    for source, more in (("scene.corpus", ()), ("scene.mp4", ("--clip", CLIP))):
        run = done(
            "evaluate",
            "events.jsonl",
            source,
            "-l",
            "boxes.csv",
            "--skip",
            NORMAL,
            *more,
            "--json",
            cwd=folder,
        )
        assert "no score per document" in run.stderr
        found = json.loads(run.stdout)
        assert found["events"]["at_rates"] == []
        assert set(found["documents"]) == {"precision", "recall"}
        for name in ("n_found", "n_false_alarms", "false_alarms_per_hour", "median_delay", "kinds"):
            assert found["events"]["chosen"][name] == whole["events"]["chosen"][name], name
        assert found["box_hits"] == whole["box_hits"]
    table = done("evaluate", "events.jsonl", "scene.corpus", "-l", "boxes.csv", cwd=folder).stdout
    assert "these events" in table
    assert "average precision" not in table


def test_labels_of_frames_fit_a_video_by_its_container_alone(folder):
    run = done(
        "evaluate",
        "events.jsonl",
        "scene.mp4",
        "-l",
        "frames.txt",
        "--clip",
        CLIP,
        "--json",
        cwd=folder,
    )
    assert json.loads(run.stdout)["n_events"] == 3
    flags = (folder / "frames.txt").read_text()
    (folder / "more.txt").write_text(f"{flags}\n0")
    for judge, more in (("events.jsonl", ("--clip", CLIP)), ("scene.model", ())):
        refused = habitus("evaluate", judge, "scene.mp4", "-l", "more.txt", *more, cwd=folder)
        n = int(SECONDS * FPS)
        assert refused.returncode == 1
        assert f"labels of {n + 1} frames, but scene.mp4 has {n}" in refused.stderr
    corpus = Corpus.load(folder / "scene.corpus")
    assert footage_of_corpus(corpus, "").n_frames.sum() == SECONDS * FPS


def test_a_report_takes_labels_of_frames_too(folder):
    done(
        "report",
        "scene.corpus",
        "-m",
        "scene.model",
        "-o",
        "report.html",
        *GIVEN,
        "--labels",
        "frames.txt",
        cwd=folder,
    )
    assert (folder / "report.html").is_file()


BAD = {
    "late.csv": "start,end\n1000,1010\n",
    "reversed.csv": "start,end\n12,10\n",
    "overlap.csv": "start,end,kind\n90,95,u-turn\n94,99,u-turn\n",
    "none.csv": "start,end\n",
    "early.csv": "start,end\n3,9\n",
    "all.csv": f"start,end\n0,{SECONDS}\n",
    "colour.csv": "start,end,colour\n1,2,red\n",
    "rate.txt": "0\n" * (25 * SECONDS),
    "ranges.csv": "clip,first_frame,last_frame\nscene,1000,1100\n",
    "others.csv": "clip,first_frame,last_frame\nx,1000,1100\n",
    "two.m": "a{end+1}.gt_frame = [1:5];\na{end+1}.gt_frame = [2:6];\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scene.model", "-l", "late.csv"), "outside the video, which runs from 0 to 150 s"),
        (("scene.model", "-l", "reversed.csv"), "must end after it starts, found 12 to 10"),
        (("scene.model", "-l", "overlap.csv"), "u-turn from 94 to 99 s overlaps the one from 90"),
        (("scene.model", "-l", "none.csv"), "no document abnormal"),
        (("scene.model", "-l", "early.csv", "--skip", 80), "no document abnormal"),
        (("scene.model", "-l", "all.csv"), "every document abnormal"),
        (("scene.model", "-l", "colour.csv"), "found the columns start, end, colour"),
        (("scene.model", "-l", "rate.txt"), "25 labels per second, 12.5 frames per second"),
        (("scene.model", "-l", "two.m"), "labels of 2 videos: choose one of them by its number"),
        (("scene.model", "-l", "two.m", "--label-line", 3), "line 3 of 2 does not exist"),
        (("scene.model", "-l", "absent.csv"), "absent.csv: cannot be read"),
        (("scene.model", "-l", "empty"), "no images"),
        (("scene.model", "-l", "labels.csv", "--skip", 1000), "to skip"),
        (("scene.model", "-l", "labels.csv", "--picture", "x.gif"), "found .gif"),
        (("scene.model", "-l", "labels.csv", "--picture", "no/such/x.png"), "cannot write"),
        (("scene.corpus", "-l", "labels.csv"), "expected a habitus model file"),
        (("absent.model", "-l", "labels.csv"), "found nothing"),
        (("labels.csv", "-l", "labels.csv"), "line 1: not an event"),
        (("scene.mp4", "-l", "labels.csv"), "neither a habitus model nor a file of events"),
        (("events.jsonl", "-l", "labels.csv", "--picture", "x.png"), "no curve to draw"),
        (("events.jsonl", "-l", "labels.csv", "--share", 0.1), "a threshold of their own"),
        (("events.jsonl", "-l", "none.csv"), "no document abnormal"),
        (("scene.model", "scene.corpus", "-l", "labels.csv"), "2 clips: to evaluate them together"),
        (("scene.model", "scene.corpus", "-l", "ranges.csv"), "several clips are called scene"),
        (("events.jsonl", "scene.corpus", "-l", "ranges.csv"), "together, give a model"),
        (("scene.model", "-l", "others.csv"), "labels of the clips x, but the footage is scene"),
        (
            ("scene.model", "-l", "labels.csv", "--masks", "masks"),
            "masks needs a model, and labels",
        ),
        (("scene.model", "-l", "labels.csv", "--smooth", 1), "smooth needs a model, and labels"),
        (("scene.model", "-l", "ranges.csv", "--smooth", -1), "0 seconds or more, found -1"),
        (("scene.model", "-l", "ranges.csv", "--masks", "absent"), "absent: not a folder"),
        (("scene.model", "-l", "ranges.csv", "--skip", 9), "nothing can be skipped"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_left(folder, monkeypatch, capsys, arguments, message):
    for name, text in BAD.items():
        (folder / name).write_text(text)
    (folder / "empty").mkdir(exist_ok=True)
    before = sorted(folder.iterdir())
    given, *others = map(str, arguments)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["habitus", "evaluate", given, "scene.corpus", *others])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("habitus: ")
    assert message in lines[0]
    assert sorted(folder.iterdir()) == before
