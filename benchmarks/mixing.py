"""Blocked against collapsed Gibbs: effective samples per second of the log joint ln p(x, y, z).

Both samplers draw from the same posterior and report the same quantity. They start from the same
point: the model that made the documents, after a burn-in of the blocked sampler; a tenth of each
chain is dropped besides. The effective samples of a sweep come from long chains, one a core; the
time of a sweep is taken apart from that, both samplers in turn on one core. If the chains are
stationary, each agrees with itself between its halves and both agree on the mean: the notes say by
how many standard errors they do not. The prior is the paper's type H, under which all topics stay
in use.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import corpora
import effective
import fitted
from habitus import Parameters
from habitus.model.blocked_gibbs import posterior_draw
from report import Row, main, progress
from timing import Rounds, interleave, n_cores, repeated, single_core

PRIOR = "H"
BURN_IN, DROPPED = 500, 0.1
N_TIMED = 10
LARGEST_Z = 3.0
FEWEST = 20
CHAINS: dict[str, type[fitted.BlockedChain] | type[fitted.CollapsedChain]] = {
    "blocked": fitted.BlockedChain,
    "collapsed": fitted.CollapsedChain,
}


class Job(NamedTuple):
    """One long chain."""

    sampler: str
    n_tokens: int
    n_sweeps: int


# As many effective samples as some two minutes on two cores allow.
JOBS = (
    Job("collapsed", 2_000_000, 2600),
    Job("blocked", 2_000_000, 6000),
    Job("blocked", 200_000, 5000),
    Job("collapsed", 200_000, 3000),
)
QUICK = 40


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a number of tokens."""
    effective.check()
    shorter = QUICK if quick else 1
    jobs = [job._replace(n_sweeps=job.n_sweeps // shorter) for job in JOBS]
    sizes = sorted({job.n_tokens for job in jobs})
    with ProcessPoolExecutor(n_cores(), mp_context=get_context("spawn")) as pool:
        progress(f"burn-in of {BURN_IN // shorter} sweeps")
        points = pool.map(partial(start, BURN_IN // shorter), sizes)
        starts = dict(zip(sizes, points, strict=True))
        progress(f"{len(jobs)} chains on {n_cores()} cores")
        traces = pool.map(run_chain, jobs, [starts[job.n_tokens] for job in jobs])
        chains = {(j.sampler, j.n_tokens): trace for j, trace in zip(jobs, traces, strict=True)}
    single_core()
    for n in sizes:
        found = {name: chains[name, n] for name in CHAINS}
        yield compare(n, found, time_sweeps(n, starts[n], 3 if quick else 9))


def made_of(n_tokens: int) -> corpora.Made:
    """300 documents, longer ones for more tokens."""
    return corpora.make(tokens_per_document=n_tokens / corpora.N_DOCUMENTS)


def start(n_sweeps: int, n_tokens: int) -> Parameters:
    """A draw of the parameters after some sweeps from the model that made the documents."""
    made = made_of(n_tokens)
    chain = fitted.BlockedChain(made.corpus, PRIOR, made.parameters)
    for _ in range(n_sweeps):
        chain()
    return posterior_draw(chain.state.counts, chain.prior, chain.rng)


def run_chain(job: Job, parameters: Parameters) -> effective.Trace:
    """One chain from start to summary, counts and log joint checked at its end."""
    chain = CHAINS[job.sampler](made_of(job.n_tokens).corpus, PRIOR, parameters, seed=1)
    values = [chain() for _ in range(job.n_sweeps)]
    chain.check()
    return effective.summary(values[int(DROPPED * job.n_sweeps) :])


def time_sweeps(n_tokens: int, parameters: Parameters, rounds: int) -> Rounds:
    """Seconds a sweep of both samplers."""
    corpus = made_of(n_tokens).corpus
    chains = {name: kind(corpus, PRIOR, parameters) for name, kind in CHAINS.items()}
    return interleave({name: repeated(chain, N_TIMED) for name, chain in chains.items()}, rounds)


def compare(n_tokens: int, traces: dict[str, effective.Trace], rounds: Rounds) -> Row:
    """Effective samples a second, and what they rest on."""
    rates = {
        name: trace.effective / trace.size / rounds.median(name) for name, trace in traces.items()
    }
    words = [
        f"{name} {trace.effective:.0f} effective (± {trace.uncertainty:.0%}) of {trace.size} "
        f"sweeps of {rounds.median(name) * 1e3:.2f} ms, drift {trace.drift:+.1f} s.e."
        for name, trace in traces.items()
    ]
    gap = effective.difference(traces["blocked"], traces["collapsed"])
    steady = max(abs(gap), *(abs(trace.drift) for trace in traces.values())) < LARGEST_Z
    verdict = "stationary as far as seen" if steady else "NOT STATIONARY: read with care"
    if min(trace.effective for trace in traces.values()) < FEWEST:
        verdict = f"too short to tell: fewer than {FEWEST} effective samples"
    return Row(
        what=f"effective samples per second of the log joint, {n_tokens:,} tokens: "
        "blocked over collapsed",
        ours=rates["blocked"],
        peer=rates["collapsed"],
        unit="/s",
        ratio=rates["blocked"] / rates["collapsed"],
        note="; ".join([*words, f"means differ by {gap:+.1f} s.e.", verdict]),
    )


if __name__ == "__main__":
    main(measure)
