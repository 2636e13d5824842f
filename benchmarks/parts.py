"""Where the time of one EM iteration goes, part by part, and what memory would allow at best.

Each part runs on the arrays it meets in a real iteration, once a round and in the order of the
iteration, so that it finds the cache as it would there. The limit is the bytes
a part has to read and write at least, each array once, over the bandwidth of streaming through an
array as large as all of them together: they fit the cache. The notes give the same for main memory.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import corpora
import fitted
from habitus import Corpus
from habitus.model import em
from habitus.model.evidence import gather
from habitus.model.expected_counts import _mix, _row_sums, _split, padded, scatter
from habitus.model.messages import filter_forward, smooth_backward
from report import Row, main
from timing import interleave, repeated, single_core

PRIOR = "H+1"
N_BEFORE = 20
MAIN_MEMORY = 512_000_000


class Part(NamedTuple):
    """One part of the iteration: the call, and the arrays it reads or writes."""

    run: Callable[[], object]
    arrays: tuple[NDArray[np.generic], ...]

    @property
    def n_bytes(self) -> int:
        """Bytes to be moved at least."""
        return sum(array.nbytes for array in self.arrays)


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a part, their sum, the iteration as a whole, and the bandwidths."""
    single_core()
    corpus = corpora.make().corpus
    parts = dissect(corpus)
    sides = {name: repeated(part.run, 1) for name, part in parts.items()}
    sides["whole"] = repeated(fitted.em_step(corpus, PRIOR, N_BEFORE), 1)
    rounds = interleave(sides, 100 if quick else 1000)
    working_set = sum({id(a): a.nbytes for part in parts.values() for a in part.arrays}.values())
    cached, streamed = bandwidth(working_set), bandwidth(MAIN_MEMORY)
    for name, part in parts.items():
        yield _row(name, rounds.median(name), part.n_bytes, cached)
    n_bytes = sum(part.n_bytes for part in parts.values())
    yield _row("all parts", sum(rounds.median(name) for name in parts), n_bytes, cached)
    note = (
        f"{n_bytes / 1e6:.1f} MB moved at least, in a working set of {working_set / 1e6:.1f} MB: "
        f"{n_bytes / cached * 1e6:.0f} us at {cached / 1e9:.1f} GB/s (in cache), "
        f"{n_bytes / streamed * 1e6:.0f} us at {streamed / 1e9:.1f} GB/s (main memory)"
    )
    yield _row("whole iteration", rounds.median("whole"), n_bytes, cached, note)


def dissect(corpus: Corpus) -> dict[str, Part]:
    """The parts of `em.step`, each ready to be called on its own."""
    evidence, prior = gather(corpus), fitted.concentrations(corpus, PRIOR)
    before = fitted.em_step(corpus, PRIOR, N_BEFORE)()
    parameters = em.maximise(before.e_step, prior, fitted.SMOOTHING)
    phi, theta, pi, xi = parameters
    rows = (evidence.indptr, evidence.words, evidence.counts)
    lanes = padded(theta)
    mixed = _mix(phi, lanes)
    logs = np.log(mixed)
    log_like = np.ascontiguousarray(_row_sums(*rows, logs)[:, : theta.shape[1]])
    messages = filter_forward(log_like, evidence.first, pi, xi)
    posterior = padded(smooth_backward(messages, evidence.first, xi).posterior)
    tokens = scatter(*rows, posterior, evidence.n_words)
    word_topic, _ = _split(tokens, mixed, phi, lanes)
    return {
        "M-step": Part(
            lambda: em.maximise(before.e_step, prior, fitted.SMOOTHING),
            (before.e_step.counts.phi, phi),
        ),
        "mix": Part(lambda: _mix(phi, lanes), (phi, mixed)),
        "log": Part(lambda: np.log(mixed), (mixed, logs)),
        "row sums": Part(lambda: _row_sums(*rows, logs), (*rows, logs, log_like)),
        "forward": Part(
            lambda: filter_forward(log_like, evidence.first, pi, xi), (log_like, *messages)
        ),
        "backward": Part(
            lambda: smooth_backward(messages, evidence.first, xi), (*messages[:2], posterior)
        ),
        "scatter": Part(
            lambda: scatter(*rows, posterior, evidence.n_words), (*rows, posterior, tokens)
        ),
        "split": Part(lambda: _split(tokens, mixed, phi, lanes), (tokens, mixed, phi, word_topic)),
        "log prior": Part(lambda: em.log_prior(parameters, prior), (phi,)),
    }


def bandwidth(n_bytes: int) -> float:
    """Bytes a second of the quicker of reading (a dot product) and copying, best of several."""
    numbers = np.ones(n_bytes // 8)
    half, other = np.ones(n_bytes // 16), np.zeros(n_bytes // 16)
    times = max(1, 100_000_000 // n_bytes)
    sides = {
        "read": repeated(lambda: np.dot(numbers, numbers), times),
        "copy": repeated(lambda: np.copyto(other, half), times),
    }
    rounds = interleave(sides, 5)
    return n_bytes / min(rounds.best("read"), rounds.best("copy"))


def _row(name: str, seconds: float, n_bytes: int, speed: float, note: str = "") -> Row:
    return Row(
        what=f"EM iteration, prior {PRIOR}, {name}: over bytes moved at cache bandwidth",
        ours=seconds * 1e6,
        peer=n_bytes / speed * 1e6,
        unit="us",
        ratio=seconds * speed / n_bytes,
        note=note,
    )


if __name__ == "__main__":
    main(measure)
