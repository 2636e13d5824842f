"""Blocked Gibbs sampler: conditionals, long-run frequencies, joint distribution (Geweke)."""

import numpy as np
import pytest

from habitus.model import blocked_gibbs, messages
from habitus.model.expected_counts import Evidence, ExpectedCounts
from habitus.model.parameters import PAPER, Sizes, block_shapes
from reference import enumeration
from reference.corpora import TINY, Tiny, random_parameters, uneven_prior
from reference.joint_distribution import (
    FIRST,
    N_TOKENS,
    SIZES,
    Draws,
    draw_rows,
    hyperparameters,
    mutated,
    z_scores,
)
from reference.long_run import assert_agrees_with_posterior


class Recorder:
    """Replacement of a generator that records its arguments and returns the mean."""

    def __init__(self):
        self.asked = []

    def multinomial(self, n, shares):
        self.asked.append((n, shares))
        return n[:, None] * shares

    def standard_gamma(self, shape):
        self.asked.append(shape)
        return shape


def path_counts(tiny, path, parameters, rng):
    return blocked_gibbs._split(np.array(path), tiny.evidence, parameters, rng)


@pytest.mark.parametrize("case", TINY)
def test_topics_are_split_by_their_enumerated_conditionals(case):
    """p(y_i | x, z, Omega): the mean counts given a path are those of that path's enumeration."""
    tiny = TINY[case]
    parameters = random_parameters(tiny.sizes, seed=1)
    hidden = enumeration.enumerate_hidden(tiny, parameters)
    for p in range(0, len(hidden.paths), 3):
        only = hidden._replace(paths=hidden.paths[[p]], joint=hidden.joint[[p]])
        expected = enumeration.expected_counts(tiny, only)
        # Whole numbers in, so that the recorder's mean is exact in both its blocks.
        recorder = Recorder()
        found = path_counts(tiny, hidden.paths[p], parameters, recorder)
        for name in ExpectedCounts._fields:
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-15
            )
        for _, shares in recorder.asked:
            np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_parameters_are_drawn_from_counts_plus_hyperparameters():
    tiny = TINY["three topics, three behaviours"]
    prior = uneven_prior(tiny.sizes)
    parameters = random_parameters(tiny.sizes, seed=2)
    counts = path_counts(tiny, [0, 2, 1, 1], parameters, np.random.default_rng(3))
    recorder = Recorder()
    found = blocked_gibbs.posterior_draw(counts, prior, recorder)
    for asked, block, n, h in zip(recorder.asked, found, counts, prior, strict=True):
        concentration = n + np.broadcast_to(h, n.shape)
        np.testing.assert_allclose(asked, concentration, rtol=1e-14)
        np.testing.assert_allclose(block, concentration / concentration.sum(axis=0), rtol=1e-14)


def test_drawn_parameters_have_the_moments_of_their_dirichlets():
    tiny = TINY["three topics, three behaviours"]
    prior = uneven_prior(tiny.sizes)
    parameters = random_parameters(tiny.sizes, seed=4)
    rng = np.random.default_rng(5)
    counts = path_counts(tiny, [0, 2, 1, 1], parameters, rng)
    n_draws = 10_000
    draws = [blocked_gibbs.posterior_draw(counts, prior, rng) for _ in range(n_draws)]
    for k, (n, h) in enumerate(zip(counts, prior, strict=True)):
        block = np.stack([draw[k] for draw in draws])
        concentration = n + np.broadcast_to(h, n.shape)
        total = concentration.sum(axis=0)
        mean = concentration / total
        variance = mean * (1 - mean) / (total + 1)
        scores = (block.mean(axis=0) - mean) / np.sqrt(variance / n_draws)
        assert np.abs(scores).max() < 4.5
        np.testing.assert_allclose(block.var(axis=0), variance, rtol=0.15)


@pytest.mark.parametrize("name", PAPER)
def test_objective_is_the_log_joint_of_the_counts(name):
    """By the chain rule, with topics put back to tokens in any way that has these counts."""
    tiny = Tiny(((0, 0), (), (1,), (2,)), (3, 1), Sizes(3, 2, 2))
    prior = PAPER[name].concentrations(tiny.sizes)
    rng = np.random.default_rng(6)
    state = blocked_gibbs.init(random_parameters(tiny.sizes, seed=7), tiny.evidence, prior, rng)
    for _ in range(20):
        state = blocked_gibbs.step(state, tiny.evidence, prior, rng)
        # Every word is in one document only: its tokens can take its topics in any order.
        topics = np.concatenate(
            [np.repeat([0, 1], state.counts.phi[x].astype(int)) for x in range(3)]
        )
        expected = enumeration.log_collapsed(tiny, topics, state.behaviours, prior)
        np.testing.assert_allclose(state.objective, expected, rtol=1e-12)


def test_long_run_agrees_with_the_enumerated_posterior():
    tiny = Tiny(((0, 0, 1), (2,), (), (1, 2)), (3, 1), Sizes(3, 2, 2))
    prior = uneven_prior(tiny.sizes)
    rng = np.random.default_rng(8)
    state = blocked_gibbs.init(random_parameters(tiny.sizes, seed=9), tiny.evidence, prior, rng)
    paths, samples = [], []
    for _ in range(4_000):
        state = blocked_gibbs.step(state, tiny.evidence, prior, rng)
        paths.append(state.behaviours)
        samples.append(state.counts)
    assert_agrees_with_posterior(tiny, prior, np.array(paths), samples)


def successive_conditional(sampler, n_sweeps, seed):
    """Alternate between the sampler's two halves and new topics and words given the parameters."""
    rng = np.random.default_rng(seed)
    prior = hyperparameters()
    n_words, _, n_behaviours = SIZES
    document = np.repeat(np.arange(len(N_TOKENS)), N_TOKENS)
    cells = len(N_TOKENS) * n_words
    path = rng.integers(n_behaviours, size=len(N_TOKENS))
    counts = ExpectedCounts(*(np.zeros(shape) for shape in block_shapes(SIZES)))
    samples = []
    for _ in range(n_sweeps):
        parameters = sampler.posterior_draw(counts, prior, rng)  # p(Omega | x, y, z)
        topics = draw_rows(parameters.theta.T[path[document]], rng)  # p(x, y | z, Omega)
        words = draw_rows(parameters.phi.T[topics], rng)
        table = np.bincount(document * n_words + words, minlength=cells).reshape(-1, n_words)
        evidence = Evidence(
            np.concatenate([[0], np.cumsum((table > 0).sum(axis=1))]),
            np.nonzero(table)[1].astype(np.int32),
            table[table > 0].astype(float),
            FIRST,
            n_words,
        )
        state = sampler.init(parameters, evidence, prior, rng)  # p(y, z | x, Omega)
        path, counts = state.behaviours, state.counts
        samples.append(counts)
    return Draws(*(np.stack(blocks) for blocks in zip(*samples, strict=True)))


def test_joint_distribution():
    chain = successive_conditional(blocked_gibbs, n_sweeps=5_000, seed=11)
    assert np.abs(z_scores(chain)).max() < 4.5


MUTATIONS = {
    "hyperparameters counted twice": ("(n + h, rng)", "(n + 2 * h, rng)"),
    "hyperparameters drawn towards one": ("(n + h, rng)", "(n + 0.5 * h + 0.5, rng)"),
    "steps counted backwards": ("(path[steps], path[steps - 1])", "(path[steps - 1], path[steps])"),
    "topics regardless of behaviour": ("phi[seen] * parameters.theta[:, z]", "phi[seen] * 1.0"),
    "every document opens a sequence": ("one_hot[opening].sum(axis=0)", "one_hot.sum(axis=0)"),
}


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS.keys())
def test_joint_distribution_finds_a_broken_conditional(mutation, tmp_path, monkeypatch):
    mutant = mutated(blocked_gibbs, *mutation, tmp_path, monkeypatch)
    chain = successive_conditional(mutant, n_sweeps=2_000, seed=12)
    assert np.abs(z_scores(chain)).max() > 6


def test_joint_distribution_finds_a_path_sampled_without_its_next_step(tmp_path, monkeypatch):
    """Drawing every behaviour from what is known up to its document forgets what comes after."""
    old = "if t == n_documents - 1 or first[t + 1]:\n            share = np.exp("
    mutant = mutated(messages, old, old.replace("if t", "if True or t"), tmp_path, monkeypatch)
    monkeypatch.setattr(blocked_gibbs, "sample_backward", mutant.sample_backward)
    monkeypatch.setattr(blocked_gibbs, "filter_forward", mutant.filter_forward)
    chain = successive_conditional(blocked_gibbs, n_sweeps=3_000, seed=13)
    assert np.abs(z_scores(chain)).max() > 6
