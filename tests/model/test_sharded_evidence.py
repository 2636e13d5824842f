"""Learning from shards: the same as from one corpus, whoever counts which shard."""

import gc
import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from habitus import (
    Corpus,
    InvalidInputError,
    LearningError,
    MarkovClusteringTopicModel,
    ShardedCorpus,
)
from habitus.corpus.shards import ShardPasses
from habitus.model import em, expected_counts, inspection, starts, vb
from habitus.model.expected_counts import ShardedEvidence, expect, gather
from habitus.model.generate import generate
from habitus.model.parameters import Parameters, Prior, Sizes
from reference import enumeration
from reference.corpora import (
    PARAMETERS,
    LoadedShards,
    Tiny,
    corpus_of,
    paper_corpus,
    random_parameters,
    random_posterior,
)

BLOCKS = ("phi", "theta", "pi", "xi")
TINY = {
    "a sequence each": Tiny(((0, 0, 2), (), (1,), (1, 2)), (3, 1), Sizes(3, 2, 2)),
    "three shards": Tiny(((1, 1), (0,), (), (0, 3)), (1, 1, 2), Sizes(4, 3, 3)),
    "more behaviours than lanes": Tiny(((0, 1, 1), (2,), (0,)), (2, 1), Sizes(3, 2, 5)),
    "a shard without words": Tiny(((0, 0, 1), (), (1,)), (1, 1, 1), Sizes(3, 2, 3)),
}


def split(corpus, at):
    """A corpus in shards; a sequence starts at each of the documents `at`."""
    edges = [0, *at, len(corpus)]
    parts = [corpus.take(np.arange(a, b)) for a, b in pairwise(edges)]
    assert sum(len(each.lengths) for each in parts) == len(corpus.lengths)
    return parts


def by_sequence(tiny):
    return split(corpus_of(tiny), np.cumsum(tiny.lengths)[:-1])


def sharded(parts, **options):
    return ShardedEvidence(ShardedCorpus.of(parts), **options)


@pytest.mark.parametrize("tiny", TINY.values(), ids=TINY.keys())
@pytest.mark.parametrize("kind", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_expected_counts_of_shards_equal_enumeration_of_all_sequences(tiny, kind):
    parameters = kind(tiny.sizes, seed=1)
    found = expect(sharded(by_sequence(tiny)), [parameters])[0]
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    expected = enumeration.expected_counts(tiny, hidden)
    np.testing.assert_allclose(found.log_likelihood, np.log(hidden.evidence), rtol=1e-12)
    for name in BLOCKS:
        np.testing.assert_allclose(getattr(found.counts, name), getattr(expected, name), rtol=1e-12)


@pytest.fixture(scope="module")
def corpus():
    whole = paper_corpus(seed=4)
    return Corpus(whole.counts, lengths=[60, 60, 1, 79, 30, 70])


@pytest.fixture(scope="module")
def parts(corpus):
    return split(corpus, [60, 120, 121, 200, 230])


@pytest.fixture(scope="module")
def paths(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    for i, part in enumerate(parts):
        part.save(folder / f"{i}.corpus")
    return [folder / f"{i}.corpus" for i in range(len(parts))]


def test_several_sets_in_one_pass_equal_each_alone_to_the_bit(parts):
    evidence = sharded(parts)
    sets = [random_parameters(Sizes(6480, 3, 5), seed) for seed in range(3)]
    together = expect(evidence, sets)
    for parameters, found in zip(sets, together, strict=True):
        alone = expect(evidence, [parameters])[0]
        assert found.log_likelihood == alone.log_likelihood
        for name in BLOCKS:
            assert getattr(found.counts, name).tobytes() == getattr(alone.counts, name).tobytes()


def test_the_sum_is_that_of_shards_counted_alone_and_added_as_a_tree(parts):
    parameters = random_parameters(Sizes(6480, 3, 5), seed=0)
    mixture = expected_counts.Mixture.of(parameters)
    alone = [expected_counts.count_shard(gather(part), mixture) for part in reversed(parts)][::-1]
    a, b, c, d, e, f = alone
    by_hand = ((a + b) + (c + d)) + (e + f)
    found = expect(sharded(parts), [parameters])[0]
    assert found.log_likelihood == by_hand.log_likelihood
    assert found.counts.xi.tobytes() == by_hand.xi.tobytes()
    assert found.counts.pi.tobytes() == by_hand.pi.tobytes()


TOLERANCE = 1e-5
FIT = {"n_iterations": 12, "n_restarts": 3, "random_state": 7}


def bits(model):
    return [
        array.tobytes()
        for array in (
            *model.parameters_,
            model.objective_,
            model.restarts_,
            model.belief_,
            model.transitions_,
        )
    ]


@pytest.mark.parametrize("learning", ["em", "vb"])
def test_the_result_depends_on_the_shards_alone(parts, paths, learning):
    placements = [
        (ShardedCorpus.of(parts), 1),
        (ShardedCorpus.of(parts), 2),
        (ShardedCorpus.of(parts, keep_bytes=0, spill_bytes=0), 4),
        (ShardedCorpus.of(parts, keep_bytes=0), 4),
        (ShardedCorpus.open(paths), 1),
        (ShardedCorpus.open(paths, keep_bytes=0), 2),
        (ShardedCorpus.open(paths, keep_bytes=200_000), 4),
    ]
    found = [
        bits(MarkovClusteringTopicModel(8, 4, learning=learning, n_jobs=n_jobs, **FIT).fit(corpus))
        for corpus, n_jobs in placements
    ]
    assert all(each == found[0] for each in found)


class Shuffled(ShardPasses):
    """Workers that finish in another order than they are given work."""

    def map(self, function, numbers, **options):
        chosen = list(numbers)
        order = np.random.default_rng(0).permutation(chosen)
        results = {number: self.call(function, number) for number in order}
        return iter([results[number] for number in chosen])


class ShuffledEngine:
    def passes(self, corpus, make):
        return Shuffled(corpus, make)


def shuffled(parts):
    return ShardedEvidence(replace(ShardedCorpus.of(parts), workers=ShuffledEngine()))


def test_the_order_in_which_shards_are_counted_does_not_matter(parts):
    parameters = random_parameters(Sizes(6480, 3, 5), seed=0)
    one = expect(shuffled(parts), [parameters])[0]
    other = expect(sharded(parts), [parameters])[0]
    assert one.log_likelihood == other.log_likelihood
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one.counts, other.counts, strict=True))


@pytest.mark.parametrize("learning", ["em", "vb"])
def test_shards_give_what_the_joined_corpus_gives_up_to_rounding(corpus, parts, learning):
    one = MarkovClusteringTopicModel(8, 4, learning=learning, **FIT).fit(corpus)
    other = MarkovClusteringTopicModel(8, 4, learning=learning, **FIT).fit(ShardedCorpus.of(parts))
    np.testing.assert_allclose(other.restarts_, one.restarts_, rtol=1e-10)
    np.testing.assert_allclose(other.parameters_.phi, one.parameters_.phi, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(other.transitions_, one.transitions_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.belief_, one.belief_, rtol=1e-6, atol=1e-12)
    assert other.words_per_document_ == one.words_per_document_
    assert other.clip_ == one.clip_


@pytest.mark.parametrize("learning", ["em", "vb", "gibbs"])
def test_one_shard_is_the_corpus_to_the_bit(corpus, learning, tmp_path):
    options = FIT | {"burn_in": 3, "n_samples": 1, "n_restarts": 1}
    corpus.save(tmp_path / "one.corpus")
    one = MarkovClusteringTopicModel(4, 3, learning=learning, **options).fit(corpus)
    for same in (ShardedCorpus.of([corpus]), ShardedCorpus.open([tmp_path / "one.corpus"])):
        other = MarkovClusteringTopicModel(4, 3, learning=learning, **options).fit(same)
        assert bits(one) == bits(other)


@pytest.mark.parametrize("step", ["em", "vb"])
def test_the_objective_never_falls(parts, step):
    sizes = Sizes(6480, 5, 3)
    evidence, prior = sharded(parts), Prior.of("H+1").concentrations(sizes)
    if step == "em":
        state = em.init([random_parameters(sizes, 1)], evidence, prior)[0]
        advance = lambda state: em.step([state], evidence, prior, 0.0)[0]  # noqa: E731
    else:
        state = vb.init([random_posterior(sizes, 1)], evidence, prior)[0]
        advance = lambda state: vb.step([state], evidence, prior)[0]  # noqa: E731
    for _ in range(15):
        before = state.objective
        state = advance(state)
        assert state.objective >= before - 1e-9 * abs(before)


def test_a_run_that_has_converged_stops_while_others_go_on(parts):
    options = {"tolerance": TOLERANCE, "n_restarts": 4, "n_iterations": 60, "random_state": 1}
    calls = []
    together = MarkovClusteringTopicModel(8, 4, **options).fit(
        ShardedCorpus.of(parts), callback=lambda iteration, objective: calls.append(iteration)
    )
    counts = np.bincount(calls)
    assert counts[0] == 4
    assert counts.min() < 4  # otherwise this compares nothing
    assert (np.diff(counts) <= 0).all()
    evidence, sizes = sharded(parts, min_words=20), Sizes(6480, 8, 4)
    seeds = np.random.SeedSequence(1).spawn(4)
    for objective, seed in zip(together.restarts_, seeds, strict=True):
        prior = Prior.of("H+1").concentrations(sizes)
        start = starts.documents_starts(evidence, sizes, [np.random.default_rng(seed)])[0]
        state, before = em.init([start], evidence, prior)[0], -np.inf
        for _ in range(60):
            if abs(state.objective - before) < TOLERANCE * evidence.n_tokens:
                break
            before = state.objective
            state = em.step([state], evidence, prior, 5e-6)[0]
        assert objective == state.objective


def test_the_start_is_to_the_bit_that_of_the_joined_corpus(corpus, parts):
    sizes = Sizes(6480, 7, 5)
    one = starts.documents_starts(gather(corpus), sizes, [np.random.default_rng(3)])[0]
    other = starts.documents_starts(sharded(parts), sizes, [np.random.default_rng(3)])[0]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_of_too_many_documents_seeds_are_some_of_each_shard(parts, monkeypatch):
    monkeypatch.setattr(starts, "MOST_SEEDED", 100)
    evidence = sharded(parts)
    found = starts._seeds(evidence, 4, [np.random.default_rng(seed) for seed in range(20)])
    edges = pairwise(evidence.corpus.starts)
    allowed = np.concatenate([np.arange(start, stop, 3) for start, stop in edges])
    assert len(np.unique(np.concatenate(found))) > 20
    monkeypatch.setattr(starts, "MOST_SEEDED", 1000)
    alone = gather(Corpus.joined(parts).take(allowed))
    for seed, own in enumerate(found):
        (expected,) = starts._seeds(alone, 4, [np.random.default_rng(seed)])
        assert own.tolist() == allowed[expected].tolist()
    monkeypatch.setattr(starts, "MOST_SEEDED", 100)
    other = starts._seeds(shuffled(parts), 4, [np.random.default_rng(2)])
    assert other[0].tolist() == found[2].tolist()


def test_what_made_the_shards_is_recovered():
    sizes = Sizes(40, 4, 3)
    rng = np.random.default_rng(5)
    phi = np.full((40, 4), 1e-3)
    for k in range(4):
        phi[10 * k : 10 * k + 10, k] = rng.uniform(0.5, 1.0, 10)
    theta = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.0, 0.05, 0.45], [0.05, 0.0, 0.45]])
    xi = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    true = Parameters(phi / phi.sum(axis=0), theta / theta.sum(axis=0), np.full(3, 1 / 3), xi)
    parts = [generate(true, [50] * 200, rng).corpus for _ in range(6)]
    model = MarkovClusteringTopicModel(4, 3, n_restarts=5, random_state=0)
    model.fit(ShardedCorpus.of(parts))
    found = inspection.aligned(model.parameters_, true)
    np.testing.assert_allclose(
        found.word_given_behaviour, true.word_given_behaviour, rtol=0, atol=0.01
    )
    np.testing.assert_allclose(found.xi, true.xi, rtol=0, atol=0.06)
    assert sizes == model.sizes


def test_few_shards_are_in_memory_and_runs_share_every_pass(paths, monkeypatch):
    loaded = LoadedShards(monkeypatch)
    gc.collect()
    n_loaded = []
    for n_restarts in (1, 6):
        loaded.clear()
        corpus = ShardedCorpus.open(paths, keep_bytes=0, spill_bytes=0)
        MarkovClusteringTopicModel(
            4, 3, n_restarts=n_restarts, n_iterations=5, random_state=0, init="random"
        ).fit(corpus)
        n_loaded.append(len(loaded))
    assert loaded.most == 1
    assert n_loaded[0] == n_loaded[1]
    for limits in ({}, {"keep_bytes": 100_000}, {"keep_bytes": 0}):
        loaded.clear()
        kept = ShardedCorpus.open(paths, **limits)
        MarkovClusteringTopicModel(4, 3, n_restarts=2, n_iterations=5, random_state=0).fit(kept)
        assert len(loaded) == 2 * len(paths)  # gathered, and the lengths of documents


def test_picked_documents_are_those_of_the_whole(corpus, parts):
    documents = np.array([299, 0, 121, 120, 0, 200])
    for found, wanted in zip(
        sharded(parts).pick(documents), gather(corpus).pick(documents), strict=True
    ):
        assert found.words.tolist() == wanted.words.tolist()
        assert found.counts.tolist() == wanted.counts.tolist()


def test_what_cannot_be_learnt_is_told(parts):
    corpus = ShardedCorpus.of(parts)
    for learning in ("gibbs", "blocked-gibbs"):
        with pytest.raises(InvalidInputError, match=f'"{learning}" keeps a topic .* 6 shards'):
            MarkovClusteringTopicModel(learning=learning).fit(corpus)
    with pytest.raises(InvalidInputError, match="no document to learn from: the longest has"):
        MarkovClusteringTopicModel(min_words=10_000).fit(corpus)
    with pytest.raises(InvalidInputError, match="its own lengths"):
        MarkovClusteringTopicModel().fit(corpus, lengths=[300])
    model = MarkovClusteringTopicModel(2, 2, n_iterations=1, random_state=0).fit(corpus)
    with pytest.raises(InvalidInputError, match="only fit takes a corpus in shards"):
        model.score_samples(corpus)
    impossible = random_parameters(Sizes(6480, 2, 2), 0)
    word = parts[3].counts.indices[0]
    impossible.phi[word] = 0.0
    with pytest.raises(LearningError, match=r"shard \d: document \d+ has probability zero"):
        expect(sharded(parts), [impossible])


def test_a_pass_is_interrupted_between_shards(parts):
    seen = []

    def check():
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sharded(parts).interruptible(check).map_reduce(lambda shard: 0)
    assert len(seen) == 3


def test_shards_may_be_empty(parts):
    nothing = parts[0].take([])
    with_empty = ShardedCorpus.of([*parts, nothing])
    model = MarkovClusteringTopicModel(4, 3, **FIT).fit(with_empty)
    other = MarkovClusteringTopicModel(4, 3, **FIT).fit(ShardedCorpus.of(parts))
    np.testing.assert_allclose(model.restarts_, other.restarts_, rtol=1e-12)
    np.testing.assert_allclose(model.belief_, other.belief_, rtol=1e-9, atol=1e-12)


class RemotePasses(ShardPasses):
    """Workers in other processes: what they are to do and what they answer is pickled."""

    def map(self, function, numbers, **options):
        task = pickle.dumps(function)
        assert len(task) < 20_000_000
        for number in numbers:
            (answer,) = super().map(pickle.loads(task), [number], **options)  # noqa: S301
            yield pickle.loads(pickle.dumps(answer))  # noqa: S301


@pytest.mark.parametrize("learning", ["em", "vb"])
def test_passes_can_be_sent_to_workers_elsewhere(parts, learning, monkeypatch):
    options = FIT | {"learning": learning, "n_iterations": 3}
    here = MarkovClusteringTopicModel(4, 3, **options).fit(ShardedCorpus.of(parts))
    monkeypatch.setattr("habitus.corpus.shards.ShardPasses", RemotePasses)
    there = MarkovClusteringTopicModel(4, 3, **options).fit(ShardedCorpus.of(parts))
    assert bits(here) == bits(there)


def test_an_exception_of_the_callback_ends_learning(parts):
    class EnoughError(Exception):
        pass

    def callback(iteration, objective):
        if iteration == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        MarkovClusteringTopicModel(4, 3, **FIT).fit(ShardedCorpus.of(parts), callback=callback)
