"""What starting costs: importing, whole commands beside decoding alone, and the first compilation.

Every figure is the median over fresh processes. Imports are timed inside the process; a first fit
is timed from outside, from the start of the process to its end, on a small corpus; so is the
command `habitus learn`. `habitus extract` is set beside decoding in one thread, one after the other
in each round, and two processes beside one, as is what the machine itself gains by a second one: by
the clock, on a machine that is idle otherwise. The very first compilation has an empty directory
for a cache. The first demo needs minutes: not with `--quick`.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import av

import clips
import corpora
from report import Row, Target, main, progress
from timing import ONE_THREAD, n_cores

LEARNERS = ("em", "vb", "gibbs", "blocked-gibbs")
TIMED_IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIRST_FIT = """
import sys, habitus
corpus = habitus.Corpus.load(sys.argv[1])
habitus.MarkovClusteringTopicModel(
    learning=sys.argv[2], n_iterations=10, burn_in=10, n_samples=1, random_state=0
).fit(corpus)
"""
DECODING = """
import sys, av
path, start, stop = sys.argv[1], *map(float, sys.argv[2:])
with av.open(path) as container:
    stream = container.streams.video[0]
    stream.thread_type, stream.codec_context.thread_count = "NONE", 1
    container.seek(int(start / stream.time_base), stream=stream)
    for frame in container.decode(stream):
        if frame.time >= stop:
            break
"""
USED = "import time, habitus; habitus.{}; print(time.process_time())"
HABITUS = str(Path(sys.executable).with_name("habitus"))
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
    for name in ("extract", "learn", "SceneModel"):
        yield Row(
            what=f"processor time of import habitus; habitus.{name}",
            ours=_printed(USED.format(name), times),
            unit="s",
            target=Target("at most", 0.5, of="ours"),
        )
    with tempfile.TemporaryDirectory() as folder:
        yield from _extractions(Path(folder), quick)
        yield from _first_uses(Path(folder), quick)
        corpus = Path(folder, "corpus.safetensors")
        corpora.make(40, 100, n_words=200).corpus.save(corpus)
        yield from _first_fits(corpus, LEARNERS[:1] if quick else LEARNERS, times)
        yield from _command(corpus, times)
        yield from _first_compilations(corpus, () if quick else LEARNERS)


def _extractions(folder: Path, quick: bool) -> Iterator[Row]:
    """Whole commands beside decoding alone: 90 seconds, and 45 minutes (ten with `--quick`)."""
    progress("rendering")
    short = clips.make(folder / "short.mp4")
    long = clips.repeat(short, folder / "long.mp4", 15 if quick else 68)
    minutes = 10 if quick else 45
    yield _beside_decoding("90 seconds", long, 90, -1, 1.7, 2 if quick else 5)
    name = f"{minutes} minutes, one process"
    yield _beside_decoding(name, long, 60 * minutes, 1, 1.15, 1 if quick else 3)
    if n_cores() > 1:
        seconds = {
            jobs: min(_seconds(_extract(long, 60 * minutes, jobs)) for _ in range(2))
            for jobs in (1, 2)
        }
        yield Row(
            what=f"habitus extract of {minutes} minutes: two processes over one",
            ours=seconds[2],
            peer=seconds[1],
            unit="s",
            ratio=seconds[1] / seconds[2],
            target=Target("at least", 1.85),
        )
        yield _machines_own(minutes, long)


def _beside_decoding(
    name: str, video: Path, seconds: int, jobs: int, most: float, rounds: int
) -> Row:
    _seconds(_extract(video, 10, jobs))  # kernels are compiled
    ours, peer = [], []
    for _ in range(rounds):
        ours.append(_seconds(_extract(video, seconds, jobs)))
        start = time.perf_counter()
        _decode(video, seconds * clips.FPS)
        peer.append(time.perf_counter() - start)
    return Row(
        what=f"habitus extract of {name}, 360x288, over decoding alone in one thread",
        ours=median(ours),
        peer=median(peer),
        unit="s",
        ratio=median(a / b for a, b in zip(ours, peer, strict=True)),
        target=Target("at most", most),
        note="the whole command, by the clock",
    )


def _machines_own(minutes: int, video: Path) -> Row:
    """How much sooner two processes decode half of a video each than one the whole of it."""

    def decoding(start: float, stop: float) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", DECODING, str(video), str(start), str(stop)]
        return subprocess.Popen(words, env=os.environ | ONE_THREAD)

    def clock(*parts: tuple[float, float]) -> float:
        started = time.perf_counter()
        for process in [decoding(*part) for part in parts]:
            assert process.wait() == 0
        return time.perf_counter() - started

    whole = 60.0 * minutes
    halves = (0.0, whole / 2), (whole / 2, whole)
    one, two = (min(clock(*parts) for _ in range(2)) for parts in (((0.0, whole),), halves))
    return Row(
        what=f"decoding alone of {minutes} minutes: two processes over one, the machine's own",
        ours=two,
        peer=one,
        unit="s",
        ratio=one / two,
        note="one half each, by nothing but PyAV: what bounds the row above",
    )


def _extract(path: Path, seconds: int, jobs: int) -> list[str]:
    output = ["-o", f"{path}.corpus", "--force", "--duration", str(seconds)]
    return [HABITUS, "extract", str(path), *output, "--jobs", str(jobs)]


def _decode(path: Path, n_frames: int) -> None:
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        for n, _ in enumerate(container.decode(stream), 1):
            if n == n_frames:
                return


def _first_uses(folder: Path, quick: bool) -> Iterator[Row]:
    """Commands with nothing compiled."""
    long, corpus = folder / "long.mp4", folder / "long.mp4.corpus"
    extract = [*_extract(long, 90, -1)]
    learn = [HABITUS, "learn", str(corpus), "-o", str(folder / "long.model"), "--force"]
    with tempfile.TemporaryDirectory() as cache:
        progress("extracting and learning with nothing compiled")
        own = {"NUMBA_CACHE_DIR": cache}
        first, second = _seconds(extract, own), _seconds(learn, own)
    yield Row(
        what="first use, nothing compiled: extract and learn 90 seconds",
        ours=first + second,
        unit="s",
        target=Target("at most", 12, of="ours"),
        note=f"extract {first:.1f} s, learn {second:.1f} s",
    )
    if quick:
        return
    with tempfile.TemporaryDirectory() as cache:
        progress("the first demo")
        demo = [HABITUS, "demo", "-o", str(folder / "demo")]
        yield Row(
            what="habitus demo, nothing compiled",
            ours=_seconds(demo, {"NUMBA_CACHE_DIR": cache}),
            unit="s",
            target=Target("at most", 75, of="ours"),
        )


def _first_fits(corpus: Path, learners: tuple[str, ...], times: int) -> Iterator[Row]:
    for learning in learners:
        yield Row(
            what=f"first {learning} fit of a new process, compiled code cached",
            ours=_fit_seconds(corpus, learning, times),
            unit="s",
            target=UNDER_TWO_SECONDS,
        )


def _command(corpus: Path, times: int) -> Iterator[Row]:
    help_text = subprocess.run([HABITUS, "--help"], capture_output=True, text=True, check=False)
    if help_text.returncode or "learn" not in help_text.stdout:
        progress("no command `habitus learn` yet: left out")
        return
    model = corpus.with_name("model.safetensors")
    command = [HABITUS, "learn", str(corpus), "-o", str(model)]
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
    return _printed(TIMED_IMPORT.format(statement), times)


def _printed(code: str, times: int) -> float:
    command = [sys.executable, "-c", code]
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
    # As where it is installed, and everywhere but in a few containers: bytecode is kept.
    settings = {**os.environ, **ONE_THREAD, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})}
    start = time.perf_counter()
    subprocess.run(command, env=settings, capture_output=True, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(measure)
