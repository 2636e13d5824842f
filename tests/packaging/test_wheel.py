"""The wheel and the sdist; the demo runs where nothing is but the wheel and what it asks for."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import habitus

ROOT = Path(__file__).parents[2]


def run(*command, cwd):
    """Run a command with no tool and not this tree's source on the path; give its stdout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": ""}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Built(NamedTuple):
    sdist: Path
    wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist of this tree, and the wheel of that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    ((sdist,), (wheel,)) = (list(folder.glob(kind)) for kind in ("*.tar.gz", "*.whl"))
    return Built(sdist, wheel)


class Environment(NamedTuple):
    folder: Path

    def run(self, program, *arguments):
        return run(self.folder / "venv/bin" / program, *arguments, cwd=self.folder)

    @property
    def packages(self):
        (found,) = self.folder.glob("venv/lib/python*/site-packages")
        return found


@pytest.fixture
def clean(built, tmp_path):
    """An environment of the wheel and all that it asks for, which is linked from this one."""
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    made = Environment(tmp_path)
    for name in asked_for("habitus") - {"habitus"}:
        for path in {file.parts[0] for file in metadata.files(name)} - {"..", "__pycache__"}:
            place = made.packages / path
            if not place.exists():  # as of a package of two distributions
                place.symlink_to(metadata.distribution(name).locate_file(path))
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "venv", "--no-cache-dir")
    options = ("--quiet", "--no-compile", "--no-deps", "--no-index")
    run(*pip, "install", *options, built.wheel, cwd=tmp_path)
    share_kernels(made.packages / "habitus")
    return made


def asked_for(name, extra=""):
    """The names of a distribution and of all that it requires, here."""
    found, waiting = set(), [(name, extra)]
    while waiting:
        name, extra = waiting.pop()
        found.add(name)
        for text in metadata.requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                name = canonicalize_name(wanted.name)
                waiting += [(name, extra) for extra in wanted.extras or [""] if name not in found]
    return found


def share_kernels(installed):
    """Compile no kernel twice, here and in this tree: `make bare` compiles in its own folders."""
    package = ROOT / "src" / "habitus"
    for source in package.rglob("*.py"):
        if (same := installed / source.relative_to(package)).read_bytes() == source.read_bytes():
            shutil.copystat(source, same)
            (kept := source.parent / "__pycache__").mkdir(exist_ok=True)
            if not (place := same.parent / "__pycache__").exists():
                place.symlink_to(kept)


def test_the_wheel_holds_the_package_and_nothing_else(built):
    package = ROOT / "src" / "habitus"
    source = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(built.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == source
    assert "habitus/py.typed" in held


def test_the_wheel_holds_the_console_with_the_licences_of_others(built):
    console = "habitus/web"
    with zipfile.ZipFile(built.wheel) as wheel:
        held = set(wheel.namelist())
    assert {f"{console}/{name}" for name in ("templates/wall.html", "static/style.css")} <= held
    assert f"{console}/migrations/versions/0001_first.py" in held
    vendor = f"{console}/static/vendor/"
    theirs = {name.removeprefix(vendor).partition("/")[0] for name in held if vendor in name}
    assert theirs >= {"htmx", "uplot"}
    assert {f"{vendor}{name}/LICENSE" for name in theirs - {"README.md"}} <= held


def test_the_sdist_holds_what_its_tests_need(built):
    with tarfile.open(built.sdist) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"Makefile", "constraints.txt", "pyproject.toml", "LICENSE", "README.md"}
    wanted |= {"CITATION.cff", "scripts/system_packages.sh", "scripts/environment.sh"}
    wanted |= {path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/**/*.py")}
    assert wanted <= held
    assert not [
        name for name in held if "__pycache__" in name or name.startswith((".venv", "site"))
    ]


def test_what_is_installed_does_what_it_promises(clean):
    version = f"habitus {habitus.__version__}\n"
    assert clean.run("habitus", "--version") == version
    assert clean.run("python", "-m", "habitus", "--version") == version
    told = clean.run("habitus", "--help").replace("Usage: habitus", "Usage: python -m habitus")
    assert clean.run("python", "-m", "habitus", "--help").split() == told.split()
    assert_no_extra_is_there(clean)
    assert_the_demo_finds_anomalies(clean)


def assert_no_extra_is_there(clean):
    code = "import importlib.metadata as m; print(*{d.name.lower() for d in m.distributions()})"
    installed = set(clean.run("python", "-c", code).split())
    assert {"habitus", "numba", "av"} <= installed
    assert not installed & {"hmmlearn", "arviz", "pandas", "ipykernel", "mkdocs", "pytest"}


# The whole demo takes minutes: scripts/demo.sh runs it in CI, and compares it with its page.
SHORT_DEMO = """
from functools import partial
from habitus.cli import main
from habitus.lab import demonstration
demonstration.NORMAL, demonstration.WHOLE, demonstration.ANOMALIES_PER_HOUR = 60.0, 84.0, 360.0
demonstration.Junction = partial(demonstration.Junction, width=180, height=144, fps=12.5)
main()
"""


def assert_the_demo_finds_anomalies(clean):
    found = json.loads(clean.run("python", "-c", SHORT_DEMO, "demo", "--seed", "210", "--json"))
    folder = clean.folder / "demo"
    assert {path.name for path in folder.iterdir()} >= {
        "junction.mp4",
        "junction.csv",
        "junction.model",
        "events.jsonl",
        "annotated.mp4",
        "report.html",
    }
    assert len((folder / "events.jsonl").read_text().splitlines()) == len(found["events"])
    assert len((folder / "junction.csv").read_text().splitlines()) == len(found["truth"]) + 1
    # A minute of footage supports no alarm, but ranks what is unusual.
    assert [anomaly["rank"] for anomaly in found["truth"]] == [1]
    assert found["false_alarms"] == 0
