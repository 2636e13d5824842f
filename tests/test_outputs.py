"""Outputs: never in place of an input, of a device or of somebody else's file."""

import os
import shutil
import stat
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest

import habitus
from habitus.files import MARK, is_ours
from reference.commands import habitus as command
from reference.two_lanes import two_lanes

LEARN = {"learning": habitus.LearningSettings(2, 2, n_restarts=1, n_iterations=5)}
FOREIGN = "somebody's own\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A video, its documents, a model of them, and events."""
    folder = tmp_path_factory.mktemp("outputs")
    two_lanes(folder / "a.mp4")
    corpus = habitus.extract(folder / "a.mp4", output=folder / "a.corpus").corpus
    habitus.learn(corpus, output=folder / "a.model", **LEARN)
    habitus.detect(
        corpus,
        folder / "a.model",
        output=folder / "a.jsonl",
        alerts=habitus.AlertSettings(share=0.05),
    )
    (folder / "a.csv").write_text("start,end\n66,69\n")
    cv2.imwrite(str(folder / "a.png"), np.zeros((144, 192), dtype=np.uint8))
    (folder / "images").mkdir()
    for n in range(12):
        noise = np.random.default_rng(n).integers(255, size=(144, 192), dtype=np.uint8)
        cv2.imwrite(str(folder / "images" / f"{n}.png"), noise)
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A folder of its own with all of them, and we are in it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "link").symlink_to("a.mp4")
    (tmp_path / "hard").hardlink_to(tmp_path / "a.mp4")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ONTO_AN_INPUT = {
    "the video": partial(habitus.extract, "a.mp4", output="a.mp4"),
    "by another path": partial(habitus.extract, "a.mp4", output="images/../a.mp4"),
    "by a symbolic link": partial(habitus.extract, "a.mp4", output="link"),
    "by a hard link": partial(habitus.extract, "a.mp4", output="hard"),
    "one of several": partial(habitus.extract, ["a.mp4", "link"], output="hard"),
    "an image": partial(
        habitus.extract, "images", reading=habitus.ReadingSettings(fps=4), output="images/3.png"
    ),
    "of a pattern": partial(
        habitus.extract,
        "images/*.png",
        reading=habitus.ReadingSettings(fps=4),
        output="images/3.png",
    ),
    "the mask": partial(
        habitus.extract, "a.mp4", documents=habitus.DocumentSettings(mask="a.png"), output="a.png"
    ),
    "a preview": partial(habitus.extract, "a.mp4", output="b.corpus", preview="a.mp4"),
    "the documents": partial(habitus.learn, "a.corpus", output="a.corpus", **LEARN),
    "the region": partial(
        habitus.learn,
        "a.mp4",
        documents=habitus.DocumentSettings(region="a.png"),
        output="a.png",
        **LEARN,
    ),
    "the model": partial(habitus.detect, "a.mp4", "a.model", output="a.model"),
    "footage": partial(habitus.detect, "a.corpus", "a.model", output="a.corpus"),
    "a film": partial(habitus.detect, "a.mp4", "a.model", annotate="a.mp4"),
    "scores": partial(habitus.detect, "a.mp4", "a.model", scores="link"),
    "a page": partial(habitus.report, "a.mp4", "a.model", "a.model"),
    "labels": partial(habitus.report, "a.mp4", "a.model", "a.csv", labels="a.csv"),
    "events": partial(habitus.accept, "a.jsonl", [1], "a.model", output="a.jsonl"),
}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ONTO_AN_INPUT)
def test_an_input_is_never_replaced(place, name, force):
    before = snapshot(place)
    with pytest.raises(habitus.InvalidInputError, match="it is an input"):
        ONTO_AN_INPUT[name](force=force)
    assert snapshot(place) == before


def test_pictures_of_events_replace_no_input(place):
    (place / "images").rename(place / "b-thumbnails")
    before = snapshot(place)
    with pytest.raises(habitus.InvalidInputError, match="is an input"):
        habitus.detect(
            "b-thumbnails",
            "a.model",
            reading=habitus.ReadingSettings(fps=4),
            output="b.jsonl",
            force=True,
        )
    assert snapshot(place) == before


def test_a_live_output_is_no_input(place):
    before = snapshot(place)
    for output in ("a.model", "a.mp4"):
        with pytest.raises(habitus.InvalidInputError, match="it is an input"):
            next(habitus.watch("a.mp4", "a.model", output=output))
    assert snapshot(place) == before


def test_two_outputs_are_two_files(place):
    with pytest.raises(habitus.InvalidInputError, match="would be one file"):
        habitus.detect("a.corpus", "a.model", output="b", scores="images/../b")
    assert not Path("b").exists()


EVERY_KIND = {
    "b.corpus": partial(habitus.extract, "a.mp4", reading=habitus.ReadingSettings(duration=4)),
    "b.model": partial(habitus.learn, "a.corpus", **LEARN),
    "b.jsonl": partial(
        habitus.detect, "a.corpus", "a.model", alerts=habitus.AlertSettings(share=0.05)
    ),
    "b.html": partial(habitus.report, "a.corpus", "a.model"),
    "b.png": partial(habitus.show, "a.corpus"),
    "b.jpg": partial(habitus.show, "a.corpus"),
    "b.svg": partial(habitus.show, "a.corpus"),
    "b.pdf": partial(habitus.show, "a.corpus"),
    "film.mp4": lambda output, **how: habitus.detect(
        "a.mp4", "a.model", annotate=output, reading=habitus.ReadingSettings(skip=70), **how
    ),
    "scores.csv": lambda output, **how: habitus.detect("a.corpus", "a.model", scores=output, **how),
}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_files_of_others_are_replaced_by_force_only_and_ours_always(place, name):
    write, output = EVERY_KIND[name], Path(name)
    output.write_text(FOREIGN)
    before = snapshot(place)
    with pytest.raises(habitus.InvalidInputError, match="that habitus wrote") as caught:
        write(output=output)
    assert caught.value.parameter == "force"
    assert snapshot(place) == before
    write(output=output, force=True)
    once = output.read_bytes()
    assert once != FOREIGN.encode()
    write(output=output)
    assert output.read_bytes() == once  # the same work, the same file


def test_another_kind_of_ours_is_not_replaced_either(place):
    with pytest.raises(habitus.InvalidInputError, match="not a corpus that habitus wrote"):
        habitus.extract("a.mp4", output="a.model")
    with pytest.raises(habitus.InvalidInputError, match="not a file of events"):
        next(habitus.watch("a.mp4", "a.model", output="a.corpus"))


def test_events_that_were_cut_short_are_ours(tmp_path):
    line = '{"habitus": "event", "version": 1'
    for size in range(1, len(line)):
        (tmp_path / "events").write_text(line[:size])
        assert is_ours(tmp_path / "events", "events")
    assert not is_ours(tmp_path / "absent", "page")


def test_an_empty_file_is_nobody_s(tmp_path):
    (tmp_path / "empty").touch()
    kinds = ("corpus", "model", "events", "scores", "page", "picture", "film")
    assert all(is_ours(tmp_path / "empty", kind) for kind in kinds)


def test_a_mark_far_into_a_file_is_found(tmp_path):
    (tmp_path / "long").write_bytes(bytes(3 << 20) + MARK.encode() + bytes(3 << 20))
    assert is_ours(tmp_path / "long", "film")


def test_nothing_but_a_file_is_written_to(place):
    os.mkfifo("pipe")
    if os.getuid() == 0:
        os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for output in ("pipe", *(["device"] if os.getuid() == 0 else []), "images", "loop"):
        if output == "loop":
            Path("loop").symlink_to("loop")
        before = os.lstat(output)
        for force in (False, True):
            with pytest.raises(habitus.InvalidInputError, match="cannot write"):
                habitus.extract("a.mp4", output=output, force=force)
        assert os.lstat(output)[:4] == before[:4]


@pytest.mark.parametrize("there", [False, True])
def test_a_symbolic_link_is_followed(place, there):
    (place / "disk").mkdir()
    target = place / "disk" / "real.corpus"
    if there:
        shutil.copy("a.corpus", target)
    Path("b.corpus").symlink_to("disk/real.corpus")
    habitus.extract("a.mp4", output="b.corpus", reading=habitus.ReadingSettings(duration=4))
    assert Path("b.corpus").is_symlink()
    assert len(habitus.Corpus.load(target)) == 4


@pytest.mark.parametrize("output", ["/proc/b.corpus", "a.mp4/b.corpus", "absent/b.corpus"])
def test_what_cannot_be_written_is_told_before_any_work(place, output):
    with pytest.raises(habitus.InvalidInputError, match=f"cannot write {output}"):
        habitus.extract("no such video", output=output)


def test_a_picture_that_may_be_the_mask_is_not_drawn_over(place):
    before = snapshot(place)
    found = command("show", "a.model", cwd=place)
    assert found.returncode == 1
    assert found.stderr.startswith("habitus: cannot write a.png: it exists")
    assert found.stderr.endswith("(--force)\n")
    assert snapshot(place) == before


@pytest.mark.parametrize("output", ["picture", "picture.gif"])
def test_a_picture_needs_a_name_that_says_its_format(place, output):
    before = snapshot(place)
    with pytest.raises(habitus.InvalidInputError, match=r"expected a name that ends in \.png"):
        habitus.show("a.model", output=output)
    assert snapshot(place) == before


def test_a_demonstration_does_not_draw_over_a_video(place):
    Path("demo").mkdir()
    shutil.copy("a.mp4", "demo/junction.mp4")
    before = snapshot(place)
    with pytest.raises(habitus.InvalidInputError, match="not of a demonstration"):
        habitus.demo("demo")
    assert snapshot(place) == before


def test_a_picture_is_never_written_over_a_mask(tmp_path):
    mask = tmp_path / "01" / "000.png"
    mask.parent.mkdir()
    mask.write_bytes(b"a mask")
    with pytest.raises(habitus.InvalidInputError, match="it is an input"):
        habitus.evaluate("a.model", ["01.mp4"], "a.csv", masks=tmp_path, picture=mask, force=True)
    assert mask.read_bytes() == b"a mask"
