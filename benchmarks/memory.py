"""Peak memory of a fit beyond the corpus, over the bytes of the corpus.

Each learner and size has a fresh process, which first fits a tiny corpus, so that imports and
compiled code do not count. The resident set is read before the fit, the kernel's high-water mark
reset, and read after it: that sees every allocation, compiled code's own included. A second fit
runs under tracemalloc, which sees NumPy's allocations to the byte. The corpus is the sparse matrix:
data, indices and indptr. Gibbs keeps one sample; each further one asked for is a copy of phi.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import corpora
from habitus import Corpus, MarkovClusteringTopicModel
from report import Row, Target, main
from timing import ONE_THREAD, n_cores

LEARNERS = ("em", "vb", "gibbs", "blocked-gibbs")
SIZES = (corpora.N_DOCUMENTS, 10 * corpora.N_DOCUMENTS)
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MB = 1e6


class Peak(NamedTuple):
    """Bytes."""

    corpus: int
    resident: int
    """Growth of the resident set from before the fit to its peak."""
    traced: int
    """Peak of what tracemalloc sees."""


def measure(quick: bool) -> Iterator[Row]:
    """Rows: every learner at both sizes; the worse of both measures counts."""
    cases = [(learning, n) for n in SIZES for learning in (("em", "gibbs") if quick else LEARNERS)]
    with ThreadPoolExecutor(n_cores()) as pool:
        for (learning, n), peak in zip(cases, pool.map(_in_fresh_process, cases), strict=True):
            worst = max(peak.resident, peak.traced)
            yield Row(
                what=f"peak memory of learning={learning} beyond the corpus, {n} documents",
                ours=worst / MB,
                peer=peak.corpus / MB,
                unit="MB",
                ratio=worst / peak.corpus,
                target=Target("at most", 2),
                note=f"resident set {peak.resident / MB:.2f} MB, "
                f"tracemalloc {peak.traced / MB:.2f} MB",
            )


def _in_fresh_process(case: tuple[str, int]) -> Peak:
    learning, n_documents = case
    # A fixed threshold keeps freed arrays from staying resident, where they would hide growth.
    environment = {**os.environ, **ONE_THREAD, "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--child", learning, str(n_documents)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Peak(*json.loads(answer.stdout))


def _child(learning: str, n_documents: int) -> Peak:
    fit(learning, corpora.make(8, 50, n_words=100).corpus)
    made = corpora.make(n_documents)
    return Peak(
        made.n_bytes, _resident_growth(learning, made.corpus), _traced_peak(learning, made.corpus)
    )


def fit(learning: str, corpus: Corpus) -> MarkovClusteringTopicModel:
    """A few iterations or sweeps, one sample kept: memory grows with further samples only."""
    model = MarkovClusteringTopicModel(
        learning=learning, n_iterations=5, burn_in=5, n_samples=1, random_state=0
    )
    return model.fit(corpus)


def _resident_growth(learning: str, corpus: Corpus) -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR_REFS.write_text("5")  # resets the high-water mark, see proc(5)
    before = _status("VmRSS")
    fit(learning, corpus)
    return _status("VmHWM") - before


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def _traced_peak(learning: str, corpus: Corpus) -> int:
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    fit(learning, corpus)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_child(sys.argv[2], int(sys.argv[3]))))
    else:
        main(measure)
