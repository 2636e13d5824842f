"""Where the time of one EM iteration goes, part by part, and what memory would allow at best.

Each part is called as the iteration calls it, once a round and in its order, so that each finds the
cache as it would there. The limit is the bytes a part has to read and write at least, each array
once, over the bandwidth of streaming through an array as large as all of them together, which the
cache holds. The last note gives the same for main memory.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import corpora
import fitted
from habitus import Corpus
from habitus.model import em, expected_counts
from habitus.model.expected_counts import gather, padded
from habitus.model.messages import filter_forward, smooth_backward
from report import Row, main
from timing import interleave, repeated, single_core

PRIOR = "H+1"
N_BEFORE = 20
MAIN_MEMORY = 512_000_000


class Part(NamedTuple):
    """A call, and what it moves."""

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: Any = None

    def again(self) -> object:
        """Make the same call once more."""
        return self.call(*self.arguments)

    @property
    def arrays(self) -> dict[int, NDArray[Any]]:
        """Arrays read or written, by address."""
        found = _arrays((self.arguments, self.result))
        return {array.__array_interface__["data"][0]: array for array in found}

    @property
    def n_bytes(self) -> int:
        """Bytes to be moved at least."""
        return sum(array.nbytes for array in self.arrays.values())


def measure(quick: bool) -> Iterator[Row]:
    """Rows: one a part, all of them, and the iteration as a whole."""
    single_core()
    corpus = corpora.make().corpus
    parts = dissect(corpus)
    sides = {name: repeated(part.again, 1) for name, part in parts.items()}
    sides["whole"] = repeated(fitted.em_step(corpus, PRIOR, N_BEFORE), 1)
    rounds = interleave(sides, 100 if quick else 1000)
    together = {at: a.nbytes for part in parts.values() for at, a in part.arrays.items()}
    working_set, n_bytes = sum(together.values()), sum(part.n_bytes for part in parts.values())
    cached, streamed = bandwidth(working_set), bandwidth(MAIN_MEMORY)
    for name, part in parts.items():
        yield _row(name, rounds.median(name), part.n_bytes, cached)
    yield _row("all parts", sum(rounds.median(name) for name in parts), n_bytes, cached)
    note = (
        f"{n_bytes / 1e6:.1f} MB moved at least, in a working set of {working_set / 1e6:.1f} MB: "
        f"{n_bytes / cached * 1e6:.0f} us at {cached / 1e9:.1f} GB/s (in cache), "
        f"{n_bytes / streamed * 1e6:.0f} us at {streamed / 1e9:.1f} GB/s (main memory)"
    )
    yield _row("whole iteration", rounds.median("whole"), n_bytes, cached, note)


def dissect(corpus: Corpus) -> dict[str, Part]:
    """The parts of one `em.step`, in its order."""
    evidence, prior = gather(corpus), fitted.concentrations(corpus, PRIOR)
    state = fitted.em_step(corpus, PRIOR, N_BEFORE)()
    phi, theta, pi, xi = state.parameters
    rows, lanes = (evidence.indptr, evidence.words, evidence.counts), padded(theta)
    parts: dict[str, Part] = {}

    def part(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        parts[name] = Part(call, arguments, call(*arguments))
        return parts[name].result

    part("M-step", em._maximise, state.e_step.counts, prior, fitted.SMOOTHING)
    mixed = part("mix", expected_counts._mix, phi, lanes)
    log_mixed = part("log", np.log, mixed)
    sums = part("row sums", expected_counts._row_sums, *rows, log_mixed)
    log_like = np.ascontiguousarray(sums[:, : len(pi)])
    messages = part("forward", filter_forward, log_like, evidence.first, pi, xi)
    smoothed = part("backward", smooth_backward, messages, evidence.first, xi)
    tokens = np.empty_like(mixed)
    part("scatter", expected_counts._scatter, *rows, padded(smoothed.posterior), tokens)
    part("split", expected_counts._split, tokens, mixed, phi, lanes, np.empty_like(phi))
    part("log prior", em.log_prior, state.parameters, prior)
    return parts


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


def _arrays(value: object) -> Iterator[NDArray[Any]]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _arrays(item)


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
