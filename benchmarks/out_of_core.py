"""Learning from shards that are never all in memory: time and peak memory, as the corpus grows.

Shards of half a million fine words each are generated once into a folder. A process of its own then
learns from them by EM, four restarts side by side, with nothing kept in memory: what is prepared of
each shard goes to a temporary file. Its peer is the learner in memory, on the joined corpus, in
another process. Memory is the growth of the resident set over the fit, beyond imports and compiled
kernels; the fit in memory has its corpus loaded within that time, as the fit from shards has.

    python benchmarks/out_of_core.py --table
    python benchmarks/out_of_core.py --table --words 1e6 1e7 1e8 --in-memory 1e7
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from habitus import Corpus, MarkovClusteringTopicModel, ShardedCorpus, Vocabulary
from report import Row, Target, add_output, hand_on, progress
from timing import ONE_THREAD

SHARD_WORDS, DOCUMENT_WORDS = 500_000, 700
VOCABULARY = Vocabulary.of_frame(360, 288).finest
N_BEHAVIOURS, STAY, CELLS, POOL = 4, 0.97, 400, 1 << 20
RESTARTS, ITERATIONS = 4, 10
STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MB = 1e6
DOCUMENT_BYTES = 24
"""Bytes for each document: where it is, and its likeness to the nearest seed."""


class Cost(NamedTuple):
    """What learning took."""

    seconds: float
    """Processor time."""
    wall: float
    n_bytes: int
    """Growth of the resident set."""
    objective: float
    """Of the best restart."""


def measure(
    sizes: Sequence[float], in_memory: float, threads: Sequence[int], folder: Path
) -> Iterator[Row]:
    """Rows: time and memory of each size; the peer is the learner in memory."""
    smallest = 0.0
    for size in sizes:
        paths = make(folder, round(size / SHARD_WORDS))
        peer = cost("joined", paths, 1) if size <= in_memory else None
        for n_threads in threads:
            found = cost("shards", paths, n_threads)
            what = f"{size:.0e} words in {len(paths)} shards, {n_threads} thread(s)"
            if peer is not None and not np.isclose(found.objective, peer.objective, rtol=1e-6):
                sys.exit(f"{what}: objective {found.objective}, in memory {peer.objective}")
            yield Row(
                what=f"{what}: processor time of {RESTARTS} x {ITERATIONS} EM iterations",
                ours=found.seconds,
                unit="s",
                peer=None if peer is None else peer.seconds,
                ratio=None if peer is None else found.seconds / peer.seconds,
                note=f"{found.seconds / size * 1e9:.0f} ns a word; {found.wall:.1f} s by the clock"
                + ("" if peer is None else f", in memory {peer.wall:.1f} s"),
            )
            smallest = smallest or found.n_bytes
            yield Row(
                what=f"{what}: peak memory",
                ours=found.n_bytes / MB,
                unit="MB",
                peer=None if peer is None else peer.n_bytes / MB,
                ratio=None if peer is None else found.n_bytes / peer.n_bytes,
                target=Target("at most", _most(smallest, size) / MB, of="ours"),
            )


def _most(smallest: float, n_words: float) -> float:
    """Return the bytes that learning may take: those of a few shards, and some for a document."""
    return 2 * smallest + DOCUMENT_BYTES * n_words / DOCUMENT_WORDS


def make(folder: Path, n_shards: int) -> list[Path]:
    """Write shards that are not there yet; the same numbers are the same documents."""
    paths = [folder / f"{i:05}.corpus" for i in range(n_shards)]
    missing = [i for i, path in enumerate(paths) if not path.exists()]
    if missing:
        progress(f"making {len(missing)} shards")
        pools = _pools(np.random.default_rng(0))
    for i in missing:
        _shard(pools, np.random.default_rng([1, i])).save(paths[i])
    return paths


def _pools(rng: np.random.Generator) -> list[NDArray[np.int32]]:
    """Tokens of each behaviour: some cells, directions around one, speeds around the middle."""
    v, pools = VOCABULARY, []
    for z in range(N_BEHAVIOURS):
        cells = rng.choice(v.n_cells, CELLS, replace=False)[rng.integers(CELLS, size=POOL)]
        directions = rng.normal(z * v.directions / N_BEHAVIOURS, 1.0, POOL).astype(int)
        speeds = np.clip(rng.normal(v.speeds / 2, 2.0, POOL), 0, v.speeds - 1).astype(int)
        words = cells * v.per_cell + (directions % v.directions) * v.speeds + speeds
        pools.append(words.astype(np.int32))
    return pools


def _shard(pools: list[NDArray[np.int32]], rng: np.random.Generator) -> Corpus:
    """Documents whose behaviours form a chain, and whose tokens are drawn from the pools."""
    n = SHARD_WORDS // DOCUMENT_WORDS
    lengths = rng.poisson(DOCUMENT_WORDS, n)
    changes = np.where(rng.random(n) < STAY, 0, rng.integers(1, N_BEHAVIOURS, size=n))
    path = (rng.integers(N_BEHAVIOURS) + np.cumsum(changes)) % N_BEHAVIOURS
    words = [pools[z][rng.integers(POOL, size=m)] for z, m in zip(path, lengths, strict=True)]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.concatenate(words)
    counts = sp.csr_array((np.ones(len(ids)), ids, indptr), shape=(n, VOCABULARY.n_words))
    return Corpus(counts, vocabulary=VOCABULARY, settings={"clip": 1.0, "words": "fine"})


def cost(how: str, paths: Sequence[Path], n_threads: int) -> Cost:
    """Learn in a fresh process."""
    progress(f"learning from {len(paths)} shards, {how}, {n_threads} thread(s)")
    environment = {**os.environ, **ONE_THREAD}
    command = [sys.executable, __file__, "--child", how, str(n_threads), str(len(paths))]
    answer = subprocess.run(
        [*command, str(paths[0].parent)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Cost(*json.loads(answer.stdout))


def _child(how: str, n_threads: int, n_shards: int, folder: str) -> Cost:
    paths = make(Path(folder), n_shards)
    first = Corpus.load(paths[0]).take(np.arange(40))
    for warm in (first, ShardedCorpus.of([first, first])):
        _model(n_threads).fit(warm)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR_REFS.write_text("5")  # resets the high-water mark, see proc(5)
    before, start, processor = _status("VmRSS"), time.perf_counter(), time.process_time()
    if how == "joined":
        model = _model(n_threads).fit(Corpus.joined([Corpus.load(path) for path in paths]))
    else:
        model = _model(n_threads).fit(ShardedCorpus.open(paths, keep_bytes=0))
    seconds, wall = time.process_time() - processor, time.perf_counter() - start
    return Cost(seconds, wall, _status("VmHWM") - before, float(model.restarts_.max()))


def _model(n_threads: int) -> MarkovClusteringTopicModel:
    return MarkovClusteringTopicModel(
        8, 4, n_iterations=ITERATIONS, n_restarts=RESTARTS, n_jobs=n_threads, random_state=0
    )


def _status(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])))
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument(
        "--in-memory", type=float, default=1e7, help="words up to which the peer runs"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--folder", type=Path, help="where shards are written, and left")
    add_output(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = list(
            measure(
                options.words,
                options.in_memory,
                options.threads,
                options.folder or Path(temporary),
            )
        )
    hand_on(found, options)
