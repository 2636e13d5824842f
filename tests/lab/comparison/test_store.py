"""Results on disk: whole or absent, and never mixed with results of other data."""

import json

import numpy as np
import pytest

from habitus.errors import FileError, InvalidInputError
from habitus.lab.comparison.protocol import LEARNING_RUNS, identity_of
from habitus.lab.comparison.run_store import MANIFEST, ComparisonStore, Repetition, RunResult
from habitus.lab.comparison.scoring import LocalisationRecall, MethodResult
from reference.labelled import QUICK, labels

RUN = Repetition(LEARNING_RUNS["vb-H"], 1)


def finished():
    rng = np.random.default_rng(0)
    results = {
        method.name: MethodResult(
            rng.normal(size=7), 0.25, 1e-5, LocalisationRecall(rng.random(3), rng.random(2))
        )
        for method in RUN.run.methods[:2]
    }
    return RunResult(results, ["a note"])


@pytest.fixture
def identity(footage):
    return identity_of(footage, QUICK)


def test_results_are_read_as_they_were_written(tmp_path, identity):
    store, given = ComparisonStore(tmp_path, identity), finished()
    assert not store.has(RUN)
    store.put(RUN, given)
    found = ComparisonStore(tmp_path, identity).get(RUN)
    assert found.notes == given.notes
    assert list(found.results) == list(given.results)
    for name, judged in given.results.items():
        back = found.results[name]
        np.testing.assert_array_equal(back.normality, judged.normality)
        np.testing.assert_array_equal(back.recall.by_number, judged.recall.by_number)
        np.testing.assert_array_equal(back.recall.by_share, judged.recall.by_share)
        assert (back.learning, back.deciding) == (judged.learning, judged.deciding)


def test_a_damaged_file_counts_as_none(tmp_path, identity):
    store = ComparisonStore(tmp_path, identity)
    store.put(RUN, finished())
    whole = store.path(RUN).read_bytes()
    store.path(RUN).write_bytes(whole[:-5])
    assert not store.has(RUN)
    with pytest.raises(FileError):
        store.get(RUN)


def test_files_that_a_killed_process_left_half_written_are_removed(tmp_path, identity):
    store = ComparisonStore(tmp_path, identity)
    (store.results / ".vb-H-002-0123abcd.safetensors").write_bytes(b"half")
    assert list(ComparisonStore(tmp_path, identity).results.iterdir()) == []


def test_a_folder_of_other_data_is_refused_in_one_line(tmp_path, footage, identity):
    ComparisonStore(tmp_path, identity)
    other = identity_of(footage._replace(labels=labels()[:2], n_train=80), QUICK)
    with pytest.raises(InvalidInputError) as refused:
        ComparisonStore(tmp_path, other)
    said = str(refused.value)
    assert "with other labels and with another training part" in said
    assert "choose another folder, or delete it" in said
    assert "\n" not in said
    assert refused.value.parameter == "output"


def test_results_without_a_manifest_are_refused(tmp_path, identity):
    store = ComparisonStore(tmp_path, identity)
    store.put(RUN, finished())
    (tmp_path / MANIFEST).write_text(json.dumps([1]))
    with pytest.raises(FileError, match="not a manifest of a comparison"):
        ComparisonStore(tmp_path, identity)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(InvalidInputError, match="holds results without comparison"):
        ComparisonStore(tmp_path, identity)
