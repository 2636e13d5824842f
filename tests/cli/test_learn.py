"""Further footage and accepted events, from the command line and from the library."""

import json

import numpy as np
import pytest

import habitus
from habitus.rarity import counted
from habitus.scene import events_by_line
from reference.commands import done
from reference.commands import habitus as command
from reference.footage import encode, texture
from reference.two_lanes import FPS, HEIGHT, WIDTH, WRONG, two_lanes

LEARN = {
    "learning": habitus.LearningSettings(2, 2, n_restarts=2),
    "reading": habitus.ReadingSettings(duration=WRONG[0] - 2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two lanes, a model of their first minute, and what was unusual later."""
    folder = tmp_path_factory.mktemp("further")
    two_lanes(folder / "lanes.mp4")
    two_lanes(folder / "more.mp4", seconds=40)
    habitus.learn(folder / "lanes.mp4", output=folder / "lanes.model", **LEARN)
    habitus.detect(
        folder / "lanes.mp4",
        folder / "lanes.model",
        output=folder / "events.jsonl",
        alerts=2000.0,
    )
    return folder


def counts_of(path):
    return habitus.SceneModel.load(path).habits.counts


def same(one, other):
    """Whether two scenes have the same habits, to the bit."""
    if len(one.habits.accepted) != len(other.habits.accepted):
        return False
    tables = zip(one.habits.habits, other.habits.habits, strict=True)
    return all(np.array_equal(*pair) for pair in tables)


def test_a_model_is_updated_in_place_from_video_as_from_its_corpus(folder):
    model = folder / "in-place.model"
    model.write_bytes((folder / "lanes.model").read_bytes())
    before = counts_of(model)
    found = done("learn", "more.mp4", "--update", "in-place.model", cwd=folder)
    assert "note: topics and behaviours are those of the first footage" in found.stderr
    assert "habits of 104 documents" in found.stdout
    assert "wrote in-place.model" in found.stdout
    after = counts_of(model)
    more = habitus.extract(folder / "more.mp4").corpus
    scene = habitus.learn(more, update=folder / "lanes.model")
    assert scene.habits.counts.direction.tolist() == after.direction.tolist()
    assert after.n_documents == before.n_documents + len(more) == 104
    assert (after.direction >= before.direction).all()
    assert not list(folder.glob(".*parts*"))


def test_another_output_leaves_the_model_alone_and_counts_fade(folder):
    kept = (folder / "lanes.model").read_bytes()
    more = ("more.mp4", "--update", "lanes.model", "-o", "new.model", "--half-life")
    done("learn", *more, "1min", cwd=folder)
    assert (folder / "lanes.model").read_bytes() == kept
    assert counts_of(folder / "new.model").n_documents == pytest.approx(64 * 2 ** (-40 / 60) + 40)
    done("learn", *more, "14d", cwd=folder)
    expected = 64 * 2 ** (-40 / (14 * 86_400)) + 40
    assert counts_of(folder / "new.model").n_documents == pytest.approx(expected, rel=1e-12)


def test_another_camera_is_refused_unless_forced(folder):
    others = (texture(WIDTH, HEIGHT, 77) for _ in range(3 * FPS))
    encode(folder / "other.mp4", others, rate=FPS)
    arguments = ("learn", "other.mp4", "--update", "lanes.model", "-o", "other.model")
    found = command(*arguments, cwd=folder)
    assert found.returncode == 1
    assert "does not show the scene that lanes.model was learnt from" in found.stderr
    assert found.stderr.endswith("(--force)\n")
    assert not (folder / "other.model").exists()
    done(*arguments, "--force", cwd=folder)
    assert counts_of(folder / "other.model").n_documents == 67


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lanes.mp4", "-o", "x", "--half-life", "0d"), "(--half-life)\n"),
        (("more.mp4", "--update", "lanes.model", "--cell", 16), "--cell 16: the model to update"),
        (("more.mp4", "--update", "lanes.model", "--half-life", "soon"), "found 'soon'"),
        (("more.mp4", "--update", "lanes.model", "--half-life", "0d"), "(--half-life)\n"),
        (("lanes.mp4", "-o", "x", "--fleet", "lanes.model"), "expected a habitus fleet file"),
        (("more.mp4", "--update", "lanes.model", "--fleet", "a.fleet"), "(--fleet)\n"),
        (("more.mp4", "--update", "absent.model"), "absent.model: expected a habitus model file"),
        (("small.mp4", "--update", "lanes.model"), "has 64x64 pixels, the model was learnt at"),
        (("more.mp4", "--update", "bare.model", "-o", "x"), "has no habits, so it cannot be"),
    ],
)
def test_what_cannot_be_updated_is_one_line(folder, arguments, message):
    encode(folder / "small.mp4", [texture(64, 64, 0)] * 20, rate=FPS)
    scene = habitus.SceneModel.load(folder / "lanes.model")
    habitus.SceneModel(scene.model, scene.calibration).save(folder / "bare.model")
    found = command("learn", *arguments, cwd=folder)
    assert found.returncode == 1
    assert message in found.stderr
    assert found.stderr.count("\n") == 1


def test_events_are_accepted_and_taken_back(folder):
    model = folder / "told.model"
    model.write_bytes((folder / "lanes.model").read_bytes())
    known = events_by_line(folder / "events.jsonl")
    alarms = [event for event in known.values() if event.alarm]
    assert any(WRONG[0] - 1 <= event.peak <= WRONG[1] for event in alarms)
    before = habitus.SceneModel.load(model)
    found = done("accept", "events.jsonl", 1, "-m", "told.model", cwd=folder)
    told = habitus.SceneModel.load(model)
    moments = {known[1].moment, *(point.moment for point in known[1].track)}
    v, accepted = told.habits.vocabulary, told.habits.accepted  # and what two show together
    assert {tuple(each.votes.codes(v)) for each in accepted[: len(moments)]} == moments
    assert tuple(accepted[0].votes.codes(v)) == known[1].moment
    n = len(told.silenced(alarms))
    assert f"{counted(n, 'alarm')} of events.jsonl would no longer be raised" in found.stdout
    assert not same(told, before)
    done("accept", "events.jsonl", 1, "-m", "told.model", "--undo", cwd=folder)
    assert same(habitus.SceneModel.load(model), before)
    again = command("accept", "events.jsonl", 1, "-m", "told.model", "--undo", cwd=folder)
    assert again.returncode == 1
    assert "this moment was not accepted" in again.stderr


def test_an_event_that_is_not_there_is_refused(folder):
    found = command("accept", "events.jsonl", 99, "-m", "lanes.model", cwd=folder)
    assert found.returncode == 1
    assert "events.jsonl has no event on line 99" in found.stderr
    with pytest.raises(habitus.InvalidInputError, match="line 0") as error:
        habitus.accept(folder / "events.jsonl", [0], folder / "lanes.model")
    assert error.value.parameter == "numbers"


def test_lines_are_numbered_as_in_the_file(folder, tmp_path):
    (line, *_) = (folder / "events.jsonl").read_text().splitlines()
    later, earlier = json.loads(line), json.loads(line)
    later["start"], earlier["start"] = 50.0, 5.0
    path = tmp_path / "events.jsonl"
    path.write_text(f"{json.dumps(later)}\n\n{json.dumps(earlier)}\n")
    assert {n: event.start for n, event in events_by_line(path).items()} == {1: 50.0, 3: 5.0}
