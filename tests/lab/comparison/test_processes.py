"""Learning runs in processes: results do not depend on their number, none is repeated."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from habitus import Corpus
from habitus.errors import HabitusError, InvalidInputError
from habitus.lab.comparison.protocol import ComparisonProtocol, identity_of, select_runs
from habitus.lab.comparison.run_store import ComparisonStore
from habitus.lab.comparison.runs import (
    carry_out,
    compare_methods,
    expected_seconds,
    repetitions_of,
    run_all,
)
from reference.labelled import QUICK

METHODS = ["em-1", "vb-H", "gibbs-1", "lda", "forest", "neighbours"]


@pytest.fixture(scope="module")
def runs():
    return repetitions_of(select_runs(METHODS).runs, 2)


@pytest.fixture(scope="module")
def done(tmp_path_factory, footage, runs):
    """Return the stores of the same comparison by one process and by two."""
    stores = []
    for jobs in (1, 2):
        store = ComparisonStore(tmp_path_factory.mktemp(f"jobs{jobs}"), identity_of(footage, QUICK))
        run_all(store, footage, QUICK, runs, jobs=jobs)
        stores.append(store)
    return stores


def test_deterministic_runs_are_not_repeated(runs):
    assert len(runs) == 2 * 5 + 1


def test_one_process_and_two_give_the_same_bits(done, runs):
    one, two = done
    for run in runs:
        first, second = one.get(run).results, two.get(run).results
        assert list(first) == list(second) != []
        for name, judged in first.items():
            np.testing.assert_array_equal(judged.normality, second[name].normality)


def test_only_missing_runs_are_carried_out(done, runs, footage):
    store, told = done[0], []
    before = {run: store.path(run).stat().st_mtime_ns for run in runs}
    lost = runs[0]
    whole = store.get(lost).results["EM 1 p"].normality
    store.path(lost).unlink()
    run_all(store, footage, QUICK, runs, jobs=1, progress=told.append)
    assert [(each.done, each.total) for each in told] == [(10, 11), (11, 11)]
    assert [each.note for each in told] == ["about a minute left", "em-1 1"]
    assert {each.stage for each in told} == {"comparing"}
    after = {run: store.path(run).stat().st_mtime_ns for run in runs}
    assert [run for run in runs if after[run] != before[run]] == [lost]
    np.testing.assert_array_equal(store.get(lost).results["EM 1 p"].normality, whole)


def test_the_papers_methods_get_the_papers_words_and_the_default_model_speeds(
    tmp_path, footage, done, runs
):
    corpus = footage.corpus
    counts = np.repeat(corpus.counts.toarray(), 2, axis=1)
    counts[:, ::2] = np.floor(counts[:, ::2] / 3)  # a third is slow
    counts[:, 1::2] -= counts[:, ::2]
    both = Corpus(counts, times=corpus.times, vocabulary=replace(corpus.vocabulary, speeds=2))
    split = footage._replace(corpus=both)
    store, wanted = (
        ComparisonStore(tmp_path, identity_of(split, QUICK)),
        repetitions_of(select_runs(["em-1", "ours"]).runs, 1),
    )
    run_all(store, split, QUICK, wanted, jobs=1)
    em, ours = (store.get(run).results for run in wanted)
    expected = done[0].get(runs[0]).results["EM 1 p"].normality
    np.testing.assert_array_equal(em["EM 1 p"].normality, expected)
    plain = carry_out(wanted[1], footage, QUICK, []).results["habitus mean"].normality
    assert not np.array_equal(ours["habitus mean"].normality, plain)


def test_more_runs_leave_the_first_ones_unchanged(done, footage, runs):
    more = repetitions_of(select_runs(["em-1"]).runs, 3)
    assert more[:2] == runs[:2]
    assert len({QUICK.seed_of("em-1", n).generate_state(1)[0] for n in range(20)}) == 20


def test_an_error_of_a_run_is_raised_in_one_line(tmp_path, footage):
    protocol = replace(QUICK, n_behaviours=1000)
    store = ComparisonStore(tmp_path, identity_of(footage, protocol))
    with pytest.raises(HabitusError, match="n_behaviours=1000 needs at least as many documents"):
        run_all(store, footage, protocol, repetitions_of(select_runs(["em-1"]).runs, 1), jobs=1)
    assert list(store.results.iterdir()) == []


def test_long_runs_are_expected_to_be_long(footage):
    paper = replace(QUICK, burn_in=500, thinning=100, many=100, n_iterations=100)
    runs, _ = select_runs(["em-1", "vb-1", "gibbs-1"])
    em, vb, gibbs = (expected_seconds(run, footage, paper) for run in runs)
    assert gibbs > 5 * vb > 5 * em


def test_one_call_runs_stores_and_summarises_and_another_continues(tmp_path, footage):
    told = []
    options = {"train": 90.0, "methods": ["amount", "neighbours"], "jobs": 1}
    for n_runs in (1, 2):
        found = compare_methods(
            footage.corpus,
            footage.labels,
            tmp_path,
            n_runs=n_runs,
            progress=told.append,
            **options,
        )
    assert [row.method.name for row in found.rows] == ["5 nearest neighbours", "Amount of motion"]
    assert [(each.done, each.total) for each in told] == [(0, 2), (1, 2), (2, 2), (2, 2)]
    with pytest.raises(InvalidInputError, match="runs must be at least 1") as raised:
        compare_methods(footage.corpus, footage.labels, tmp_path, n_runs=0)
    assert raised.value.parameter == "n_runs"
    other = ComparisonProtocol(seed=1)
    with pytest.raises(InvalidInputError, match="with other settings"):
        compare_methods(footage.corpus, footage.labels, tmp_path, protocol=other, **options)


SCRIPT = """
from pathlib import Path
from habitus.lab.comparison.runs import compare_methods
from reference.labelled import labelled_corpus, labels

found = compare_methods(
    labelled_corpus(), labels(), Path("out"), train=90.0, n_runs=1, methods=["em-1", "amount"],
    jobs=2,
)
print(len(found.rows))
"""


def test_a_script_without_a_main_guard_compares_in_two_processes(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "2\n", "")
