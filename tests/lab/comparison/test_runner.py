"""All chains in processes: the same bits for any number, and nothing is done twice."""

from dataclasses import replace

import numpy as np
import pytest

from habitus import Corpus
from habitus.errors import HabitusError
from habitus.lab.comparison.protocol import chosen, identity_of
from habitus.lab.comparison.runs import Store, expected_seconds, run_all, run_chain, runs_of
from reference.labelled import QUICK

METHODS = ["em-1", "vb-H", "gibbs-1", "lda", "forest", "neighbours"]


@pytest.fixture(scope="module")
def runs():
    return runs_of(chosen(METHODS), 2)


@pytest.fixture(scope="module")
def done(tmp_path_factory, footage, runs):
    """The same comparison by one process and by two."""
    stores = []
    for jobs in (1, 2):
        store = Store(tmp_path_factory.mktemp(f"jobs{jobs}"), identity_of(footage, QUICK))
        run_all(store, footage, QUICK, runs, jobs=jobs)
        stores.append(store)
    return stores


def test_deterministic_chains_have_one_run(runs):
    assert len(runs) == 2 * 5 + 1


def test_one_process_and_two_give_the_same_bits(done, runs):
    one, two = done
    for run in runs:
        first, second = one.get(run).judged, two.get(run).judged
        assert list(first) == list(second) != []
        for name, judged in first.items():
            np.testing.assert_array_equal(judged.normality, second[name].normality)


def test_what_is_done_is_left_alone_and_what_is_not_is_done(done, runs, footage):
    store, told = done[0], []
    before = {run: store.path(run).stat().st_mtime_ns for run in runs}
    lost = runs[0]
    whole = store.get(lost).judged["EM 1 p"].normality
    store.path(lost).unlink()
    run_all(store, footage, QUICK, runs, jobs=1, progress=told.append)
    assert [(each.done, each.total) for each in told] == [(10, 11), (11, 11)]
    assert (told[0].left > 0, told[-1].left) == (True, 0)
    after = {run: store.path(run).stat().st_mtime_ns for run in runs}
    assert [run for run in runs if after[run] != before[run]] == [lost]
    np.testing.assert_array_equal(store.get(lost).judged["EM 1 p"].normality, whole)


def test_the_papers_methods_get_the_papers_words_and_ours_get_speeds(tmp_path, footage, done, runs):
    corpus = footage.corpus
    counts = np.repeat(corpus.counts.toarray(), 2, axis=1)
    counts[:, ::2] = np.floor(counts[:, ::2] / 3)  # a third is slow
    counts[:, 1::2] -= counts[:, ::2]
    both = Corpus(counts, times=corpus.times, vocabulary=replace(corpus.vocabulary, speeds=2))
    split = footage._replace(corpus=both)
    store, wanted = Store(tmp_path, identity_of(split, QUICK)), runs_of(chosen(["em-1", "ours"]), 1)
    run_all(store, split, QUICK, wanted, jobs=1)
    em, ours = (store.get(run).judged for run in wanted)
    expected = done[0].get(runs[0]).judged["EM 1 p"].normality
    np.testing.assert_array_equal(em["EM 1 p"].normality, expected)
    plain = run_chain(wanted[1].chain, 0, footage, QUICK, []).judged["habitus mean"].normality
    assert not np.array_equal(ours["habitus mean"].normality, plain)


def test_more_runs_leave_the_first_ones_as_they_are(done, footage, runs):
    more = runs_of(chosen(["em-1"]), 3)
    assert more[:2] == runs[:2]
    assert len({QUICK.seed_of("em-1", n).generate_state(1)[0] for n in range(20)}) == 20


def test_an_error_of_a_chain_is_told_in_one_line(tmp_path, footage):
    protocol = replace(QUICK, n_behaviours=1000)
    store = Store(tmp_path, identity_of(footage, protocol))
    with pytest.raises(HabitusError, match="n_behaviours=1000 needs at least as many documents"):
        run_all(store, footage, protocol, runs_of(chosen(["em-1"]), 1), jobs=1)
    assert list(store.chains.iterdir()) == []


def test_long_chains_are_expected_to_be_long(footage):
    paper = replace(QUICK, burn_in=500, thinning=100, many=100, n_iterations=100)
    chains = chosen(["em-1", "vb-1", "gibbs-1"])
    em, vb, gibbs = (expected_seconds(chain, footage, paper) for chain in chains)
    assert gibbs > 5 * vb > 5 * em
