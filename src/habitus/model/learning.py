"""Where learning starts: drawn around documents of the corpus, or anywhere at random.

The learning algorithms, each from start to result, behind one signature.

Independent runs of a learner, of which the best is kept.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from habitus.arrays import Array
from habitus.compiled import compiled
from habitus.errors import InvalidInputError
from habitus.model import blocked_gibbs, em, gibbs, vb
from habitus.model.expected_counts import Evidence, log_likelihoods, padded, scatter
from habitus.model.gibbs import draw_topics
from habitus.model.messages import most_probable_path
from habitus.model.parameters import (
    Assignments,
    Concentrations,
    DirichletPosterior,
    Parameters,
    Sizes,
    block_shapes,
    sample_dirichlet,
)

# How strongly a start follows its documents: the rest keeps every behaviour able to move.
OWN_SHARE = 0.9


def random_start(sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Every column uniform over its simplex."""
    return Parameters(*(sample_dirichlet(np.ones(shape), rng) for shape in block_shapes(sizes)))


def documents_start(evidence: Evidence, sizes: Sizes, rng: np.random.Generator) -> Parameters:
    """Behaviours that look like documents far apart, topics that look like behaviours.

    Documents are so long that the first E-step all but decides every behaviour: a start that is
    equally wrong everywhere ends in a poor optimum. Seeds are drawn as in k-means++ on the square
    roots of word frequencies (Hellinger distance), every document goes to its nearest seed, and
    topics are random thinnings of what the behaviours are made of.
    """
    n_words, n_topics, n_behaviours = sizes
    behaviours = _groups(evidence, n_behaviours, rng)
    overall = behaviours.sum(axis=1, keepdims=True) + 1
    _mixed(behaviours, overall)
    home = np.arange(n_topics) % n_behaviours
    phi = rng.standard_gamma(1.0, (n_words, n_topics))
    phi *= behaviours[:, home]
    own = (home[:, None] == np.arange(n_behaviours)).astype(np.float64)
    _, shape, *chain = block_shapes(sizes)
    theta, pi, xi = (sample_dirichlet(np.ones(shape), rng) for shape in (shape, *chain))
    return Parameters(_mixed(phi, overall), _mixed(own, theta), pi, xi)


def _groups(evidence: Evidence, n_groups: int, rng: np.random.Generator) -> Array:
    """Word counts of documents grouped around seeds, words x groups."""
    likeness = _likeness(evidence, _seeds(evidence, n_groups, rng))
    member = np.eye(n_groups)[likeness.argmax(axis=1)]
    groups = scatter(
        evidence.indptr, evidence.words, evidence.counts, padded(member), evidence.n_words
    )
    return groups[:, :n_groups]


def _seeds(evidence: Evidence, n_seeds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Documents far apart: each in proportion to its squared distance from those before it.

    Of a few candidates the one that leaves the least distance is taken, as in k-means++.
    """
    n_candidates = 2 + int(np.log(n_seeds))
    filled = (np.diff(evidence.indptr) > 0).astype(np.float64)
    distance = filled
    seeds = np.empty(n_seeds, dtype=np.int64)
    for i in range(n_seeds):
        weights = distance if distance.any() else filled
        candidates = rng.choice(len(weights), n_candidates, p=weights / weights.sum())
        left = np.minimum(distance[:, None], np.maximum(1 - _likeness(evidence, candidates), 0))
        best = int(left.sum(axis=0).argmin())
        seeds[i], distance = candidates[best], left[:, best]
    return seeds


def _likeness(evidence: Evidence, seeds: NDArray[np.int64]) -> Array:
    """Cosine of the square roots of word frequencies, documents x seeds."""
    return _cosines(evidence.indptr, evidence.words, evidence.counts, evidence.n_words, seeds)


@compiled
def _cosines(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Array,
    n_words: int,
    seeds: NDArray[np.int64],
) -> Array:
    """`sqrt(C / totals) @ sqrt(C[seeds] / totals[seeds]).T`; 0 for an empty document."""
    roots = np.zeros((n_words, len(seeds)))
    for s in range(len(seeds)):
        for j in range(indptr[seeds[s]], indptr[seeds[s] + 1]):
            roots[words[j], s] = np.sqrt(counts[j])
    cosines = np.zeros((len(indptr) - 1, len(seeds)))
    totals = np.zeros(len(indptr) - 1)
    for t in range(len(totals)):
        for j in range(indptr[t], indptr[t + 1]):
            totals[t] += counts[j]
            root = np.sqrt(counts[j])
            for s in range(len(seeds)):
                cosines[t, s] += root * roots[words[j], s]
    for t in range(len(totals)):
        for s in range(len(seeds)):
            if cosines[t, s] > 0:
                cosines[t, s] /= np.sqrt(totals[t]) * np.sqrt(totals[seeds[s]])
    return cosines


def posterior_around(
    parameters: Parameters, evidence: Evidence, prior: Concentrations
) -> DirichletPosterior:
    """A q(Omega) with these means, as if the corpus had been seen under them."""
    _, n_topics, n_behaviours = parameters.sizes
    n_tokens = evidence.counts.sum()
    strengths = (
        n_tokens / n_topics,
        n_tokens / n_behaviours,
        evidence.first.sum(),
        evidence.n_documents / n_behaviours,
    )
    return DirichletPosterior(
        *(h + n * block for h, n, block in zip(prior, strengths, parameters, strict=True))
    )


def assignments_under(
    parameters: Parameters, path: NDArray[np.int64], evidence: Evidence, rng: np.random.Generator
) -> Assignments:
    """Draw a topic for every token, given the behaviour of its document."""
    seed = rng.integers(2**64, dtype=np.uint64)
    topics = draw_topics(
        evidence.indptr, evidence.words, evidence.counts, path, *parameters[:2], seed
    )
    return Assignments(topics, path)


def _mixed(own: Array, rest: Array) -> Array:
    """Columns that follow `own`, with a share of `rest`; all of `rest` where `own` is empty.

    In place of `own`.
    """
    total = own.sum(axis=0)
    share = np.where(total > 0, OWN_SHARE, 0.0)
    own *= share / np.where(total > 0, total, 1)
    own += (1 - share) * (rest / rest.sum(axis=0))
    return own


Callback = Callable[[int, float], None]
Init = Parameters | DirichletPosterior | Assignments | str | None


@dataclass(frozen=True)
class Settings:
    """What a learner needs beside the documents."""

    sizes: Sizes
    prior: Concentrations
    n_iterations: int
    tolerance: float | None
    smoothing: float
    burn_in: int
    n_samples: int
    thinning: int
    init: Init


class Learnt(NamedTuple):
    """The outcome of one run."""

    parameters: Parameters
    objective: Array
    """The objective after each iteration."""
    degenerate: tuple[str, ...] = ()
    """What ended without data of its own, in words."""
    posterior: DirichletPosterior | None = None
    samples: tuple[Parameters, ...] = ()
    assignments: Assignments | None = None


class Learner(Protocol):
    """One learning algorithm."""

    def __call__(
        self, evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
    ) -> Learnt:
        """Learn from the evidence, telling the callback of every iteration."""
        ...


def learn_em(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Maximum a posteriori estimates by EM."""
    start = settings.init
    if not isinstance(start, Parameters):
        start = _start(evidence, settings, rng)
    state, trace = _climb(
        em.init(start, evidence, settings.prior),
        lambda state: em.step(state, evidence, settings.prior, settings.smoothing),
        evidence, settings, callback,
    )  # fmt: skip
    return Learnt(state.parameters, trace, _notes(state))


def learn_vb(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Dirichlet posteriors by variational Bayes."""
    start = settings.init
    if not isinstance(start, DirichletPosterior):
        start = posterior_around(_start(evidence, settings, rng), evidence, settings.prior)
    state, trace = _climb(
        vb.init(start, evidence, settings.prior),
        lambda state: vb.step(state, evidence, settings.prior),
        evidence, settings, callback,
    )  # fmt: skip
    return Learnt(state.posterior.mean(), trace, posterior=state.posterior)


def learn_gibbs(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Samples of the hidden variables by the paper's collapsed sampler."""
    tokens = gibbs.spell(evidence)
    state, trace, samples = _walk(
        gibbs.init(
            _start_assignments(evidence, settings, rng), tokens, settings.sizes, settings.prior
        ),
        lambda state: gibbs.step(state, tokens, settings.prior, rng),
        settings, callback,
    )  # fmt: skip
    return Learnt(samples[-1], trace, samples=samples, assignments=state.assignments)


def learn_blocked_gibbs(
    evidence: Evidence, settings: Settings, rng: np.random.Generator, callback: Callback
) -> Learnt:
    """Samples of the hidden variables by the blocked sampler."""
    _, trace, samples = _walk(
        blocked_gibbs.init(
            _start_parameters(evidence, settings, rng), evidence, settings.prior, rng
        ),
        lambda state: blocked_gibbs.step(state, evidence, settings.prior, rng),
        settings, callback,
    )  # fmt: skip
    return Learnt(samples[-1], trace, samples=samples)


LEARNERS: dict[str, Learner] = {
    "em": learn_em,
    "vb": learn_vb,
    "gibbs": learn_gibbs,
    "blocked-gibbs": learn_blocked_gibbs,
}


def check_init(init: Init, learning: str, sizes: Sizes, evidence: Evidence) -> Init:
    """The given start as it will be used, or an error that says what the learner takes."""
    if init is None or (isinstance(init, str) and init == "random"):
        return init
    wanted = {"em": Parameters, "vb": DirichletPosterior}.get(learning, Assignments)
    if not isinstance(init, wanted) or isinstance(init, str):
        raise InvalidInputError(
            f'init for learning="{learning}" must be None, "random" or {wanted.__name__}, '
            f"found {init if isinstance(init, str) else type(init).__name__}"
        )
    if isinstance(init, Assignments):
        return init.checked(sizes, int(evidence.counts.sum()), evidence.n_documents)
    return init.checked(sizes)


def _start(evidence: Evidence, settings: Settings, rng: np.random.Generator) -> Parameters:
    if settings.init == "random":
        return random_start(settings.sizes, rng)
    return documents_start(evidence, settings.sizes, rng)


def _start_parameters(
    evidence: Evidence, settings: Settings, rng: np.random.Generator
) -> Parameters:
    if not isinstance(settings.init, Assignments):
        return _start(evidence, settings, rng)
    given = gibbs.init(settings.init, gibbs.spell(evidence), settings.sizes, settings.prior)
    return blocked_gibbs.draw_parameters(given.counts, settings.prior, rng)


def _start_assignments(
    evidence: Evidence, settings: Settings, rng: np.random.Generator
) -> Assignments:
    if isinstance(settings.init, Assignments):
        return settings.init
    if settings.init == "random":
        _, n_topics, n_behaviours = settings.sizes
        return Assignments(
            rng.integers(n_topics, size=int(evidence.counts.sum()), dtype=np.uint16),
            rng.integers(n_behaviours, size=evidence.n_documents),
        )
    start = documents_start(evidence, settings.sizes, rng)
    log_like = log_likelihoods(evidence, start.phi, start.theta)
    path: NDArray[np.int64] = most_probable_path(log_like, evidence.first, start.pi, start.xi)
    return assignments_under(start, path, evidence, rng)


Climber = TypeVar("Climber", em.State, vb.State)
Walker = TypeVar("Walker", gibbs.State, blocked_gibbs.State)


def _climb(
    state: Climber,
    step: Callable[[Climber], Climber],
    evidence: Evidence,
    settings: Settings,
    callback: Callback,
) -> tuple[Climber, Array]:
    """Iterate; stop early once an iteration gains less than `tolerance` a token.

    Gives the last state and the objective after each iteration.
    """
    trace = []
    threshold = -np.inf
    if settings.tolerance is not None:
        threshold = settings.tolerance * evidence.counts.sum()
    for iteration in range(settings.n_iterations):
        before = state.objective
        state = step(state)
        trace.append(state.objective)
        callback(iteration, state.objective)
        if abs(state.objective - before) < threshold:
            break
    return state, np.array(trace)


def _walk(
    state: Walker, step: Callable[[Walker], Walker], settings: Settings, callback: Callback
) -> tuple[Walker, Array, tuple[Parameters, ...]]:
    """Sweep; keep a sample at the end of the burn-in, and one every `thinning` sweeps after it."""
    trace = []
    samples = []
    for sweep in range(settings.burn_in + (settings.n_samples - 1) * settings.thinning):
        state = step(state)
        trace.append(state.objective)
        callback(sweep, state.objective)
        after = sweep + 1 - settings.burn_in
        if after >= 0 and after % settings.thinning == 0:
            samples.append(gibbs.estimate(state.counts, settings.prior))
    return state, np.array(trace), tuple(samples)


def _notes(state: em.State) -> tuple[str, ...]:
    """What the dead columns of EM's last M-step mean."""
    if state.dead is None:
        return ()
    phi, theta, _, xi = map(np.flatnonzero, state.dead)
    return (
        *(f"topic {y + 1} has no words" for y in phi),
        *(f"behaviour {z + 1} has no topics" for z in theta),
        *(f"behaviour {z + 1} is never left" for z in xi),
    )


# Entries (words of documents) under which two threads take longer than one.
WORTH_A_THREAD = 20_000


def best_of_restarts(
    learner: Learner,
    evidence: Evidence,
    settings: Settings,
    callback: Callback,
    *,
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: int | None,
) -> tuple[Learnt, Array]:
    """The best of one run a seed, and the objective of each.

    They run in threads, as the kernels run without the interpreter's lock; a corpus so small
    that threads would mostly wait for that lock has one. Never in the main thread: Ctrl-C
    would reach it inside a kernel, where Numba does not expect an exception.
    """
    stopped = Event()

    def tell(iteration: int, objective: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        callback(iteration, objective)

    def run(rng: np.random.Generator) -> Learnt:
        return learner(evidence, settings, rng, tell)

    n_threads = effective_n_jobs(n_jobs) if len(evidence.words) > WORTH_A_THREAD else 1
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return _best(pool.map(run, map(np.random.default_rng, seeds)))
        finally:
            stopped.set()


def _best(runs: Iterable[Learnt]) -> tuple[Learnt, Array]:
    """The first run of the highest objective, and the objective of each; the rest is let go."""
    best, objectives = None, []
    for run in runs:
        objectives.append(run.objective[-1])
        if best is None or run.objective[-1] > best.objective[-1]:
            best = run
    if best is None:
        raise InvalidInputError("n_restarts must be at least 1")
    return best, np.array(objectives)
