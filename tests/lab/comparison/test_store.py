"""Results on disk: whole or not there, and never mixed with those of other data."""

import json

import numpy as np
import pytest

from habitus.errors import FileError, InvalidInputError
from habitus.lab.comparison.baselines import Judged, Recall
from habitus.lab.comparison.protocol import CHAINS, identity_of
from habitus.lab.comparison.runs import MANIFEST, Finished, Run, Store
from reference.labelled import QUICK, labels

RUN = Run(CHAINS["vb-H"], 1)


def finished():
    rng = np.random.default_rng(0)
    judged = {
        method.name: Judged(rng.normal(size=7), 0.25, 1e-5, Recall(rng.random(3), rng.random(2)))
        for method in RUN.chain.methods[:2]
    }
    return Finished(judged, ["a note"])


@pytest.fixture
def identity(footage):
    return identity_of(footage, QUICK)


def test_results_come_back_as_they_were(tmp_path, identity):
    store, given = Store(tmp_path, identity), finished()
    assert not store.has(RUN)
    store.put(RUN, given)
    found = Store(tmp_path, identity).get(RUN)
    assert found.notes == given.notes
    assert list(found.judged) == list(given.judged)
    for name, judged in given.judged.items():
        back = found.judged[name]
        np.testing.assert_array_equal(back.normality, judged.normality)
        np.testing.assert_array_equal(back.recall.by_number, judged.recall.by_number)
        np.testing.assert_array_equal(back.recall.by_share, judged.recall.by_share)
        assert (back.learning, back.deciding) == (judged.learning, judged.deciding)


def test_a_damaged_file_is_as_good_as_none(tmp_path, identity):
    store = Store(tmp_path, identity)
    store.put(RUN, finished())
    whole = store.path(RUN).read_bytes()
    store.path(RUN).write_bytes(whole[:-5])
    assert not store.has(RUN)
    with pytest.raises(FileError):
        store.get(RUN)


def test_what_a_killed_run_left_half_written_is_cleared(tmp_path, identity):
    store = Store(tmp_path, identity)
    (store.chains / ".vb-H-002-0123abcd.safetensors").write_bytes(b"half")
    assert list(Store(tmp_path, identity).chains.iterdir()) == []


def test_a_folder_of_other_data_is_refused_in_one_line(tmp_path, footage, identity):
    Store(tmp_path, identity)
    other = identity_of(footage._replace(labels=labels()[:2], n_train=80), QUICK)
    with pytest.raises(InvalidInputError) as refused:
        Store(tmp_path, other)
    said = str(refused.value)
    assert "with other labels and with another --train" in said
    assert "name another --output" in said
    assert "\n" not in said


def test_results_without_a_word_of_what_they_are_of_are_refused(tmp_path, identity):
    store = Store(tmp_path, identity)
    store.put(RUN, finished())
    (tmp_path / MANIFEST).write_text(json.dumps([1]))
    with pytest.raises(FileError, match="not the beginning of a comparison"):
        Store(tmp_path, identity)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(InvalidInputError, match="does not say of what"):
        Store(tmp_path, identity)
