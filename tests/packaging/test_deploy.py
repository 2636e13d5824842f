"""Files to run the console with: a unit of systemd, a container, reverse proxies."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from typer.main import get_command

from habitus.cli import command_for
from reference.system import UNIT_CHECK, needs
from reference.web import HERE, site

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONTAINER = (DEPLOY / "Containerfile").read_text().replace("\\\n", "")


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with the program that is installed here."""
    needs(UNIT_CHECK)
    program = Path(sys.executable).parent / "habitus"
    text = (DEPLOY / "habitus.service").read_text()
    path = tmp_path / "habitus.service"
    path.write_text(text.replace("/opt/habitus/bin/habitus", str(program)))
    return path


def analyzed(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [shutil.which("systemd-analyze") or "systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_accepts_the_unit(unit: Path) -> None:
    done = analyzed("verify", unit)
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(unit.read_text() + "\n[Service]\nProtectSytem=strict\n")
    assert "ProtectSytem" in analyzed("verify", unit).stderr


def test_the_unit_is_confined(unit: Path) -> None:
    command = ["security", "--offline=yes", "--threshold=15", unit]
    assert analyzed(*command).returncode == 0
    unit.write_text(unit.read_text().replace("DynamicUser=yes", "User=root"))
    assert analyzed(*command).returncode == 1


@pytest.mark.parametrize("page", [*DEPLOY.iterdir(), ROOT / "docs/how-to/service.md"])
def test_options_are_those_of_the_command(page: Path) -> None:
    command = get_command(command_for()).commands["serve"]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"habitus serve[^\n`]*|\"serve\", [^\n]*", text)
    found = {flag for line in lines for flag in re.findall(r"--[a-z][a-z-]*", line)}
    assert found <= known
    assert found or page.name in ("nginx.conf", "Caddyfile")


def test_the_container_is_of_a_python_that_is_supported() -> None:
    (version,) = re.findall(r"^FROM \S+/python:(3\.\d+)-slim$", CONTAINER, re.MULTILINE)
    assert version in SpecifierSet(PROJECT["requires-python"])
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    (extra,) = re.findall(r"habitus\[(\w+)\]", CONTAINER)
    assert extra in PROJECT["optional-dependencies"]
    assert re.findall(r"^USER (\w+)$", CONTAINER, re.MULTILINE) == ["habitus"]


def test_the_container_knows_whether_it_is_healthy() -> None:
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    _, *arguments = json.loads(words)
    with site(HERE) as server:
        here = [
            word.replace("127.0.0.1:8420", f"{HERE}:{server.server_port}") for word in arguments
        ]
        check = [sys.executable, *here]
        assert subprocess.run(check, check=False, capture_output=True).returncode == 1
        server.pages["/healthz"] = b"{}"
        assert subprocess.run(check, check=False).returncode == 0
