"""Headers and arrays that others made up: refused in one line before they are used."""

import json

import numpy as np
import pytest

from habitus import Corpus, HabitusError, Vocabulary
from habitus.errors import FileError
from habitus.files import FileFormat
from habitus.scene import SceneModel, learn_scene
from habitus.schema import REAL, Layout, decoded

GRID = Vocabulary(4, 4, directions=12, speeds=16)
NESTED = "[" * 100_000
DIGITS = "9" * 5000


def footage():
    rng = np.random.default_rng(0)
    words = [rng.choice(GRID.n_words, 30) for _ in range(60)]
    return Corpus.from_word_ids([np.repeat(own, 2) for own in words], vocabulary=GRID)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    corpus = footage()
    corpus.save(folder / "corpus")
    scene = learn_scene(corpus, n_topics=2, n_behaviours=2, n_iterations=3, random_state=0)
    assert scene.habits is not None
    scene.save(folder / "model")
    return folder


LOADERS = {"corpus": Corpus.load, "model": SceneModel.load}
VERSIONS = {"corpus": 3, "model": 4}


def refused(files, kind, header=None, tensors=None):
    """Write a file with other contents and the right checksum; return what is said of it."""
    found = FileFormat(kind, 9).read(files / kind)
    path = files / f"odd-{kind}"
    arrays = (found.tensors | (tensors or {})).items()
    kept = {name: array for name, array in arrays if array is not None}
    FileFormat(kind, VERSIONS[kind]).write(path, found.header | (header or {}), kept)
    with pytest.raises(FileError) as caught:
        LOADERS[kind](path)
    said = str(caught.value)
    assert "\n" not in said
    assert str(path) in said
    assert len(said) < len(str(path)) + 300
    return said


def test_the_files_are_fine_as_they_are(files):
    for kind, load in LOADERS.items():
        load(files / kind)


WRONG = [None, True, "text", -1, 0, 1.5, [], {}, [[]], 10**30, 1e308, "9" * 50]


@pytest.mark.parametrize("value", WRONG[1:], ids=str)
@pytest.mark.parametrize("name", ["n_words", "vocabulary"])
def test_headers_of_corpora(files, name, value):
    refused(files, "corpus", {name: value})


@pytest.mark.parametrize("value", [0, -1.0, "1", None, [], 1e30])
def test_the_clip_of_a_corpus(files, value):
    assert "clip" in refused(files, "corpus", {"settings": {"clip": value}})


HEADERS = ["clip", "settings", "prior", "video", "calibration", "habits"]
FINE = {("clip", "1.5"), ("video", "None"), ("video", "{}"), ("calibration", "{}")}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in HEADERS for value in WRONG if (name, str(value)) not in FINE],
    ids=str,
)
def test_headers_of_models(files, name, value):
    refused(files, "model", {name: value})


@pytest.mark.parametrize("name", ["n_topics", "n_iterations", "burn_in", "thinning", "n_samples"])
@pytest.mark.parametrize("value", [None, True, "2", -1, 0, 1.5, [], 10**30])
def test_settings_of_models(files, name, value):
    known = FileFormat("model", 9).read(files / "model").header["settings"]
    assert name in refused(files, "model", {"settings": known | {name: value}})


CORPUS_ARRAYS = ["data", "indices", "indptr", "lengths", "times"]
MODEL_ARRAYS = [
    "parameters.phi",
    "belief_",
    "calibration.plug-in.tail",
    "calibration.plug-in.judged",
    "calibration.plug-in.novelty",
    "calibration.plug-in.level",
    "habits.direction",
    "habits.statistics",
    "habits.levels",
    "habits.judged",
    "habits.trust",
    "habits.reach",
]


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("corpus", n) for n in CORPUS_ARRAYS), *(("model", n) for n in MODEL_ARRAYS)],
)
def test_arrays(files, kind, name):
    array = FileFormat(kind, 9).read(files / kind).tensors[name]
    assert name in refused(files, kind, tensors={name: array.astype(np.complex64)})
    assert name in refused(files, kind, tensors={name: array[None]})
    assert "missing" in refused(files, kind, tensors={name: None})
    refused(files, kind, tensors={name: np.concatenate([array, array])})
    if array.dtype.kind == "f":
        bad = array.copy()
        bad.flat[-1] = np.nan
        assert name in refused(files, kind, tensors={name: bad})


@pytest.mark.parametrize(
    "text", [NESTED, DIGITS, f'{{"a": {NESTED}', f'{{"a": {DIGITS}}}', "", "{"]
)
def test_texts_without_bounds(text):
    with pytest.raises(FileError) as caught:
        decoded(text, dict[str, object])
    assert len(str(caught.value)) < 200


def test_an_array_of_other_sizes_is_not_read(tmp_path):
    path = tmp_path / "file"
    FileFormat("x", 1).write(path, {"n": 3}, {"a": np.zeros((2, 2))})
    layouts = {"a": Layout(REAL, ("n", 2))}
    with pytest.raises(FileError, match="n = 3 in place of 2"):
        FileFormat("x", 1, layouts=layouts, sizes=lambda h: {"n": h["n"]}).read(path)


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000, "b\udcff", "c\0"])
def test_names_that_no_file_has(tmp_path, name):
    for act in (Corpus.load, SceneModel.load, footage().save):
        with pytest.raises(HabitusError, match=r"cannot (read|write)") as caught:
            act(str(tmp_path / name))
        str(caught.value).encode()
        assert "\n" not in str(caught.value)


def test_headers_are_json_as_any_other_program_writes_it(files):
    found = FileFormat("corpus", 9).read(files / "corpus")
    assert json.loads(json.dumps(found.header)) == found.header
