"""Passes over shards by workers: the same to the bit, whoever is killed meanwhile."""

import itertools
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from habitus import Corpus, FileError, MarkovClusteringTopicModel, ShardedCorpus, Vocabulary
from habitus.corpus.tree_sum import tree_sum
from habitus.jobs.cluster import open_workers
from habitus.jobs.cluster.passes import BLOCKS, ClusterPasses
from habitus.jobs.cluster.pool import ClusterWorkers
from habitus.scene.habit_learning import learn_habits
from reference.clusters import cluster, kill
from reference.corpora import paper_corpus
from reference.tasks import itself, kept_by, killed_at, total

N_SHARDS = 19
FIT = {"n_iterations": 6, "n_restarts": 2, "random_state": 7}
GRID = Vocabulary(6, 8, directions=12, speeds=16)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder, whole = tmp_path_factory.mktemp("shards"), paper_corpus(seed=4)
    parts = np.array_split(np.arange(len(whole)), N_SHARDS)
    for i, part in enumerate(parts):
        whole.take(part).save(folder / f"{i:02}.corpus")
    return [folder / f"{i:02}.corpus" for i in range(N_SHARDS)]


@pytest.fixture
def corpus(paths):
    return ShardedCorpus.open(paths)


def bits(model):
    arrays = (*model.parameters_, model.objective_, model.restarts_, model.belief_)
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("learning", ["em", "vb"])
def test_what_is_learnt_is_the_same_to_the_bit(corpus, workers, learning):
    here = MarkovClusteringTopicModel(4, 3, learning=learning, **FIT).fit(corpus)
    there = MarkovClusteringTopicModel(4, 3, learning=learning, **FIT).fit(
        corpus.with_workers(workers)
    )
    assert bits(here) == bits(there)


def test_habits_are_the_same_to_the_bit(workers):
    rng = np.random.default_rng(0)
    parts = [
        Corpus(
            rng.poisson(0.02, (30, GRID.n_words)),
            vocabulary=GRID,
            settings={"clip": 1.0, "words": "fine"},
        )
        for _ in range(5)
    ]
    corpus = ShardedCorpus.of(parts)
    here, there = learn_habits(corpus), learn_habits(corpus.with_workers(workers))
    one, other = here.contents(), there.contents()
    assert one.header == other.header
    assert one.tensors.keys() == other.tensors.keys()
    assert all(one.tensors[k].tobytes() == other.tensors[k].tobytes() for k in one.tensors)


def test_columns_and_sums_are_those_of_this_process(corpus, workers):
    there = corpus.with_workers(workers)
    assert there.n_tokens.tobytes() == corpus.n_tokens.tobytes()
    assert there.map_reduce(total) == tree_sum(map(total, map(corpus.load, range(N_SHARDS))))


def test_a_shard_stays_with_its_worker_and_is_made_once(corpus, workers):
    passes = ClusterPasses(workers, corpus, partial(kept_by, os.getpid()))
    first, second = (list(passes.map(itself, range(N_SHARDS))) for _ in range(2))
    assert first == second  # with what made it, and how often
    assert len({each.process for each in first}) == 2
    assert os.getpid() not in {each.process for each in first}
    counts = [each.count for each in first]
    assert sorted(counts) == sorted([*range(1, 10), *range(1, 11)])
    assert passes._most(N_SHARDS) == N_SHARDS // (2 * BLOCKS)


def test_a_damaged_shard_and_one_that_is_not_there_are_named(paths, workers, tmp_path):
    for path in paths[:3]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    corpus = ShardedCorpus.open([tmp_path / path.name for path in paths[:3]]).with_workers(workers)
    whole = (tmp_path / "01.corpus").read_bytes()
    (tmp_path / "01.corpus").write_bytes(whole[:-100] + bytes(100))
    with pytest.raises(FileError, match=r"01\.corpus.*\(on worker tcp://\S+\)$"):
        MarkovClusteringTopicModel(2, 2).fit(corpus)
    (tmp_path / "01.corpus").unlink()
    with pytest.raises(FileError, match=r"01\.corpus.*\(on worker tcp://\S+\)$"):
        MarkovClusteringTopicModel(2, 2).fit(corpus)


def test_a_worker_that_is_killed_mid_pass_costs_nothing_but_time(corpus, tmp_path):
    with cluster(tmp_path, 3) as found, open_workers(found.address) as pool:
        evidence = corpus.with_workers(pool).kept(partial(kept_by, 0))
        task = partial(killed_at, tmp_path / "killed", 7)
        (tmp_path / "killed").mkdir()
        found_sum = evidence.sum(task)
        assert (tmp_path / "killed" / "7").exists()
        assert found_sum == tree_sum(0.1 * number for number in range(N_SHARDS))
        one = MarkovClusteringTopicModel(4, 3, **FIT).fit(corpus)
        later = corpus.with_workers(pool)
        killed: list[int] = []

        def kill_one(iteration: int, objective: float) -> None:
            if not killed:
                process = next(p for p in found.processes[1:] if p.poll() is None)
                killed.append(process.pid)
                kill(process)

        other = MarkovClusteringTopicModel(4, 3, **FIT).fit(later, callback=kill_one)
        assert killed
        assert bits(one) == bits(other)


def test_workers_that_come_take_the_places_of_those_that_went(corpus, tmp_path):
    with cluster(tmp_path, 2) as found, open_workers(found.address) as pool:
        passes = ClusterPasses(pool, corpus, partial(kept_by, 0))
        before = list(passes.map(itself, range(N_SHARDS)))
        gone = found.processes[1]
        kill(gone)
        found.start_worker()
        found.wait_for_workers(2)
        after = list(passes.map(itself, range(N_SHARDS)))
        stayed = [a == b for a, b in zip(before, after, strict=True) if a.process != gone.pid]
        assert all(stayed)
        assert 9 <= len(stayed) <= 10
        assert {each.process for each in after} == {p.pid for p in found.processes[2:]}


class SomeWorkers(ClusterWorkers):
    """Tasks of a cluster that has the workers that it is said to have."""

    def workers(self):
        return self.present


def test_those_that_stay_keep_their_places(corpus, workers):
    tasks = SomeWorkers("local")
    passes = ClusterPasses(tasks, corpus, partial(kept_by, 0))

    def arranged(present):
        tasks.present = dict.fromkeys(present, 1)
        passes._arrange()
        assert passes._kept.keys() <= set(present)
        passes._kept = dict.fromkeys(present)
        return "".join(passes._workers)

    assert arranged("ba") == "ab"
    assert arranged("cab") == "abc"  # whoever comes is the last
    assert arranged("ca") == "ac"
    assert arranged("cdb") == "bcd"
    assert arranged("ad") == "ad"


def test_what_a_worker_no_longer_keeps_is_made_again(corpus, workers):
    passes, checks = ClusterPasses(workers, corpus, partial(kept_by, -1)), itertools.count()

    def check() -> None:
        assert next(checks) < 10 * N_SHARDS

    before = list(passes.map(itself, range(N_SHARDS)))
    workers.client.cancel(list(passes._kept.values()))
    after = list(passes.map(itself, range(N_SHARDS), check=check))
    assert [each.process for each in before] == [each.process for each in after]
    assert all(a.count < b.count for a, b in zip(before, after, strict=True))


def test_a_full_disk_of_a_worker_changes_nothing(corpus, tmp_path):
    spilled = replace(corpus, keep_bytes=0)
    with cluster(tmp_path, 0) as found:
        (tmp_path / "tmp").mkdir()
        found.start_worker(
            environment={"TMPDIR": str(tmp_path / "tmp")}, first="trap '' XFSZ; ulimit -f 8"
        )
        found.wait_for_workers(1)
        with open_workers(found.address) as pool:
            there = MarkovClusteringTopicModel(4, 3, **FIT).fit(spilled.with_workers(pool))
    assert bits(there) == bits(MarkovClusteringTopicModel(4, 3, **FIT).fit(corpus))


def test_a_pass_ends_when_it_is_told_to(corpus, workers):
    checks = itertools.count()

    def check() -> None:
        if next(checks):
            raise KeyboardInterrupt

    passes = ClusterPasses(workers, corpus, partial(kept_by, 0))
    with pytest.raises(KeyboardInterrupt):
        list(passes.map(itself, range(N_SHARDS), check=check))
