"""Options, labels, masks and names that nobody should give: one line, exit code 1 or 2."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from habitus import Corpus, HabitusError, Vocabulary
from habitus.anomaly import detect_events, learn_scene, read_events
from habitus.cli.main import app
from habitus.evaluation.label_files import parse_labels
from habitus.video.mask import watched_cells
from reference import footage

GRID = Vocabulary(4, 4, directions=12, speeds=16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doors")
    rng = np.random.default_rng(0)
    words = [rng.choice(GRID.n_words, 30) for _ in range(60)]
    corpus = Corpus.from_word_ids([np.repeat(own, 2) for own in words], vocabulary=GRID)
    corpus.save(folder / "corpus")
    scene = learn_scene(corpus, n_topics=2, n_behaviours=2, n_iterations=3, random_state=0)
    scene.save(folder / "scene.model")
    found = detect_events(scene.detector(share=0.1), corpus, source="corpus")
    assert found.events
    (folder / "events.jsonl").write_text("".join(f"{event.line()}\n" for event in found.events))
    (folder / "labels.csv").write_text("start,end\n10,14\n")
    footage.encode(folder / "scene.mp4", footage.moving_square(20))
    return folder


def run(monkeypatch, folder, *words):
    """Return the exit code and what was printed; any exception but an exit fails the test."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return done.exit_code, done.output


COMMANDS = {
    "detect": ("detect", "corpus", "-m", "scene.model"),
    "evaluate": ("evaluate", "scene.model", "corpus", "-l", "labels.csv"),
    "extract": ("extract", "scene.mp4", "-o", "new.corpus"),
    "learn": ("learn", "corpus", "-o", "new.model"),
    "watch": ("watch", "scene.mp4", "-m", "scene.model"),
}
OPTIONS = {
    "detect": ["--alerts-per-day", "--share", "--threshold", "--skip", "--fps", "--timeout"],
    "evaluate": ["--smooth", "--skip", "--clip"],
    "extract": ["--fps", "--clip", "--duration", "--timeout"],
    "learn": ["--min-words", "--duration", "--fps"],
    "watch": ["--patience", "--fps", "--threshold"],
}
LARGE = ["--topics", "--behaviours", "--restarts", "--iterations", "--samples", "--burn-in"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
@pytest.mark.parametrize(
    ("command", "option"), [(name, each) for name, own in OPTIONS.items() for each in own]
)
def test_numbers_that_are_none(monkeypatch, capfd, folder, command, option, value):
    code, said = run(monkeypatch, folder, *COMMANDS[command], f"{option}={value}")
    said += capfd.readouterr().err  # `watch` writes to the descriptor itself
    assert code == 1
    assert said.startswith("habitus: ")
    assert f"({option})" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", LARGE)
@pytest.mark.parametrize("value", ["0", "-1", "9" * 20, "9" * 5000])
def test_numbers_beyond_all_bounds(monkeypatch, folder, option, value):
    code, said = run(monkeypatch, folder, *COMMANDS["learn"], f"{option}={value}")
    assert code in (1, 2)
    assert option in said


KINDS = ["[/b]", "[bold]x", "\x1b[2J\x1b[31m", "a\u202eb", ":smile:", "$\\frac$ $x"]


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_labels_are_shown_and_not_obeyed(monkeypatch, folder, kind):
    (folder / "kinds.csv").write_text(f'start,end,kind\n10,14,"{kind}"\n', encoding="utf-8")
    code, said = run(monkeypatch, folder, "evaluate", "scene.model", "corpus", "-l", "kinds.csv")
    assert code == 0
    assert "\x1b" not in said
    assert "\u202e" not in said
    shown = kind.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown in said


@pytest.mark.parametrize("name", ["[b]a.csv", "\x1b[2J.csv", "a\nb.csv", "$\\frac$.csv"])
def test_names_of_files_are_shown_and_not_obeyed(monkeypatch, folder, name):
    for words in (("evaluate", "scene.model", "corpus", "-l", name), ("show", name)):
        code, said = run(monkeypatch, folder, *words)
        assert code == 1
        assert said.count("\n") == 1
        assert "\x1b" not in said
        assert name.replace("\x1b", "\\x1b").replace("\n", "\\n") in said


@pytest.mark.parametrize("name", ["a" * 300, "b\udcff", "x/" * 3000])
def test_names_that_no_file_has(monkeypatch, folder, name):
    for words in (
        ("evaluate", "scene.model", "corpus", "-l", name),
        ("evaluate", name, "corpus", "-l", "labels.csv"),
        ("detect", name, "-m", "scene.model"),
        ("detect", "corpus", "-m", name),
        ("detect", "corpus", "-m", "scene.model", "-o", name),
        ("extract", name, "-o", "new.corpus"),
        ("accept", name, "1", "-m", "scene.model"),
        ("show", name),
    ):
        code, said = run(monkeypatch, folder, *words)
        assert (code, said.count("\n")) == (1, 1), words[0]
        assert "too long" in said or "not UTF-8" in said


def test_a_dollar_in_a_name_starts_no_formula(monkeypatch, folder):
    (folder / "$a_$^.corpus").write_bytes((folder / "corpus").read_bytes())
    code, said = run(monkeypatch, folder, "show", "$a_$^.corpus", "-o", "shown.png")
    assert code == 0, said


def test_an_empty_model_is_not_a_file_without_events(monkeypatch, folder):
    (folder / "empty.model").write_bytes(b"")
    code, said = run(monkeypatch, folder, "evaluate", "empty.model", "corpus", "-l", "labels.csv")
    assert (code, "neither a model nor events" in said) == (1, True)
    (folder / "empty.jsonl").write_bytes(b"")
    code, said = run(monkeypatch, folder, "evaluate", "empty.jsonl", "corpus", "-l", "labels.csv")
    assert (code, "0 of 1" in said) == (0, True)


def npy(header, body=b"\0" * 8):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + body


LABELS = {
    "huge.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (10**15,)}"),
    "large.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000000,)}"),
    "negative.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-8,)}"),
    "product.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-2, -4)}"),
    "object.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
    "record.npy": npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}"),
    "nested.npy": npy("(" * 5000),
    "literal.npy": npy("{'descr': None, 'fortran_order': 3, 'shape': 'x'}"),
    "short.npy": b"\x93NUMPY",
    "none.npy": b"",
    "frames.txt": b"1:100000000000",
    "digits.txt": b"1:" + b"9" * 5000,
    "matlab.m": b"TestVideoFile{end+1}.gt_frame = [1:99999999999999];",
    "clips.csv": b"clip,first_frame,last_frame\na,0," + b"9" * 5000,
    "other.csv": "clip,first_frame,last_frame\na,0,\u0663".encode(),
    "power.csv": "clip,first_frame,last_frame\na,0,\u00b2".encode(),
    "late.csv": b"start,end\n1,1e30",
    "nan.csv": b"start,end\nnan,nan",
    "clip.csv": b"clip,abnormal\nnan,1",
    "box.csv": b"start,end,left,top,right,bottom\n1,2,0,0,1e30,1e30",
    "track.csv": b"time,event,left,top,right,bottom\ninf,a,0,0,1,1",
    "bytes.csv": b"\xff\xfe\x00",
    "quote.csv": b'start,end\n"1,2',
    "zero.csv": b"start,end\n1,2\0",
    "field.csv": b"start,end,kind\n1,2," + b"x" * 200_000,
    "empty.csv": b"",
    "blank.csv": b"\n\n",
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_that_make_no_sense(tmp_path, name):
    (tmp_path / name).write_bytes(LABELS[name])
    with pytest.raises(HabitusError) as caught:
        parse_labels(tmp_path / name)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < len(str(tmp_path)) + 400


POLYGONS = ["0,0 1e30,0 9,9", "0,0 nan,0 9,9", "0,0 inf,0 9,9", "0,0 9,9", "," * 5000, "1,2 " * 2]


@pytest.mark.parametrize("text", [*POLYGONS, "a" * 5000, "a\0b", "", "b\udcff"])
def test_masks_that_make_no_sense(text):
    with pytest.raises(HabitusError) as caught:
        watched_cells(Vocabulary(2, 3), mask=text)
    assert caught.value.parameter == "mask"
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", b"BM" + b"\xff" * 60, b"P5 99999 99999 1"]
)
def test_pictures_that_are_none(tmp_path, data):
    (tmp_path / "mask.png").write_bytes(data)
    with pytest.raises(HabitusError, match="not an image"):
        watched_cells(Vocabulary(2, 3), mask=str(tmp_path / "mask.png"))


FIELDS = [
    "start",
    "peak",
    "normality",
    "behaviour",
    "expected",
    "boxes",
    "words",
    "surprise",
    "version",
]
NUMBERS = [None, True, "1", [], {}, 1e400, -1e400, 10**400]


@pytest.mark.parametrize("name", FIELDS)
def test_events_that_make_no_sense(folder, tmp_path, name):
    event = json.loads((folder / "events.jsonl").read_text().splitlines()[0])
    path = tmp_path / "events.jsonl"
    for value in NUMBERS:
        if value == [] and isinstance(event[name], list):
            continue
        path.write_text(json.dumps({**event, name: value}))
        with pytest.raises(HabitusError, match="line 1: not an event") as caught:
            read_events(path)
        assert len(str(caught.value)) < len(str(path)) + 250


@pytest.mark.parametrize("line", ["[" * 100_000, "9" * 5000, '{"habitus": "event", "version": 1'])
def test_lines_that_make_no_sense(tmp_path, line):
    (tmp_path / "events.jsonl").write_text(line)
    with pytest.raises(HabitusError, match="line 1: not an event"):
        read_events(tmp_path / "events.jsonl")


def test_an_event_says_nothing_that_a_terminal_obeys(monkeypatch, folder):
    first, *_ = read_events(folder / "events.jsonl")
    odd = replace(first, explanation="[/b]\x1b[2J", source="\x1b[31m")
    (folder / "odd.jsonl").write_text(odd.line())
    code, said = run(monkeypatch, folder, "evaluate", "odd.jsonl", "corpus", "-l", "labels.csv")
    assert code == 0, said
    assert "\x1b" not in said
