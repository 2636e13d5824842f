"""Each command as a process on a machine that has nothing: no tool on the path, no psutil.

It ends, without a line of traceback, and loads only the libraries that it has a use for, in its
own process and in those that it starts.
"""

import contextlib
import functools
import os
import signal
import sqlite3
import subprocess
from importlib.metadata import packages_distributions

import pytest

from habitus.web.server import open_console
from habitus.web.server_settings import ServerSettings
from reference.archives import PATTERN, put, record
from reference.commands import COMMAND
from reference.consoles import add_playing
from reference.processes import LONG, wait_until
from reference.streams import free_port
from reference.watched_scene import model, video

__all__ = ["model", "video"]

NOTING = """
import os, sys

class Noted:
    def find_spec(name, path=None, target=None):
        if name.count(".") < (2 if name.startswith("scipy.") else 1) and "._" not in name:
            with open(os.environ["NOTED_IMPORTS"], "a") as file:
                file.write(name + "\\n")

sys.meta_path.insert(0, Noted)
"""
"""A `sitecustomize` that notes each package that is looked for, and each part of SciPy."""

SMALL = {
    "_distutils_hack",
    "annotated_doc",
    "annotated_types",
    "click",
    "pydantic",
    "pydantic_core",
    "rich",
    "safetensors",
    "shellingham",
    "typer",
    "typing_extensions",
    "typing_inspection",
}
"""What any command may load: a tenth of a second in all."""
KERNELS = {"llvmlite", "numba", "numpy", "scipy", "scipy.linalg", "scipy.version"}
KERNELS |= {"_cffi_backend", "cffi", "charset_normalizer", "colorama", "pycparser", "yaml"}
"""Numba and NumPy; what Numba takes up where it is installed."""
DECODING = {"av", "llvmlite", "numba", "numpy"}
"""Of Numba, only its version is looked for."""
VIDEO = KERNELS | {"av"}
JUDGING = VIDEO | {"scipy.ndimage", "scipy.special"}
FRAMES = {"cv2"}
"""What looks at the camera, and writes pictures of events."""
PICTURES = {"PIL", "cv2", "cycler", "dateutil", "fontTools", "kiwisolver", "matplotlib"}
PICTURES |= {"contourpy", "mpl_toolkits", "packaging", "pyparsing", "six"}
PAGES = PICTURES | {"jinja2", "markupsafe"}
NOT_WATCHING = {"matplotlib", "pandas", "scipy.stats", "sklearn"}
"""What neither the console nor its cameras load."""
KEPT = ("HOME", "LANG", "TMPDIR", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that a bare machine has too."""
VIDEO_FILE, SITE = "a.mp4", "site"
MODEL = ("--model", "a.model")
SHARE = ("--measure", "habits", "--share", 0.2)
SIZES = ("--behaviours", 2, "--topics", 4)
METHOD = ("--methods", "em-1", "--runs", 2)
RECORDINGS = f"recordings/{PATTERN}"
COMMANDS = {
    ("--version",): set(),
    ("extract", VIDEO_FILE, "-o", "a.corpus", "--jobs", 2): DECODING,
    ("learn", "a.corpus", "-o", "a.model", "--restarts", 1): JUDGING,
    ("show", "a.model"): KERNELS | PICTURES,
    ("detect", VIDEO_FILE, *MODEL, *SHARE, "-o", "a.jsonl"): JUDGING | FRAMES,
    ("watch", VIDEO_FILE, *MODEL, *SHARE): JUDGING | FRAMES,
    ("accept", "a.jsonl", 1, *MODEL): JUDGING,
    ("evaluate", "a.model", VIDEO_FILE, "--labels", "a.csv", *SHARE): JUDGING | FRAMES,
    ("report", VIDEO_FILE, *MODEL, *SHARE, "-o", "a.html"): JUDGING | PAGES,
    ("archive", "learn", RECORDINGS, "-o", SITE, "--restarts", 1, "--jobs", 1): JUDGING,
    ("archive", "detect", SITE, "--jobs", 1): JUDGING | FRAMES,
    ("archive", "report", SITE): JUDGING | PAGES,
    ("tune", "a.corpus", *SIZES, "--restarts", 1, "--trials", 2, "--no-hyperparameters"): None,
    ("compare", "a.corpus", "--labels", "a.csv", "--train", "25s", *METHOD, *SIZES): None,
}
"""Commands in the order in which each finds what it needs, and what they may load; None: all."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small video with labels, the same as a camera's recording, and what notes imports."""
    folder = tmp_path_factory.mktemp("bare")
    record(folder / VIDEO_FILE, seconds=62, wrong=True)
    put(folder / "recordings", "north", 0, folder / VIDEO_FILE)
    (folder / "a.csv").write_text("start,end\n25,28\n")
    (folder / "path").mkdir()
    (folder / "first").mkdir()
    (folder / "first/sitecustomize.py").write_text(NOTING)
    (folder / "first/psutil.py").write_text("raise ImportError('psutil is not installed')\n")
    return folder


@pytest.fixture
def environment(folder):
    """What a bare machine has; imports are noted."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = os.pathsep.join(filter(None, [str(folder / "first"), os.environ.get("PYTHONPATH")]))
    own = {"PATH": str(folder / "path"), "PYTHONPATH": path}
    return kept | own | {"NOTED_IMPORTS": str(folder / "loaded")}


@functools.cache
def installed():
    """Packages of other people; to look them all up takes a second."""
    return packages_distributions().keys() - {"habitus"}


def loaded(start, folder, environment, arguments):
    """Packages that a command and all that it starts load; of SciPy, which parts."""
    notes = folder / "loaded"
    notes.write_text("")
    process = start(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, (arguments, errors)
    assert "Traceback" not in output + errors, arguments
    assert "Error" not in errors, arguments
    return {name for name in notes.read_text().split() if name.split(".")[0] in installed()}


def test_each_command_ends_and_loads_only_what_it_has_a_use_for(start, folder, environment):
    surplus = {}
    for arguments, allowed in COMMANDS.items():
        found = loaded(start, folder, environment, arguments)
        if allowed is not None and found - SMALL - allowed:
            # Kernels that were edited are compiled now.
            found = loaded(start, folder, environment, arguments)
            surplus[" ".join(map(str, arguments))] = sorted(found - SMALL - allowed)
    assert not any(surplus.values()), surplus


def test_the_console_ends_without_a_traceback(start, folder, environment):
    errors = folder / "errors"
    with errors.open("w") as file:
        command = [*COMMAND, "serve", "--data", "data", "--port", free_port()]
        process = start(command, cwd=folder, env=environment, stdout=file, stderr=file)
    wait_until(lambda: "http" in errors.read_text(), "the console answers")
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG) in (0, 128 + signal.SIGTERM), errors.read_text()
    assert "Traceback" not in errors.read_text()


def test_a_console_that_watches_a_camera_loads_only_what_it_has_a_use_for(
    start, folder, environment, model, video
):
    with_camera = open_console(ServerSettings(folder / "watching"))
    add_playing(with_camera, video, model)
    with_camera.database.close()
    (folder / "loaded").write_text("")
    command = [*COMMAND, "serve", "--data", "watching", "--port", free_port()]
    errors = folder / "errors of cameras"
    with errors.open("w") as file:
        process = start(command, cwd=folder, env=environment, stdout=file, stderr=file)

    def state():
        opened = sqlite3.connect(folder / "watching" / "habitus.sqlite")
        with contextlib.closing(opened) as database:
            return database.execute("SELECT state FROM cameras").fetchone()[0]

    wait_until(lambda: state() == "watching", "the camera is watched")
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONG) in (0, 128 + signal.SIGTERM), errors.read_text()
    noted = set((folder / "loaded").read_text().split())
    assert {"av", "fastapi", "numpy"} <= noted
    assert noted & NOT_WATCHING == set()
