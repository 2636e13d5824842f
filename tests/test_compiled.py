"""The cache of compiled kernels: where it may be, what it survives, and that compiling is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reference.footage import encode, moving_square

KERNEL = """
from habitus.compiled import compiled

@compiled
def double(x):
    return 2 * x
"""
RUN = """
import json, resource, sys
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from habitus import when_compiling
told = []
when_compiling(lambda: told.append(True))
from kernel import double
results = [double(21), double(2)]
print(json.dumps([results, told, sum(double.stats.cache_hits.values()), double.stats.cache_path]))
"""
COMPILED, CACHED = [[42, 4], [True], 0], [[42, 4], [], 1]
LINE = "habitus: compiling kernels for this machine, once; please wait"


@pytest.fixture
def place(tmp_path):
    """A folder with a kernel, of which nothing can be written but temporary files."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "kernel.py").write_text(KERNEL)
    for taken in ("package/__pycache__", "home"):
        (tmp_path / taken).write_text("a file, where a folder should be")
    (tmp_path / "temporary").mkdir()
    return tmp_path


def run(place, *arguments, **further):
    """What a process without a home makes of the kernel, and where it keeps it."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    paths = [str(place / "package"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"HOME": str(place / "home"), "TMPDIR": str(place / "temporary")}
    found = subprocess.run(
        [sys.executable, "-B", "-c", RUN, *map(str, arguments)],
        env=given | {"PYTHONPATH": os.pathsep.join(paths)} | own | further,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    *what, cache = json.loads(found.stdout)
    return what, cache


def files(cache):
    return sorted(Path(cache).iterdir())


def test_without_a_writable_cache_a_private_folder_is_used(place):
    what, cache = run(place)
    assert what == COMPILED
    (folder,) = (place / "temporary").iterdir()
    assert Path(cache).parent == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run(place) == (CACHED, cache)


def open_to_all(folder):
    folder.mkdir()
    folder.chmod(0o777)


def elsewhere(folder):
    (folder.parent / "another").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "another")


@pytest.mark.parametrize("lay", [open_to_all, elsewhere, Path.touch])
def test_a_folder_that_others_may_have_laid_is_not_used(place, lay):
    lay(place / "temporary" / f"habitus-kernels-{os.getuid()}")
    before = sorted(place.rglob("*"))
    assert run(place) == (COMPILED, None)
    assert sorted(place.rglob("*")) == before


def test_a_full_disk_keeps_nothing_and_harms_nothing(place):
    what, cache = run(place, 100)
    assert what == COMPILED
    assert files(cache) == []
    assert run(place) == (COMPILED, cache)


def test_a_file_that_was_cut_short_is_compiled_anew_and_replaced(place):
    _, cache = run(place)
    for path in files(cache):
        whole = path.read_bytes()
        for kept in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:kept])
            assert run(place) == (COMPILED, cache)
        assert run(place) == (CACHED, cache)


def extract(folder, **further):
    command = [sys.executable, "-c", "from habitus.cli import main; main()"]
    return subprocess.run(
        [*command, "extract", "a.mp4", "-o", "a.corpus", "--jobs", "2"],
        cwd=folder,
        env=os.environ | further,
        capture_output=True,
        text=True,
        check=False,
    )


SLOW = """
import json, sys, time
from habitus import when_compiling
when_compiling(lambda: None)
from kernel import double
began = []
from habitus.compiled import KernelCache
saved = KernelCache.save_overload
def save(self, *arguments):
    began.append(True)
    time.sleep(float(sys.argv[1]))  # the others find nothing until then
    saved(self, *arguments)
KernelCache.save_overload = save
assert double(21) == 42
print(len(began))
"""


def test_of_processes_that_start_together_one_compiles(place):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(place / "package"), os.environ.get("PYTHONPATH", "")]),
        "NUMBA_CACHE_DIR": str(place / "kernels"),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", SLOW, "3"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    compiled = [int(process.communicate()[0]) for process in processes]
    assert sorted(compiled) == [0, 0, 1]


def test_a_command_says_in_one_line_that_its_workers_compile(tmp_path):
    encode(tmp_path / "a.mp4", moving_square(60), options={"preset": "ultrafast"})
    cache = tmp_path / "cache"
    for damage in ("no file", "*.nbi", "*.nbc"):
        for path in cache.rglob(f"cells._cell_motion{damage}"):
            path.write_bytes(path.read_bytes()[:100])
        found = extract(tmp_path, NUMBA_CACHE_DIR=str(cache))
        assert found.returncode == 0, found.stderr
        assert found.stderr.splitlines() == [LINE]
    assert extract(tmp_path, NUMBA_CACHE_DIR=str(cache)).stderr == ""
