"""A day of a busy scene: how long `habitus learn` takes, and how much memory.

Forty minutes of the built-in junction at 360x288, or the documents of a corpus file, are repeated
to 86,400 documents. No two are alike: of every repetition a twentieth of the words is left out, and
a twentieth has the next speed. The corpus is learnt from by the command itself, in a process of its
own, whose peak memory the kernel tells. That figure is never below the memory of the process that
started the command, so the corpus is made in yet another one.

    python benchmarks/day.py --table
    python benchmarks/day.py --table --corpus junction.corpus
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import habitus
from habitus.lab import Junction, render
from report import Row, Target, add_output, hand_on, progress

DAY = 86_400
MINUTES = 40
LEFT_OUT, FASTER = 0.05, 0.05
MOST_SECONDS, MOST_BYTES = 600, 2e9


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    n_bytes: int
    """Largest resident set."""


def measure(source: str | None, n_documents: int) -> Iterator[Row]:
    """Rows: time and memory of learning a day, and of adding another half an hour to it."""
    with tempfile.TemporaryDirectory() as folder:
        day, more = Path(folder, "day.corpus"), Path(folder, "more.corpus")
        model = Path(folder, "day.model")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            size = pool.submit(make, source, n_documents, day, more).result()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        floor = f"cannot be told from less than {own / 1e6:.0f} MB, that of the benchmark itself"
        yield from rows(f"learn {size}", run("learn", day, "-o", model), floor)
        cost = run("learn", more, "--update", model)
        yield from rows("learn --update, half an hour", cost, floor)


def make(source: str | None, n_documents: int, day: Path, more: Path) -> str:
    """Write the corpus of a day and one of half an hour; tell how large the first is."""
    corpus = junction() if source is None else habitus.Corpus.load(source)
    progress(f"making {n_documents} documents")
    made = repeated(corpus, n_documents, np.random.default_rng(0))
    made.save(day)
    made.take(np.arange(min(1800, len(made)))).save(more)
    return f"{len(made)} documents of {made.counts.nnz / len(made):.0f} words"


def rows(what: str, cost: Cost, floor: str) -> Iterator[Row]:
    """Rows of one command."""
    yield Row(
        what=f"{what}: time",
        ours=cost.seconds,
        unit="s",
        target=Target("at most", MOST_SECONDS, of="ours"),
    )
    yield Row(
        what=f"{what}: peak memory",
        ours=cost.n_bytes / 1e6,
        unit="MB",
        target=Target("at most", MOST_BYTES / 1e6, of="ours"),
        note=floor,
    )


def run(*words: str | Path) -> Cost:
    """Run a command of habitus; what it says goes to stderr."""
    progress(f"habitus {' '.join(map(str, words))}")
    start = time.perf_counter()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "habitus", *map(str, words)],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)],
    )
    _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit("the command failed")
    return Cost(time.perf_counter() - start, usage.ru_maxrss * 1024)


def repeated(source: habitus.Corpus, n: int, rng: np.random.Generator) -> habitus.Corpus:
    """The documents of a corpus over and over, each time a little otherwise."""
    parts, made = [], 0
    while made < n:
        parts.append(otherwise(source, rng)[: n - made])
        made += parts[-1].shape[0]
    n_frames = None if source.n_frames is None else np.resize(source.n_frames, n)
    return habitus.Corpus(
        sp.vstack(parts, format="csr"),
        vocabulary=source.vocabulary,
        n_frames=n_frames,
        picture=source.picture,
        settings=source.settings,
    )


def otherwise(source: habitus.Corpus, rng: np.random.Generator) -> sp.csr_array:
    """The counts of a corpus with some words left out and some a little faster."""
    v = source.vocabulary
    if v is None:
        sys.exit("the corpus has no vocabulary")
    counts = source.counts.copy()
    slower = counts.indices % v.speeds < v.speeds - 1
    counts.indices += (slower & (rng.random(counts.nnz) < FASTER)).astype(counts.indices.dtype)
    counts.data[rng.random(counts.nnz) < LEFT_OUT] = 0
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def junction() -> habitus.Corpus:
    """Documents of the built-in junction."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "junction.mp4")
        progress(f"rendering {MINUTES} minutes")
        render(Junction(seed=3, seconds=60.0 * MINUTES, width=360, height=288), path)
        progress("extracting")
        return habitus.extract(path).corpus


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="documents to repeat; the built-in junction if not given")
    parser.add_argument("--documents", type=int, default=DAY)
    add_output(parser)
    options = parser.parse_args()
    found = list(measure(options.corpus, options.documents))
    hand_on(found, options)
