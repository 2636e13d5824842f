"""Real files, damaged and forged at random: an error in one line or a value that can be used."""

import copy
import json
import warnings
from contextlib import contextmanager

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from habitus import Corpus, HabitusError, Vocabulary
from habitus.evaluation.label_files import parse_labels
from habitus.evaluation.labels import footage_of_corpus
from habitus.files import FileFormat
from habitus.scene import SceneModel, detect_events, learn_scene, read_events
from habitus.video.mask import watched_cells

GRID = Vocabulary(4, 4, directions=12, speeds=16)
VERSIONS = {"corpus": 3, "model": 4}
MEASURES = ("habits", "tail", "mean")


def street():
    rng = np.random.default_rng(0)
    words = [np.repeat(rng.choice(GRID.n_words, 15), 2) for _ in range(60)]
    corpus = Corpus.from_word_ids(words, vocabulary=GRID)
    return Corpus(
        corpus.counts,
        vocabulary=GRID,
        lengths=[40, 20],
        n_frames=np.full(60, 25),
        picture=np.zeros((32, 32, 3), dtype=np.uint8),
        settings={"clip": 1.0, "cell": 8, "motion": "cells", "words": "fine", "region": None},
    )


CORPUS = street()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of every kind, as the program or a person writes it."""
    folder = tmp_path_factory.mktemp("fuzz")
    CORPUS.save(folder / "corpus")
    quick = {"n_iterations": 3, "burn_in": 3, "n_samples": 2, "thinning": 2, "n_restarts": 2}
    for learning in ("gibbs", "em"):
        scene = learn_scene(
            CORPUS, n_topics=2, n_behaviours=2, learning=learning, random_state=0, **quick
        )
        assert scene.habits is not None
        scene.save(folder / f"{learning}-model")
    found = detect_events(scene.detector(), CORPUS, source="corpus", share=0.2)
    assert found.events
    (folder / "events").write_text("".join(f"{event.line()}\n" for event in found.events))
    times = "".join(f"{t},{t + 2.5},kind {t},0,0,{t + 9},9\n" for t in range(0, 50, 7))
    (folder / "table.csv").write_text(f"start,end,kind,left,top,right,bottom\n{times}")
    tracks = "".join(f"{t},{t // 5},car,0,0,{t + 9},9\n" for t in range(20))
    (folder / "tracks.csv").write_text(f"time,event,kind,left,top,right,bottom\n{tracks}")
    (folder / "clips.csv").write_text("clip,first_frame,last_frame\na,3,9\nb,0,12\n")
    (folder / "ranges.txt").write_text("60:152, 300:310 400-420\n")
    (folder / "matlab.m").write_text("TestVideoFile{end+1}.gt_frame = [60:152, 300:310];\n")
    np.save(folder / "flags.npy", np.arange(1500) % 50 == 0)
    cv2.imwrite(str(folder / "mask.png"), np.eye(32, dtype=np.uint8) * 255)
    return folder


@contextmanager
def allowed():
    """Let an error of habitus in one line pass, and nothing else."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    except HabitusError as error:
        said = str(error)
        assert "\n" not in said
        assert len(said) < 1000
        said.encode()


def use_corpus(path):
    corpus = Corpus.load(path)
    assert corpus.clip > 0
    assert len(corpus.take(np.arange(len(corpus)))) == len(corpus)
    assert corpus.coarse.n_tokens.sum() == pytest.approx(corpus.n_tokens.sum())
    assert repr(corpus)
    if len(corpus):
        with allowed():
            footage_of_corpus(corpus, "it").frame_times()


def use_model(path, measures=MEASURES):
    scene = SceneModel.load(path)
    assert scene.summary()
    for measure in measures:
        with allowed():
            detector = scene.detector(measure=measure, share=0.1)
            detect_events(detector, CORPUS, source="it", share=0.2)


def use_events(path):
    for event in read_events(path):
        assert event.in_words()
        json.loads(event.line())


def use_labels(path):
    labels = parse_labels(path).to_labels(footage_of_corpus(CORPUS, "it"))
    assert all(label.start < label.end for label in labels)


def use_mask(path):
    assert watched_cells(GRID, mask=str(path)).any()


USES = {
    "corpus": use_corpus,
    "em-model": use_model,
    "gibbs-model": use_model,
    "events": use_events,
    "table.csv": use_labels,
    "tracks.csv": use_labels,
    "clips.csv": use_labels,
    "ranges.txt": use_labels,
    "matlab.m": use_labels,
    "flags.npy": use_labels,
    "mask.png": use_mask,
}
FUZZ = settings(
    derandomize=True,
    deadline=None,
    max_examples=250,
    database=None,
    suppress_health_check=list(HealthCheck),
)
places = st.floats(0, 1, exclude_max=True)
ODD_BYTES = [b"", b"\0", b"\xff" * 9, b"nan", b"1e999", b"9" * 5000, b"[" * 3000, b"-", b'"', b"\n"]
changes = st.lists(
    st.one_of(
        st.tuples(st.just("flip"), places, st.integers(0, 7)),
        st.tuples(st.just("truncate"), places, st.none()),
        st.tuples(st.just("splice"), places, places),
        st.tuples(st.just("insert"), places, st.sampled_from(ODD_BYTES)),
        st.tuples(st.just("replace"), places, st.sampled_from(ODD_BYTES)),
    ),
    min_size=1,
    max_size=3,
)


def damaged(data, steps):
    """Return bytes with some changed, cut off, repeated elsewhere or put in between."""
    for kind, place, what in steps:
        at = int(place * len(data))
        if kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ 1 << what]) + data[at + 1 :]
        elif kind == "truncate":
            data = data[:at]
        elif kind == "splice":
            data = data[:at] + data[int(what * len(data)) :]
        elif kind in ("insert", "replace"):
            data = data[:at] + what + data[at + (len(what) if kind == "replace" else 0) :]
    return data


@pytest.mark.parametrize("name", [name for name in USES if name != "gibbs-model"])
def test_damaged_files(folder, name):
    """Of models, one: what a checksum tells does not depend on how they were learnt."""
    whole = (folder / name).read_bytes()
    path = folder / f"damaged-{name}"
    if name == "clips.csv":  # of clips that are not there
        parse_labels(path.with_name(name))
    else:
        USES[name](path.with_name(name))

    @FUZZ
    @given(changes)
    def check(steps):
        path.write_bytes(damaged(whole, steps))
        with allowed():
            USES[name](path)

    check()


ODD = [None, True, -1, 0, 1, 2, 1.5, 1e300, 10**20, 2**31, "", "text", "[/b]\x1b", [], [1], {}]
ARRAYS = {
    "float32": lambda array: array.astype(np.float32),
    "int64": lambda array: array.astype(np.int64),
    "uint8": lambda array: array.astype(np.uint8),
    "bool": lambda array: array.astype(np.bool_),
    "empty": lambda array: array[:0],
    "shorter": lambda array: array[:-1],
    "longer": lambda array: np.concatenate([array, array]),
    "deeper": lambda array: array[None],
    "flat": lambda array: array.reshape(-1),
    "wide": lambda array: np.zeros((0, 10**12)),
    "negative": lambda array: -np.abs(array.astype(np.float64)).astype(array.dtype),
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "largest": lambda array: np.full_like(array, _limits(array).max),
    "least": lambda array: np.full_like(array, _limits(array).min),
    "nan": lambda array: array * np.nan,
    "infinite": lambda array: array.astype(np.float64) + np.inf,
    "backwards": lambda array: array[::-1],
    "missing": lambda array: None,
}


def _limits(array):
    return np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)


def paths_of(value, before=()):
    """Return the way to every part of a header."""
    found = [before] if before else []
    inner = value.items() if isinstance(value, dict) else ()
    return found + [path for key, own in inner for path in paths_of(own, (*before, key))]


def forge(header, path, value):
    """Change a part of a header, or delete it where the value is `...`."""
    *before, last = path
    for key in before:
        header = header.get(key) if isinstance(header, dict) else None
    if isinstance(header, dict):
        if value is ...:
            header.pop(last, None)
        else:
            header[last] = value


@pytest.mark.parametrize(
    ("name", "examples"), [("corpus", 600), ("em-model", 400), ("gibbs-model", 250)]
)
def test_forged_files_with_the_right_checksum(folder, name, examples):
    """Less often of the last, which has nearly all fields of the one before."""
    kind = name.rpartition("-")[2]
    header, tensors = FileFormat(kind, 9).read(folder / name)
    path = folder / f"forged-{name}"

    @settings(FUZZ, max_examples=examples)
    @given(
        st.lists(
            st.tuples(st.sampled_from(paths_of(header)), st.sampled_from([*ODD, ...])), max_size=2
        ),
        st.lists(
            st.tuples(st.sampled_from(sorted(tensors)), st.sampled_from(sorted(ARRAYS))),
            max_size=2,
        ),
        st.sampled_from(MEASURES),
    )
    def check(parts, arrays, measure):
        forged, kept = copy.deepcopy(header), dict(tensors)
        for where, value in parts:
            forge(forged, where, value)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for array, change in arrays:
                if kept.get(array) is not None and kept[array].dtype != np.bool_:
                    kept[array] = ARRAYS[change](kept[array])
        kept = {key: array for key, array in kept.items() if array is not None}
        FileFormat(kind, VERSIONS[kind]).write(path, forged, kept)
        with allowed():
            use_corpus(path) if kind == "corpus" else use_model(path, [measure])

    check()


def test_forged_events(folder):
    event = json.loads((folder / "events").read_text().splitlines()[0])
    path = folder / "forged-events"

    @settings(FUZZ, max_examples=300)
    @given(st.sampled_from(sorted(event)), st.sampled_from([*ODD, -(10**400), [None], [[1, 2]]]))
    def check(field, value):
        path.write_text(json.dumps(event | {field: value}))
        with allowed():
            use_events(path)

    check()
