"""The public face: one call per command, values in and out, nothing printed."""

import ast
import inspect
import json
import re
import threading
from dataclasses import is_dataclass, replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import habitus
from habitus import pipeline
from habitus.cli import command_for
from habitus.cli.options import plain
from habitus.ingest.clips import DocumentSettings
from habitus.ingest.extraction import extract_corpus
from habitus.site import watching
from habitus.video import Source
from habitus.web import server
from reference.commands import done
from reference.commands import habitus as command
from reference.two_lanes import WRONG, two_lanes

LEARN = {
    "learning": habitus.LearningSettings(2, 2, n_restarts=2),
    "reading": habitus.ReadingSettings(duration=WRONG[0] - 2),
}
JUDGE = {"alerts": 144.0}
"""What a minute of training can tell."""


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    return str(two_lanes(tmp_path_factory.mktemp("face") / "lanes.mp4"))


@pytest.fixture(scope="module")
def scene(lanes):
    return habitus.learn(lanes, **LEARN)


def test_every_command_is_a_function_of_the_library():
    commands = {command.callback.__name__ for command in command_for().registered_commands}
    assert commands <= set(habitus.__all__)
    homes = {"serve": server, "watch": watching}
    for name in commands:
        assert getattr(habitus, name) is getattr(homes.get(name, pipeline), name)
        assert "Parameters\n" in inspect.getdoc(getattr(habitus, name))


def defaults_of(function):
    """Defaults of the parameters of a function, those of settings one by one."""
    found = {}
    unsaid = {"documents": habitus.DocumentSettings(), "alerts": habitus.AlertSettings()}
    for name, parameter in inspect.signature(function).parameters.items():
        value = parameter.default if parameter.default is not None else unsaid.get(name)
        found |= vars(value) if is_dataclass(value) else {name: value}
    return found


def test_a_command_has_the_defaults_of_its_function():
    shown = {"as_json", "train", "methods", "topics", "behaviours"}  # another form of the same
    for registered in command_for().registered_commands:
        command = registered.callback
        library = defaults_of(getattr(habitus, command.__name__))
        for name, option in inspect.signature(command).parameters.items():
            if name in library and name not in shown and option.default is not option.empty:
                assert plain(option.default) == library[name], (command.__name__, name)


def raised_texts():
    for file in Path(habitus.__file__).parent.rglob("*.py"):
        if "cli" not in file.parts:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise):
                    for part in ast.walk(node):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield file.name, part.value


def test_no_message_of_the_library_names_a_flag_or_a_command():
    texts = list(raised_texts())
    assert len(texts) > 300
    commands = "|".join(
        registered.callback.__name__ for registered in command_for().registered_commands
    )
    named = re.compile(rf"(?<![\w-])--[a-z]|`?habitus ({commands})\b")
    assert [(file, text) for file, text in texts if named.search(text)] == []


def test_every_public_name_is_there():
    assert dir(habitus) == sorted(habitus.__all__)
    assert set(habitus.__all__) < set(habitus._HOMES)
    for name in habitus._HOMES:
        assert getattr(habitus, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = habitus.nothing


def test_paths_as_strings_are_enough_and_nothing_is_printed(lanes, tmp_path, capfd):
    reports = []
    corpus, notes = habitus.extract(
        [lanes], reading=habitus.ReadingSettings(jobs=2), progress=reports.append
    )
    again = habitus.extract(
        lanes, output=tmp_path / "lanes.corpus", reading=habitus.ReadingSettings(jobs=1)
    ).corpus
    assert (corpus.counts != again.counts).nnz == 0
    assert notes == []
    assert {report.stage for report in reports} == {"extracting"}
    assert reports[-1].done <= reports[-1].total
    loaded = habitus.Corpus.load(tmp_path / "lanes.corpus")
    assert (corpus.counts != loaded.counts).nnz == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lanes.corpus"]
    assert capfd.readouterr() == ("", "")


def test_learning_and_detecting_in_three_lines(lanes, scene, tmp_path, capfd):
    stages = []
    detection = habitus.detect(
        lanes,
        scene,
        output=tmp_path / "events.jsonl",
        scores=tmp_path / "scores.csv",
        progress=lambda report: stages.append(report.stage),
        **JUDGE,
    )
    (event,) = detection.events
    assert WRONG[0] - 1 <= event.start < event.end <= WRONG[1] + 1
    assert event.thumbnail is not None
    assert (tmp_path / event.thumbnail).is_file()
    (line,) = (tmp_path / "events.jsonl").read_text().splitlines()
    assert json.loads(line)["thumbnail"] == event.thumbnail
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == len(detection.corpus) + 1
    assert set(stages) == {"extracting"}
    assert capfd.readouterr() == ("", "")


def test_a_command_gives_what_the_library_gives(lanes, scene, tmp_path):
    options = ["--topics", "2", "--behaviours", "2", "--restarts", "2", "--duration", "64"]
    model = str(tmp_path / "lanes.model")
    for arguments in (
        ["learn", lanes, "-o", model, *options],
        ["detect", lanes, "-m", model, "--alerts-per-day", "144", "-o", tmp_path / "events"],
    ):
        done(*arguments, cwd=tmp_path)
    detection = habitus.detect(lanes, scene, **JUDGE)
    (written,) = map(json.loads, (tmp_path / "events").read_text().splitlines())
    (event,) = detection.events
    expected = event.to_json() | {"thumbnail": written["thumbnail"]}
    assert written == json.loads(json.dumps(expected))
    loaded = habitus.SceneModel.load(model)
    for one, other in zip(loaded.model.parameters_, scene.model.parameters_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_large_corpus_files_are_shards_and_give_the_same_model(tmp_path, monkeypatch):
    parts = []
    for seed in range(3):
        rng, vocabulary = np.random.default_rng(seed), habitus.Vocabulary(6, 8, speeds=2)
        counts = rng.poisson(0.3, (50, vocabulary.n_words))
        parts.append(tmp_path / f"{seed}.corpus")
        habitus.Corpus(counts, vocabulary=vocabulary).save(parts[-1])
    options = {"learning": habitus.LearningSettings(2, 2, n_restarts=2, n_iterations=5)}
    joined = habitus.learn(parts, output=tmp_path / "joined.model", **options)
    assert isinstance(joined.corpus, habitus.Corpus)
    monkeypatch.setattr("habitus.inputs.LARGE", 1000)
    sharded = habitus.learn(parts, output=tmp_path / "sharded.model", **options)
    assert isinstance(sharded.corpus, habitus.ShardedCorpus)
    assert sharded.summary() == joined.summary()
    assert (tmp_path / "joined.model").read_bytes() == (tmp_path / "sharded.model").read_bytes()
    part = habitus.learn(parts, reading=habitus.ReadingSettings(duration=20), **options)
    assert len(part.corpus) == 60
    parts[1].unlink()
    with pytest.raises(habitus.FileError, match="expected a habitus corpus file, found nothing"):
        sharded.corpus.joined()


def test_a_corpus_in_memory_serves_as_well(lanes, scene):
    corpus, _ = habitus.extract(lanes)
    again = habitus.learn(corpus, **LEARN)
    for one, other in zip(again.model.parameters_, scene.model.parameters_, strict=True):
        np.testing.assert_array_equal(one, other)
    found = habitus.detect(corpus, scene, **JUDGE)
    assert [event.start for event in found.events] == [
        event.start for event in habitus.detect(lanes, scene, **JUDGE).events
    ]
    with pytest.raises(habitus.InvalidInputError, match="needs the video itself"):
        habitus.detect(corpus, scene, annotate="x.mp4", **JUDGE)


def test_a_model_of_small_frames_as_they_are_judges_them_so(lanes, tmp_path):
    """A corpus may not say how frames were scaled: its vocabulary does."""
    found = extract_corpus([Source(lanes)], DocumentSettings(words="coarse", scale=1)).corpus
    settings = {"clip": 1.0, "cell": 8, "motion": "cells", "region": None}
    corpus = replace(found, settings=settings)
    model, judge = (
        tmp_path / "small.model",
        {"alerts": habitus.AlertSettings(500.0, measure="tail")},
    )
    habitus.learn(corpus, output=model, **LEARN)
    detection, expected = (habitus.detect(source, model, **judge) for source in (lanes, corpus))
    assert detection.corpus.vocabulary.coarse == corpus.vocabulary
    assert detection.normality.tolist() == expected.normality.tolist()
    (event,) = detection.events
    assert WRONG[0] - 1 <= event.start < event.end <= WRONG[1] + 1
    happenings = list(habitus.watch(lanes, model, **judge))
    (ended,) = (h for h in happenings if isinstance(h, habitus.EventEnded))
    assert ended.event.normality == event.normality


def test_a_page_and_a_summary(lanes, scene, tmp_path):
    page = tmp_path / "page.html"
    detection = habitus.report(lanes, scene, page, commands=["a <command>"], **JUDGE)
    text = page.read_text()
    assert detection.events[0].explanation.split(",")[0][1:] in text
    assert "a &lt;command&gt;" in text
    scene.save(tmp_path / "lanes.model")
    summary = habitus.show(tmp_path / "lanes.model", output=tmp_path / "lanes.png")
    assert summary == habitus.summarise_model(scene.model)
    assert (tmp_path / "lanes.png").stat().st_size > 10_000


def test_results_show_themselves(lanes, scene):
    detection = habitus.detect(lanes, scene, **JUDGE)
    known = r"SceneModel\(2 behaviours, 2 topics, habits of \d+ documents\)"
    assert re.fullmatch(known, repr(scene))
    assert repr(detection).endswith(f": {detection.summary()})")
    (event,) = detection.events
    shown = replace(detection, source="<b>.mp4")._repr_html_()
    assert "<b>" not in shown
    assert event.explanation in unescape(shown)
    assert shown.count("<tr>") == len(detection.moments)
    assert shown.count("<td>alarm</td>") == 1


def test_watching_a_file_gives_its_event_and_ends(lanes, scene, tmp_path):
    events = tmp_path / "events.jsonl"
    happenings = list(habitus.watch(lanes, scene, output=events, **JUDGE))
    started = [h for h in happenings if isinstance(h, habitus.EventStarted)]
    ended = [h for h in happenings if isinstance(h, habitus.EventEnded)]
    assert len(started) == len(ended) == len(events.read_text().splitlines()) == 1
    assert WRONG[0] - 1 <= ended[0].event.start < ended[0].event.end <= WRONG[1] + 1
    assert ended[0].event.local_time is None
    stop = threading.Event()
    stop.set()
    assert (
        list(habitus.watch(lanes, scene, alerts=habitus.AlertSettings(share=0.02), stop=stop)) == []
    )


def test_a_part_of_the_footage_can_be_read(lanes, scene, tmp_path):
    part = habitus.ReadingSettings(skip=4, duration=9)
    corpus = habitus.extract(lanes, output=tmp_path / "a.corpus").corpus
    assert habitus.extract(lanes, reading=part).corpus.times.tolist() == [4, 5, 6, 7, 8]
    for source in (lanes, tmp_path / "a.corpus", corpus):
        assert habitus.detect(source, scene, reading=part).corpus.times.tolist() == [4, 5, 6, 7, 8]
    longer = habitus.ReadingSettings(skip=20, duration=60)
    learning = habitus.LearningSettings(2, 2, n_restarts=1, n_iterations=2)
    for source in (tmp_path / "a.corpus", corpus):
        learnt = habitus.learn(source, reading=longer, learning=learning)
        assert learnt.corpus.times[[0, -1]].tolist() == [20, 59]


def test_evaluating_against_labels(lanes, scene, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text(f"start,end,kind\n{WRONG[0]},{WRONG[1]},wrong way\n")
    found = habitus.evaluate(scene, lanes, labels, **JUDGE)
    assert found.chosen.found.tolist() == [True]
    assert found.documents["roc_auc"].value > 0.9
    (tmp_path / "none.jsonl").touch()
    part = habitus.ReadingSettings(duration=9)
    with pytest.raises(habitus.InvalidInputError, match="events does not use duration"):
        habitus.evaluate(tmp_path / "none.jsonl", lanes, labels, reading=part)


@pytest.mark.parametrize(
    ("call", "message", "parameter"),
    [
        (lambda v, s: habitus.extract([]), "at least one source", None),
        (
            lambda v, s: habitus.extract(v, reading=habitus.ReadingSettings(duration=0)),
            "above 0 seconds",
            "duration",
        ),
        (lambda v, s: habitus.extract(v, start="noon"), "date and time such as", "start"),
        (lambda v, s: habitus.extract([v, v], start="2026-11-16"), "of 2 sources", "start"),
        (lambda v, s: habitus.extract(v, output="/nowhere/x"), "in a folder that exists", None),
        (
            lambda v, s: habitus.detect(v, s, alerts=habitus.AlertSettings(share=2.0)),
            "between 0 and 1",
            "share",
        ),
        (
            lambda v, s: habitus.detect(v, s, reading=habitus.ReadingSettings(skip=500.0)),
            "shorter than the 500 s",
            "skip",
        ),
        (
            lambda v, s: habitus.learn(v, learning=habitus.LearningSettings(learning="magic")),
            "magic",
            "learning",
        ),
        (lambda v, s: habitus.parse_duration("soon"), "found 'soon'", None),
        (
            lambda v, s: list(habitus.watch(v, s, reading=habitus.ReadingSettings(skip=3))),
            "watching does not use skip",
            "skip",
        ),
        (
            lambda v, s: habitus.tune(v, learning=habitus.LearningSettings(n_topics=3)),
            "tuning does not use n_topics",
            "n_topics",
        ),
        (
            lambda v, s: habitus.tune(v, alerts=habitus.AlertSettings(threshold=-3.0)),
            "tuning does not use threshold",
            "threshold",
        ),
        (
            lambda v, s: habitus.compare(v, "a.csv", reading=habitus.ReadingSettings(duration=9)),
            "a comparison does not use duration",
            "duration",
        ),
        (
            lambda v, s: habitus.compare(v, "a.csv", learning=habitus.LearningSettings(prior="H")),
            "a comparison does not use prior",
            "prior",
        ),
        (
            lambda v, s: habitus.learn(v, update=s, learning=habitus.LearningSettings(seed=1)),
            "a model to update does not use seed",
            "seed",
        ),
        (
            lambda v, s: habitus.learn(v, update=s, documents=habitus.DocumentSettings()),
            "knows how its documents are made",
            None,
        ),
        (
            lambda v, s: habitus.learn_archive(reading=habitus.ReadingSettings(fps=5)),
            "an archive does not use fps",
            "fps",
        ),
    ],
)
def test_errors_name_the_parameter_and_no_flag(lanes, scene, call, message, parameter):
    with pytest.raises(habitus.HabitusError, match=message) as raised:
        call(lanes, scene)
    assert "--" not in str(raised.value)
    if parameter is not None:
        assert raised.value.parameter == parameter


def test_the_command_line_adds_the_flag(lanes, scene, tmp_path):
    scene.save(tmp_path / "lanes.model")
    arguments = ["detect", lanes, "-m", tmp_path / "lanes.model", "--share", "2"]
    run = command(*arguments, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == "habitus: share must lie between 0 and 1, found 2 (--share)\n"
