"""The cache of compiled kernels: where it may be, what it survives, and that compiling is told."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import habitus
from habitus.standalone import standalone
from reference.footage import encode, moving_square

KERNEL = """
from habitus.compiled import compiled

@compiled
def double(x):
    return 2 * x
"""
STANDALONE = """
import numpy as np
from habitus.standalone import standalone

@standalone
def fill(x, doubled):
    for i in range(len(x)):
        doubled[i] = 2 * x[i]

def double(x):
    doubled = np.zeros(1)
    fill(np.array([x], dtype=np.float64), doubled)
    return doubled[0]
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
print(json.dumps([[double(21), double(2)], told]))
"""
COMPILED, CACHED = [[42, 4], [True]], [[42, 4], []]
LINE = "habitus: compiling kernels for this machine, once; please wait"


@pytest.fixture(params=[KERNEL, STANDALONE], ids=["kernel", "standalone kernel"])
def place(request, tmp_path):
    """A folder with a kernel, of which nothing can be written but temporary files."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "kernel.py").write_text(request.param)
    for taken in ("package/__pycache__", "home"):
        (tmp_path / taken).write_text("a file, where a folder should be")
    (tmp_path / "temporary").mkdir()
    return tmp_path


def run(place, *arguments, **further):
    """What a process without a home makes of the kernel."""
    return printed(place, RUN, *arguments, **further)


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


def kept(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_without_a_writable_cache_a_private_folder_is_used(place):
    assert run(place) == COMPILED
    (folder,) = (place / "temporary").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    files = kept(folder)
    assert files
    assert run(place) == CACHED
    assert kept(folder) == files


def open_to_all(folder):
    folder.mkdir()
    folder.chmod(0o777)


def elsewhere(folder):
    (folder.parent / "another").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "another")


@pytest.mark.parametrize(
    ("place", "lay"),
    [(KERNEL, open_to_all), *((STANDALONE, lay) for lay in (open_to_all, elsewhere, Path.touch))],
    indirect=["place"],
)
def test_a_folder_that_others_may_have_laid_is_not_used(place, lay):
    lay(place / "temporary" / f"habitus-kernels-{os.getuid()}")
    before = sorted(place.rglob("*"))
    assert run(place) == COMPILED
    assert sorted(place.rglob("*")) == before


def test_a_full_disk_keeps_nothing_and_harms_nothing(place):
    assert run(place, 100) == COMPILED
    assert kept(place / "temporary") == []
    assert run(place) == COMPILED
    assert run(place) == CACHED


DAMAGED = """
import importlib, json, sys
from pathlib import Path
from habitus import when_compiling
import kernel

def found():
    told = []
    when_compiling(lambda: told.append(True))
    return [importlib.reload(kernel).double(21), len(told)]

compiled, anew = found(), []
files = [path for path in Path(sys.argv[1]).rglob("*") if path.is_file()]
for path in files:
    whole = path.read_bytes()
    flipped = [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in json.loads(sys.argv[2])]
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1], *flipped):
        path.write_bytes(damaged)
        anew.append([found(), found()])
print(json.dumps([compiled, len(files), anew]))
"""


def test_a_file_that_was_cut_short_is_compiled_anew_and_replaced(place):
    compiled, n_files, anew = printed(place, DAMAGED, place / "temporary", [])
    assert compiled == [42, 1]
    assert n_files in (1, 2)
    assert anew == [[[42, 1], [42, 0]]] * 3 * n_files


@pytest.mark.parametrize("place", [STANDALONE], indirect=True, ids=[""])
def test_machine_code_is_that_of_the_source_to_the_byte(place):
    """Else it is not run: one bit is another, or the source has been changed since."""
    _, n_files, anew = printed(place, DAMAGED, place / "temporary", [0, 500, -1])
    assert n_files == 1
    assert anew == [[[42, 1], [42, 0]]] * 6
    source = place / "package" / "kernel.py"
    source.write_text(source.read_text().replace("2 * x[i]", "3 * x[i]"))
    assert run(place) == [[63, 6], [True]]
    assert len(kept(place / "temporary")) == 1


ALLOCATING = """
import numpy as np
from habitus.standalone import standalone

@standalone
def fill(x, doubled):
    both = np.empty(len(x) + 1)
    both[0] = both[1] = x[0]
    doubled[0] = both.sum()

def double(x):
    doubled = np.zeros(1)
    fill(np.array([x], dtype=np.float64), doubled)
    return doubled[0]
"""


@pytest.mark.parametrize("place", [ALLOCATING], indirect=True, ids=[""])
def test_code_that_needs_numba_is_left_to_numba(place):
    assert run(place)[0] == [42, 4]
    assert not list(place.rglob("*.code"))


@pytest.mark.parametrize("entry", [True, False], ids=["machine code", "Numba's"])
def test_a_kernel_is_bound_to_arrays_and_to_memory_elsewhere(entry):
    kernel = standalone(_fill_sums)
    if not entry:
        kernel._loaded = lambda arrays: None
    table, sums = np.arange(6.0).reshape(2, 3), np.zeros(2)
    bound = kernel.bound(Sums(table, sums), np.zeros(2))
    for elsewhere in (table, table + 1, np.arange(8.0).reshape(2, 4), table + 2):
        bound.place(0, elsewhere.ctypes.data, elsewhere.shape)
        bound()
        assert np.array_equal(sums, elsewhere.sum(axis=1))
        assert np.array_equal(bound.arrays[2], 2 * sums)
    assert bool(kernel._entry) == entry
    with pytest.raises(TypeError, match="contiguous"):
        kernel.bound(Sums(table.T, sums), sums)
    with pytest.raises(TypeError, match=r"<f8.*found.*<i8"):
        kernel.bound(Sums(table.astype(np.int64), sums), sums)


def test_a_standalone_kernel_returns_nothing():
    with pytest.raises(TypeError, match="_returned must return nothing"):
        standalone(_returned)(np.zeros(1))


def _returned(values):
    return values[0]


class Sums(NamedTuple):
    table: np.ndarray
    sums: np.ndarray


def _fill_sums(of, doubled):
    table, sums = of
    for row in range(table.shape[0]):
        sums[row] = 0.0
        for column in range(table.shape[1]):
            sums[row] += table[row, column]
        doubled[row] = 2 * sums[row]


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
from habitus.standalone import CodePlace

def slow(saved):
    def save(self, *arguments):
        began.append(True)
        time.sleep(float(sys.argv[1]))  # the others find nothing until then
        saved(self, *arguments)
    return save

KernelCache.save_overload = slow(KernelCache.save_overload)
CodePlace.write = slow(CodePlace.write)
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
    assert extract(tmp_path, NUMBA_CACHE_DIR=str(cache)).stderr.splitlines() == [LINE]
    (path,) = cache.rglob("cells.halve*.code")
    path.write_bytes(path.read_bytes()[:100])
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
assert double(21) == 42
print([name in sys.modules for name in ("numba", "numba.np.linalg")])
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
    alone = "standalone" in (place / "package" / "kernel.py").read_text()
    assert compiler == ["[True, True]\n", f"[{not alone}, False]\n"]


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
