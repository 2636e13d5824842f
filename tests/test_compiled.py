"""The cache of compiled kernels: where it may be, what it survives, and that compiling is told."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import habitus
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
    sys.dont_write_bytecode = True  # or half of a module is left
from habitus import when_compiling
told = []
when_compiling(lambda: told.append(True))
from kernel import double
results = [double(21), double(2)]
print(json.dumps([results, told, sum(double.dispatcher.stats.cache_hits.values()),
    double.dispatcher.stats.cache_path]))
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
    *what, cache = printed(place, RUN, *arguments, **further)
    return what, cache


def printed(place, code, *arguments, **further):
    """What a process without a home prints."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    paths = [str(place / "package"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"HOME": str(place / "home"), "TMPDIR": str(place / "temporary")}
    found = subprocess.run(
        [sys.executable, "-B", "-c", code, *map(str, arguments)],
        env=given | {"PYTHONPATH": os.pathsep.join(paths)} | own | further,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    return json.loads(found.stdout)


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


CUT = """
import importlib, json, sys
from pathlib import Path
import kernel

def found():
    double = importlib.reload(kernel).double
    return [double(21), sum(double.dispatcher.stats.cache_hits.values())]

compiled, cache = found(), Path(kernel.double.dispatcher.stats.cache_path)
anew = []
for path in sorted(cache.iterdir()):
    whole = path.read_bytes()
    for kept in (0, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:kept])
        anew.append([found(), found()])
print(json.dumps([compiled, len(list(cache.iterdir())), anew]))
"""


def test_a_file_that_was_cut_short_is_compiled_anew_and_replaced(place):
    compiled, n_files, anew = printed(place, CUT)
    assert compiled == [42, 0]
    assert n_files == 2
    assert anew == [[[42, 0], [42, 1]]] * 3 * n_files


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


def copy_kernels(cache):
    """Put all kernels that were compiled before where NUMBA_CACHE_DIR is to be."""
    from numba.core.caching import _CacheLocator  # not for whoever only collects the tests

    for path in Path(habitus.__file__).parent.rglob("*.nb?"):
        source = path.parents[1] / f"{path.name.partition('.')[0]}.py"
        folder = cache / _CacheLocator.get_suitable_cache_subpath(source)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder)


SLOW = """
import json, sys, time
from habitus import when_compiling
when_compiling(lambda: None)
from kernel import double
began = []
from habitus.kernel_cache import KernelCache
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
    copy_kernels(cache)
    for pattern, left in (("*", None), ("*.nbi", 100), ("*.nbc", 100)):
        for path in cache.rglob(f"cells._halve{pattern}"):
            whole = path.read_bytes()
            path.unlink()
            if left is not None:
                path.write_bytes(whole[:left])
        found = extract(tmp_path, NUMBA_CACHE_DIR=str(cache))
        assert found.returncode == 0, found.stderr
        assert found.stderr.splitlines() == [LINE]
    assert extract(tmp_path, NUMBA_CACHE_DIR=str(cache)).stderr == ""


UNUSED = """
import pickle, sys
import habitus.ingest.segments, habitus.scene
from habitus.video.cells import likeness
assert pickle.loads(pickle.dumps(likeness)) is likeness
assert "numba" not in sys.modules
likeness.dispatcher
assert "numba" in sys.modules
"""


def test_numba_is_imported_when_a_kernel_is_used_and_not_before():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", UNUSED], env=environment, check=True)


LOADED = """
import sys
from kernel import double
double(21)
print("numba.np.linalg" in sys.modules)
"""


def test_what_is_compiled_is_loaded_without_the_compiler(place):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(place / "package"), os.environ.get("PYTHONPATH", "")]),
        "NUMBA_CACHE_DIR": str(place / "kernels"),
    }
    command = [sys.executable, "-B", "-c", LOADED]
    compiler = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert compiler == ["True\n", "False\n"]


KERNELS = """
from habitus.compiled import compiled

@compiled
def multiplied(value, by):
    return value * by

@compiled
def multiplied_twice(value):
    return multiplied(value, 2) + multiplied(value, 3)
"""


def test_a_kernel_that_is_called_with_several_numbers_is_compiled_once(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    kernels = runpy.run_path(str(path))
    assert kernels["multiplied_twice"](1.5) == 7.5
    assert len(kernels["multiplied"].dispatcher.signatures) == 1
