"""Blocked against collapsed Gibbs: effective samples a second of the log joint ln p(x, y, z).

Both samplers draw from the same posterior and report the same quantity. They start from the same
point, the best of several VB runs, which lies in one mode of the posterior already; a tenth of each
chain is dropped as burn-in. The effective samples of a sweep come from long chains, one a core; the
time of a sweep is taken apart from that, both samplers in turn on one core. If the chains are
stationary, each agrees with itself between its halves and both agree on the mean: the notes say by
how many standard errors they do not.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import corpora
import effective
import fitted
from habitus import Corpus, MarkovClusteringTopicModel, Parameters
from report import Row, main, progress
from timing import Rounds, interleave, n_cores, repeated, single_core

PRIOR = "H+1"
BURN_IN = 0.1
N_TIMED = 10
LARGEST_Z = 3.0
FEWEST = 30
CHAINS: dict[str, type[fitted.BlockedChain] | type[fitted.CollapsedChain]] = {
    "blocked": fitted.BlockedChain,
    "collapsed": fitted.CollapsedChain,
}


class Job(NamedTuple):
    """One long chain."""

    sampler: str
    n_tokens: int
    n_sweeps: int


# Of the order of a hundred effective samples each, where that takes no more than a minute.
JOBS = (
    Job("collapsed", 2_000_000, 2000),
    Job("blocked", 2_000_000, 4000),
    Job("blocked", 200_000, 5000),
    Job("collapsed", 200_000, 5000),
)
QUICK = 40


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a number of tokens."""
    effective.check()
    jobs = [job._replace(n_sweeps=job.n_sweeps // QUICK) for job in JOBS] if quick else JOBS
    starts = {n: start(n, quick) for n in sorted({job.n_tokens for job in jobs})}
    traces = run_chains(jobs, starts)
    single_core()
    for n, parameters in starts.items():
        rounds = time_sweeps(n, parameters, 3 if quick else 9)
        yield compare(n, {name: traces[name, n] for name in CHAINS}, rounds)


def corpus_of(n_tokens: int) -> Corpus:
    """300 documents, longer ones for more tokens."""
    return corpora.make(tokens_per_document=n_tokens / corpora.N_DOCUMENTS).corpus


def start(n_tokens: int, quick: bool) -> Parameters:
    """Best of several VB runs."""
    progress(f"VB start for {n_tokens:,} tokens")
    model = MarkovClusteringTopicModel(
        learning="vb", prior=PRIOR, n_iterations=30 if quick else 200, n_restarts=4,
        n_jobs=n_cores(), random_state=0,
    )  # fmt: skip
    return model.fit(corpus_of(n_tokens)).parameters_


def run_chains(
    jobs: list[Job] | tuple[Job, ...], starts: dict[int, Parameters]
) -> dict[tuple[str, int], effective.Trace]:
    """Summaries of all chains, run side by side."""
    progress(f"{len(jobs)} chains on {n_cores()} cores")
    with ProcessPoolExecutor(n_cores(), mp_context=get_context("spawn")) as pool:
        futures = {job: pool.submit(run_chain, job, starts[job.n_tokens]) for job in jobs}
        return {(job.sampler, job.n_tokens): future.result() for job, future in futures.items()}


def run_chain(job: Job, parameters: Parameters) -> effective.Trace:
    """One chain from start to summary, counts and log joint checked at its end."""
    chain = CHAINS[job.sampler](corpus_of(job.n_tokens), PRIOR, parameters)
    values = [chain() for _ in range(job.n_sweeps)]
    chain.check()
    return effective.summary(values[int(BURN_IN * job.n_sweeps) :])


def time_sweeps(n_tokens: int, parameters: Parameters, rounds: int) -> Rounds:
    """Seconds a sweep of both samplers."""
    corpus = corpus_of(n_tokens)
    chains = {name: kind(corpus, PRIOR, parameters) for name, kind in CHAINS.items()}
    return interleave({name: repeated(chain, N_TIMED) for name, chain in chains.items()}, rounds)


def compare(n_tokens: int, traces: dict[str, effective.Trace], rounds: Rounds) -> Row:
    """Effective samples a second, and what they rest on."""
    rates = {
        name: trace.effective / trace.size / rounds.median(name) for name, trace in traces.items()
    }
    words = [
        f"{name} {trace.effective:.0f} effective of {trace.size} sweeps of "
        f"{rounds.median(name) * 1e3:.2f} ms, drift {trace.drift:+.1f} s.e."
        for name, trace in traces.items()
    ]
    gap = effective.difference(traces["blocked"], traces["collapsed"])
    steady = max(abs(gap), *(abs(trace.drift) for trace in traces.values())) < LARGEST_Z
    verdict = "stationary as far as seen" if steady else "NOT STATIONARY: read with care"
    if min(trace.effective for trace in traces.values()) < FEWEST:
        verdict += f", and with fewer than {FEWEST} effective samples a rough figure"
    return Row(
        what=f"effective samples a second of the log joint, {n_tokens:,} tokens: "
        "blocked over collapsed",
        ours=rates["blocked"],
        peer=rates["collapsed"],
        unit="/s",
        ratio=rates["blocked"] / rates["collapsed"],
        note="; ".join([*words, f"means differ by {gap:+.1f} s.e.", verdict]),
    )


if __name__ == "__main__":
    main(measure)
