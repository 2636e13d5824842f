"""The wheel and the sdist, in an environment that holds nothing else; the demo runs from there."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command, cwd):
    """Run a command without this tree's source on the path; give what it wrote to stdout."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
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

    def install(self, *what):
        quiet = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "constraints.txt")
        self.run("python", "-m", "pip", "install", *quiet, *what)


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
    console = "habitus/console"
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


def test_what_is_installed_does_what_it_promises(built):
    """One test: the environment takes a gigabyte and the demo minutes, whoever runs it."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", "venv", cwd=folder)
        clean = Environment(Path(folder))
        clean.install(built.wheel)
        assert_the_command_and_the_module_are_one(clean)
        assert_no_extra_is_there(clean)
        assert_the_demo_finds_anomalies(clean)
        assert_the_sdist_installs_the_same_files(clean, built.sdist)


def assert_the_command_and_the_module_are_one(clean):
    version = f"habitus {PROJECT['version']}\n"
    assert clean.run("habitus", "--version") == version
    assert clean.run("python", "-m", "habitus", "--version") == version
    told = clean.run("habitus", "--help").replace("Usage: habitus", "Usage: python -m habitus")
    assert clean.run("python", "-m", "habitus", "--help").split() == told.split()


def assert_no_extra_is_there(clean):
    names = json.loads(clean.run("python", "-m", "pip", "list", "--format=json"))
    installed = {package["name"].lower() for package in names}
    assert "habitus" in installed
    assert not installed & {"hmmlearn", "arviz", "pandas", "ipykernel", "mkdocs", "pytest"}


def assert_the_demo_finds_anomalies(clean):
    found = json.loads(clean.run("habitus", "demo", "--json"))
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
    assert found["found"] >= 2
    assert found["false_alarms"] <= 3


def assert_the_sdist_installs_the_same_files(clean, sdist):
    code = (
        "import importlib.metadata as m; "
        "print(*sorted(f'{f} {f.hash.value}' for f in m.files('habitus') "
        "if str(f).startswith('habitus/') and f.hash), sep='\\n')"
    )
    before = clean.run("python", "-c", code)
    clean.install("--no-deps", "--force-reinstall", sdist)
    assert "habitus/__main__.py" in before
    assert clean.run("python", "-c", code) == before
    assert clean.run("habitus", "--version") == f"habitus {PROJECT['version']}\n"
