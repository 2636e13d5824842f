"""Sums over windows: in plain Python, compiled plainly and as vectors, all the same to the bit."""

import importlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from habitus.compiled import compiled, compiled_lanes, prepare
from habitus.video import vectors, windows
from habitus.video.windows import block_difference, window_sums
from reference import cells as twins
from reference.footage import encode, moving_square

WIDTH = 24


@njit
def difference_by_vectors(one, y, x, other, v, u):
    return vectors.block_difference(one, y, x, other, v, u)


@njit
def sums_by_vectors(one, y, x, other, v, u):
    return vectors.window_sums(one, y, x, other, v, u)


@njit
def difference_in_a_kernel(one, y, x, other, v, u):
    return block_difference(one, y, x, other, v, u)


@njit
def sums_in_a_kernel(one, y, x, other, v, u):
    return window_sums(one, y, x, other, v, u)


prepare()  # the kernels above are Numba's own, which do not
DIFFERENCES = {
    "python": block_difference,
    "plain kernel": njit(block_difference),
    "vectors": difference_by_vectors,
    "kernel": difference_in_a_kernel,
}
SUMS = {
    "python": window_sums,
    "plain kernel": njit(window_sums),
    "vectors": sums_by_vectors,
    "kernel": sums_in_a_kernel,
}
PLACES = [((1, 1), (1, 1)), ((11, 15), (1, 1)), ((3, 7), (8, 2)), ((5, 5), (6, 15))]


def images():
    rng = np.random.default_rng(0)
    extremes = [np.zeros((20, WIDTH), np.uint8), np.full((20, WIDTH), 255, np.uint8)]
    checks = (np.indices((20, WIDTH)).sum(axis=0) // 2 % 2 * 255).astype(np.uint8)
    noise = [rng.integers(0, 256, (20, WIDTH), dtype=np.uint8) for _ in range(2)]
    return [*extremes, checks, 255 - checks, *noise]


def pairs_of_images():
    return [(one, other) for one in images() for other in images()]


def called(function, pair, one, other):
    return function(pair[0], *one, pair[1], *other)


@pytest.mark.parametrize("kind", DIFFERENCES)
@pytest.mark.parametrize(("one", "other"), PLACES)
def test_block_difference_equals_its_twin(kind, one, other):
    for pair in pairs_of_images():
        found = called(DIFFERENCES[kind], pair, one, other)
        assert found == twins.block_difference(pair, one, other)


@pytest.mark.parametrize("kind", SUMS)
@pytest.mark.parametrize(("one", "other"), PLACES)
def test_window_sums_equal_their_twin(kind, one, other):
    for pair in pairs_of_images():
        found = called(SUMS[kind], pair, one, other)
        assert list(found) == twins.window_sums(pair, one, other)


def test_vectors_that_cannot_be_built_are_not_used(monkeypatch):
    def unbuildable(*arguments):
        raise NotImplementedError("no such instruction")

    @njit
    def sums(one, y, x, other, v, u):
        return window_sums(one, y, x, other, v, u)

    windows.vectors_work.cache_clear()
    monkeypatch.setattr(vectors, "window_sums", unbuildable)
    try:
        assert not windows.vectors_work()
        for pair in pairs_of_images()[-3:]:
            assert list(called(sums, pair, *PLACES[1])) == twins.window_sums(pair, *PLACES[1])
    finally:
        windows.vectors_work.cache_clear()


def test_vectors_that_give_wrong_sums_are_not_used(monkeypatch):
    wrong = njit(lambda one, y, x, other, v, u: 0)
    monkeypatch.setattr(vectors, "block_difference", wrong)
    windows.vectors_work.cache_clear()
    try:
        assert not windows.vectors_work()
    finally:
        windows.vectors_work.cache_clear()


def lanes(values):
    """Sums of neighbouring pairs."""
    sums = np.empty(len(values) // 2)
    for i in range(len(sums)):
        sums[i] = values[2 * i] + values[2 * i + 1]
    return sums


@pytest.mark.parametrize("gone", ["global_compiler_lock", "SLP_VECTORIZE"])
def test_lanes_compile_with_a_numba_that_lacks_an_internal_name(monkeypatch, gone):
    module = importlib.import_module("habitus.kernel_cache")
    if gone == "SLP_VECTORIZE":
        monkeypatch.delattr("numba.config.SLP_VECTORIZE")
        # Numba itself looks it up when it compiles.
        kernel = compiled_lanes(lanes)
        assert kernel.dispatcher
        monkeypatch.undo()
    else:
        monkeypatch.setattr(module, "global_compiler_lock", None)
        kernel = compiled_lanes(lanes)
        assert kernel.dispatcher
    values = np.random.default_rng(0).random(20)
    np.testing.assert_array_equal(kernel(values), compiled(lanes)(values))


EXTRACTION = """
import json, sys
from habitus.ingest.clips import documents
from habitus.video import Source, cells

words = [(d.words.tolist(), d.counts.tolist()) for d in documents(Source(sys.argv[1]))]
kernels = [k for k in vars(cells).values() if hasattr(k, "dispatcher")]
cached = sum(sum(k.dispatcher.stats.cache_hits.values()) for k in kernels)
json.dump({"words": words, "cached": cached, "vectors": "habitus.video.vectors" in sys.modules},
          sys.stdout)
"""


def extracted(path, *, plain):
    environment = os.environ | {"HABITUS_PLAIN_KERNELS": "1" if plain else "0"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", EXTRACTION, str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=300)
    return json.loads(run.stdout)


def test_plain_kernels_extract_the_same_words(tmp_path):
    drawn = moving_square(75, velocity=(3, 1), seed=3)
    path = encode(tmp_path / "a.mp4", drawn, options={"preset": "ultrafast", "crf": "20"})
    plain, usual = extracted(path, plain=True), extracted(path, plain=False)
    assert plain["words"] == usual["words"]
    assert sum(len(words) for words, _ in plain["words"]) > 50
    assert not plain["vectors"]
    assert plain["cached"] == 0  # a cached kernel might hold vectors
