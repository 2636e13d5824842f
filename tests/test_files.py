"""Files from others: truncated, foreign, newer, tampered with; and writing whole or not at all."""

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from habitus import Corpus, HabitusError, MarkovClusteringTopicModel, Prior, Vocabulary
from habitus.errors import FileError, InvalidInputError
from habitus.files import check_output, checked_path, written_whole

QUICK = {"n_iterations": 3, "burn_in": 3, "n_samples": 2, "thinning": 2, "random_state": 5}


@pytest.fixture(scope="module")
def corpus():
    counts = np.random.default_rng(0).poisson(2, (12, 24))
    return Corpus(counts, vocabulary=Vocabulary(2, 3))


def fitted(corpus, learning="em", **settings):
    return MarkovClusteringTopicModel(3, 2, learning=learning, **(QUICK | settings)).fit(corpus)


@pytest.fixture
def model_file(corpus, tmp_path):
    path = tmp_path / "scene.model"
    fitted(corpus).save(path)
    return path


@pytest.mark.parametrize("learning", ["em", "vb", "gibbs", "blocked-gibbs"])
@pytest.mark.parametrize("prior", ["H", Prior(alpha=2.5, beta=list(np.linspace(0.1, 2, 24)))])
def test_models_come_back_as_they_were(corpus, tmp_path, learning, prior):
    model = fitted(corpus, learning, prior=prior)
    model.save(tmp_path / "scene.model")
    back = MarkovClusteringTopicModel.load(tmp_path / "scene.model")
    assert back.get_params() == model.get_params()
    assert np.array_equal(back.score_samples(corpus), model.score_samples(corpus))
    for name in ("parameters_", "posterior_", "assignments_"):
        ours, theirs = getattr(model, name), getattr(back, name)
        assert (ours is None) == (theirs is None)
        assert all(np.array_equal(a, b) for a, b in zip(ours or (), theirs or (), strict=True))
    assert len(back.samples_) == len(model.samples_)
    for one, other in zip(back.samples_, model.samples_, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    for name in ("objective_", "restarts_", "belief_"):
        assert np.array_equal(getattr(model, name), getattr(back, name))
    assert (back.vocabulary_, back.n_iter_) == (model.vocabulary_, model.n_iter_)
    assert back.n_features_in_ == 24


def load_error(path):
    with pytest.raises(FileError) as caught:
        MarkovClusteringTopicModel.load(path)
    text = str(caught.value)
    assert "\n" not in text
    assert str(path) in text
    return text


def header_of(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def write_header(path, header, body):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_truncated_at_any_point(model_file):
    whole = model_file.read_bytes()
    for size in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        model_file.write_bytes(whole[:size])
        assert "truncated or foreign" in load_error(model_file)


def test_any_flipped_bit_is_noticed(model_file):
    whole = bytearray(model_file.read_bytes())
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 200, replace=False):
        broken = whole.copy()
        broken[place] ^= 1 << int(rng.integers(8))
        model_file.write_bytes(broken)
        with pytest.raises(FileError):
            MarkovClusteringTopicModel.load(model_file)


def test_foreign_files(tmp_path, corpus):
    text = tmp_path / "notes.txt"
    text.write_text("not a model\n" * 50)
    assert load_error(text).endswith("not a complete habitus model file (truncated or foreign)")
    other = tmp_path / "weights.safetensors"
    save_file({"weight": np.zeros(3)}, other)
    assert "another program" in load_error(other)
    corpus.save(tmp_path / "scene.corpus")
    assert "expected a habitus model file, found a habitus corpus" in load_error(
        tmp_path / "scene.corpus"
    )
    assert "found a folder" in load_error(tmp_path)
    assert "found nothing" in load_error(tmp_path / "absent.model")


def test_a_pickle_is_never_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "trapped"),))

    path = tmp_path / "evil.model"
    path.write_bytes(pickle.dumps(Trap()))
    load_error(path)
    assert not (tmp_path / "trapped").exists()


def test_a_newer_version_is_named(model_file):
    header, body = header_of(model_file)
    header["__metadata__"]["version"] = "99"
    write_header(model_file, header, body)
    assert "format version 99" in load_error(model_file)
    assert "upgrade habitus" in load_error(model_file)


def test_tampering_is_noticed(model_file):
    header, body = header_of(model_file)
    settings = json.loads(header["__metadata__"]["header"])
    settings["settings"]["min_words"] = 0
    header["__metadata__"]["header"] = json.dumps(settings, sort_keys=True)
    write_header(model_file, header, body)
    assert "checksum" in load_error(model_file)


def test_contents_that_make_no_sense_are_refused_even_with_a_right_checksum(corpus, tmp_path):
    model = fitted(corpus)
    path = tmp_path / "odd.model"
    model.parameters_ = model.parameters_._replace(pi=np.array([0.9, 0.9]))
    model.save(path)
    assert "columns of pi must be distributions" in load_error(path)
    model = fitted(corpus)
    model.learning = "magic"
    model.save(path)
    assert "learning must be a str among" in load_error(path)


def test_corpora_that_make_no_sense_are_refused(tmp_path, corpus):
    bad = Corpus(np.ones((2, 3)))
    bad.counts.indices[0] = 7
    bad.save(tmp_path / "odd.corpus")
    with pytest.raises(FileError, match="not a corpus that can be used"):
        Corpus.load(tmp_path / "odd.corpus")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "scene.model"
    path.write_text("old")

    def write_half():
        with written_whole(path) as temporary:
            temporary.write_text("new, and then")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("lasting", [True, False])
def test_only_what_shall_last_waits_for_the_disk(tmp_path, monkeypatch, lasting):
    flushed = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    with written_whole(tmp_path / "a.txt", lasting=lasting) as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert len(flushed) == lasting


@pytest.mark.parametrize("place", ["missing/scene.model", "file/scene.model", "."])
def test_places_that_cannot_be_written(tmp_path, corpus, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(HabitusError, match="cannot write") as caught:
        corpus.save(tmp_path / place)
    assert "\n" not in str(caught.value)


WRITING = """
import sys, time
from habitus.files import work_folder, written_whole
with written_whole(sys.argv[1]) as temporary, work_folder() as folder:
    temporary.write_text("half")
    (folder / "job").write_text("a secret")
    print(temporary, folder, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_what_a_killed_process_left_is_deleted_and_what_is_in_use_is_not(tmp_path, start):
    output, elsewhere = tmp_path / "out" / "a.corpus", tmp_path / "temporary"
    output.parent.mkdir()
    elsewhere.mkdir()
    (output.parent / ".habitus-notes.corpus").write_text("somebody's")

    def writing(seconds):
        return start(
            [sys.executable, "-c", WRITING, output, seconds],
            stdout=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(elsewhere)},
        )

    killed, living = writing(1000), writing(1000)
    lost, kept = ([Path(p) for p in each.stdout.readline().split()] for each in (killed, living))
    killed.kill()
    killed.wait()
    assert all(path.exists() for path in lost + kept)
    assert writing(0).wait() == 0
    assert not any(path.exists() for path in lost)
    assert all(path.exists() for path in kept)
    assert kept[1].stat().st_mode & 0o777 == 0o700
    names = {path.name for path in output.parent.iterdir()}
    assert names == {"a.corpus", kept[0].name, ".habitus-notes.corpus"}


@pytest.mark.parametrize("given", ["rtsp://me:secret@camera/1", Path("http://me:secret@camera/1")])
def test_an_address_in_place_of_a_file_is_refused_and_not_shown(given):
    with pytest.raises(InvalidInputError, match="it is an address, expected a file") as refused:
        check_output(given, "corpus")
    assert "secret" not in str(refused.value)


def test_a_folder_may_be_named_as_addresses_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("junction:").mkdir()
    Path("junction:/a.corpus").touch()
    assert checked_path("junction:/a.corpus").is_file()
