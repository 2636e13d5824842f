"""What starting costs: importing, a first fit with compiled code cached, and the first compilation.

Every figure is the median over fresh processes. Imports are timed inside the process; a first fit
is timed from outside, from the start of the process to its end, on a small corpus; so is the
command `habitus learn`, if there is one. The very first compilation has an empty directory for a
cache, and is set beside the same run with the cache filled.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import corpora
from report import Row, Target, main, progress
from timing import ONE_THREAD

LEARNERS = ("em", "vb", "gibbs", "blocked-gibbs")
TIMED_IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIRST_FIT = """
import sys, habitus
corpus = habitus.Corpus.load(sys.argv[1])
habitus.MarkovClusteringTopicModel(
    learning=sys.argv[2], n_iterations=10, burn_in=10, n_samples=1, random_state=0
).fit(corpus)
"""
UNDER_TWO_SECONDS = Target("at most", 2, of="ours")


def measure(quick: bool) -> Iterator[Row]:
    """Rows: imports, first fits, the command, first compilations."""
    times = 1 if quick else 4
    yield Row(
        what="import habitus",
        ours=_import_seconds("import habitus", times),
        unit="s",
        target=Target("at most", 0.5, of="ours"),
        note="public names are imported when first used",
    )
    yield Row(
        what="import habitus, and its estimator with all it needs",
        ours=_import_seconds("from habitus import MarkovClusteringTopicModel", times),
        unit="s",
    )
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus.safetensors")
        corpora.make(40, 100, n_words=200).corpus.save(corpus)
        yield from _first_fits(corpus, LEARNERS[:1] if quick else LEARNERS, times)
        yield from _command(corpus, times)
        yield from _first_compilations(corpus, () if quick else LEARNERS)


def _first_fits(corpus: Path, learners: tuple[str, ...], times: int) -> Iterator[Row]:
    for learning in learners:
        yield Row(
            what=f"first {learning} fit of a new process, compiled code cached",
            ours=_fit_seconds(corpus, learning, times),
            unit="s",
            target=UNDER_TWO_SECONDS,
        )


def _command(corpus: Path, times: int) -> Iterator[Row]:
    habitus = Path(sys.executable).with_name("habitus")
    help_text = subprocess.run([habitus, "--help"], capture_output=True, text=True, check=False)
    if help_text.returncode or "learn" not in help_text.stdout:
        progress("no command `habitus learn` yet: left out")
        return
    model = corpus.with_name("model.safetensors")
    command = [str(habitus), "learn", str(corpus), "-o", str(model)]
    seconds = []
    for _ in range(times + 1):
        model.unlink(missing_ok=True)
        seconds.append(_seconds(command))
        assert model.exists()
    yield Row(
        what="habitus learn on a small corpus, compiled code cached",
        ours=median(seconds[1:]),
        unit="s",
        target=UNDER_TWO_SECONDS,
    )


def _first_compilations(corpus: Path, learners: tuple[str, ...]) -> Iterator[Row]:
    for learning in learners:
        progress(f"compiling {learning} from nothing")
        with tempfile.TemporaryDirectory() as cache:
            environment = {"NUMBA_CACHE_DIR": cache}
            cold = _seconds(_fit_command(corpus, learning), environment)
            warm = _seconds(_fit_command(corpus, learning), environment)
        yield Row(
            what=f"very first {learning} fit, nothing compiled, over one from the cache",
            ours=cold,
            peer=warm,
            unit="s",
            ratio=cold / warm,
        )


def _import_seconds(statement: str, times: int) -> float:
    command = [sys.executable, "-c", TIMED_IMPORT.format(statement)]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True)
        for _ in range(times + 1)
    ]
    return median(float(run.stdout) for run in runs[1:])


def _fit_command(corpus: Path, learning: str) -> list[str]:
    return [sys.executable, "-c", FIRST_FIT, str(corpus), learning]


def _fit_seconds(corpus: Path, learning: str, times: int) -> float:
    runs = [_seconds(_fit_command(corpus, learning)) for _ in range(times + 1)]
    return median(runs[1:])


def _seconds(command: list[str], environment: dict[str, str] | None = None) -> float:
    """Wall time of a process from start to end."""
    settings = {**os.environ, **ONE_THREAD, **(environment or {})}
    start = time.perf_counter()
    subprocess.run(command, env=settings, capture_output=True, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(measure)
