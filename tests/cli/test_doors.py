"""Options, labels, masks and names that nobody should give: one line, exit code 1 or 2."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from habitus import Corpus, HabitusError, Vocabulary
from habitus.cli import command_for
from habitus.evaluation.label_files import parse_labels
from habitus.files import FileFormat
from habitus.scene import detect_events, learn_scene, read_events
from habitus.video.mask import watched_cells
from reference import footage
from reference.commands import COMMAND
from reference.processes import LONG

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
    given = [str(word) for word in words]
    done = CliRunner().invoke(command_for(given), given, catch_exceptions=False)
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


@pytest.mark.parametrize("command", ["detect", "evaluate", "extract", "learn"])
def test_no_process_is_not_all_of_them(monkeypatch, folder, command):
    code, said = run(monkeypatch, folder, *COMMANDS[command], "--jobs=0")
    assert (code, said.count("\n")) == (1, 1), said
    assert "at least 1, or -1 for one per processor, found 0 (--jobs)" in said


FORGED = {
    "a frame that the cells do not fill": ({"height": 65535}, None, "does not fit a height of"),
    "a large picture": ({}, (6000, 6000, 3), "height = 1 to 32 in place of 6000"),
    "a wide picture": ({}, (32, 60000, 3), "width = 1 to 32 in place of 60000"),
    "a picture without height": ({}, (0, 32, 3), "height = 1 to 32 in place of 0"),
    "a picture without width": ({}, (32, 0, 3), "width = 1 to 32 in place of 0"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_sizes_are_refused_before_anything_is_drawn(monkeypatch, folder, forgery):
    frame, shape, message = FORGED[forgery]
    for kind, name in (("corpus", "corpus"), ("model", "scene.model")):
        header, tensors = FileFormat(kind, 9).read(folder / name)
        header["vocabulary"] |= frame
        if shape is not None:
            tensors["picture"] = np.zeros(shape, dtype=np.uint8)
        forged = f"forged.{kind}"
        FileFormat(kind, 4).write(folder / forged, header, tensors)
        rest = ("corpus", "-m", forged) if kind == "model" else (forged, "-m", "scene.model")
        for words in (("show", forged), ("report", *rest, "-o", "page.html")):
            code, said = run(monkeypatch, folder, *words)
            assert (code, said.count("\n")) == (1, 1), said
            assert message in said


def test_a_tall_scene_of_many_topics_is_drawn_in_a_picture_of_a_size(monkeypatch, folder):
    words = [np.arange(40), np.arange(20, 60)] * 20
    Corpus.from_word_ids(words, vocabulary=Vocabulary(1000, 1)).save(folder / "tall.corpus")
    quick = ("--topics=50", "--behaviours=2", "--restarts=1", "--iterations=2")
    for call in (
        ("learn", "tall.corpus", "-o", "tall.model", *quick),
        ("show", "tall.model", "-o", "tall.png"),
        ("report", "tall.corpus", "-m", "tall.model", "-o", "tall.html"),
    ):
        code, said = run(monkeypatch, folder, *call)
        assert code == 0, said
    with Image.open(folder / "tall.png") as picture:
        assert max(picture.size) < 12_000


@pytest.mark.parametrize("value", ["0", "-1", "nan", "1e6"])
def test_clips_of_no_length(monkeypatch, folder, value):
    for more in ((), ("--duration", "1")):
        code, said = run(monkeypatch, folder, *COMMANDS["extract"], f"--clip={value}", *more)
        assert (code, said.count("\n")) == (1, 1), said
        assert f"above 0 and at most 86400 seconds, found {float(value):g} (--clip)" in said


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
    "power.npy": npy(
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000, 1" + "0" * 9 + ")}"
    ),
    "digits.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1" + "0" * 30 + ",)}"),
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


OUTSIDE = {
    "a label that ends later": ("start,end\n10,62\n", "from 10 to 62 s is outside the video"),
    "a label after the end": ("start,end\n60,60.5\n", "from 60 to 60.5 s is outside the video"),
    "a box beyond the frame": (
        "start,end,left,top,right,bottom\n10,14,0,0,34,20\n",
        "box reaches to 34,20, outside the frame of 32x32 pixels",
    ),
    "a sighting before the start": (
        "time,event,left,top,right,bottom\n-1,a,0,0,9,9\n",
        "line 2: time must be from 0",
    ),
}


@pytest.mark.parametrize("kind", OUTSIDE)
def test_labels_outside_the_video_or_its_frame(monkeypatch, folder, kind):
    text, message = OUTSIDE[kind]
    (folder / "outside.csv").write_text(text)
    code, said = run(monkeypatch, folder, "evaluate", "scene.model", "corpus", "-l", "outside.csv")
    assert (code, said.count("\n")) == (1, 1), said
    assert message in said


def test_labels_may_end_a_document_and_a_pixel_beyond(monkeypatch, folder):
    (folder / "edge.csv").write_text("start,end,left,top,right,bottom\n57.5,61,0,0,33,33\n")
    code, said = run(monkeypatch, folder, "evaluate", "scene.model", "corpus", "-l", "edge.csv")
    assert code == 0, said


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((-9.0, -4.0), "an event from -9 to -4 s is outside"),
        ((50.0, 62.0), "an event from 50 to 62 s is outside"),
        ((70.0, 71.0), "an event from 70 to 71 s is outside"),
        ((9.0, -4.0), "must end after it starts"),
        ((9.0, 9.0), "must end after it starts"),
    ],
)
def test_events_outside_the_video(monkeypatch, folder, times, message):
    event = json.loads((folder / "events.jsonl").read_text().splitlines()[0])
    event |= {"start": times[0], "end": times[1], "peak": times[0]}
    (folder / "outside.jsonl").write_text(json.dumps(event))
    words = ("evaluate", "outside.jsonl", "corpus", "-l", "labels.csv")
    code, said = run(monkeypatch, folder, *words)
    assert (code, said.count("\n")) == (1, 1), said
    assert message in said


@pytest.mark.parametrize(
    "words",
    [
        (*COMMANDS["extract"], "--preview", "p.txt"),
        (*COMMANDS["detect"], "--annotate", "p"),
    ],
)
def test_films_are_named_as_films(monkeypatch, folder, words):
    code, said = run(monkeypatch, folder, *words)
    assert (code, said.count("\n")) == (1, 1), said
    assert "a film's name ends in .mp4" in said


POLYGONS = ["0,0 1e30,0 9,9", "0,0 nan,0 9,9", "0,0 inf,0 9,9", "0,0 9,9", "," * 5000, "1,2 " * 2]
POLYGONS += ["90,90 99,90 99,99", "-9,0 -1,0 -1,9", "0,0 9,9 4,4", "5,5 5,5 5,5"]


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


WANTS = {
    "a full disk to write to": (
        "exec 1> /dev/full",
        ("show", "scene.model", "--json"),
        "cannot go on: No space left on device",
    ),
    "a full disk and nothing to write": (
        "exec 1> /dev/full",
        ("detect", "corpus", "-m", "scene.model", "--threshold=-1e9", "--json"),
        "cannot go on: No space left on device",
    ),
    "ten open files": (
        "ulimit -n 10",
        ("extract", "scene.mp4", "-o", "want.corpus", "--jobs", "2"),
        "Too many open files",
    ),
    "little memory": (
        "ulimit -v 500000",
        ("learn", "corpus", "-o", "want.model"),
        "limited to 488 MB, expected at least 1280 MB",
    ),
    "no folder": (
        "mkdir gone; cd gone; rmdir ../gone",
        ("show", "scene.model", "--json"),
        "the current folder was deleted",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits and /dev/full are those of Linux")
@pytest.mark.parametrize("want", WANTS)
def test_what_the_machine_does_not_give_is_told_in_a_line(folder, want):
    before, words, message = WANTS[want]
    script = f'{before}; exec "$@"'
    done = subprocess.run(
        ["/bin/bash", "-c", script, "-", *COMMAND, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert message in done.stderr


def test_a_closed_standard_output_is_no_error(folder):
    words = ("detect", "corpus", "-m", "scene.model", "--threshold=-1e9", "--json")
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec 1>&-; exec "$@"', "-", *COMMAND, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_sixteen_open_files_are_enough(folder):
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 16; exec "$@"', "-", *COMMAND, *COMMANDS["extract"]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
    )
    assert done.returncode == 0, done.stderr
