"""What the documents say is true today."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_every_function_in_equations_exists():
    names = re.findall(r"`(habitus\.[\w.]+)`", (ROOT / "docs/equations.md").read_text())
    assert len(names) > 15
    for name in names:
        module, parts = name, []
        while True:
            try:
                found = importlib.import_module(module)
                break
            except ModuleNotFoundError:
                module, _, last = module.rpartition(".")
                parts.insert(0, last)
        for part in parts:
            found = getattr(found, part)
        assert callable(found), name


def test_the_command_reference_is_not_stale():
    script = [sys.executable, ROOT / "scripts/command_reference.py", "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_readme_example_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(compile(code, "README.md", "exec"), space)  # noqa: S102
    assert space["normality"].shape == (len(space["counts"]),)


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 200
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists(), link


@pytest.mark.parametrize("page", ["README.md", "docs/commands.md", "CONTRIBUTING.md"])
def test_commands_named_in_the_documents_exist(page):
    from habitus.cli import app

    known = {command.callback.__name__ for command in app.registered_commands}
    named = set(re.findall(r"^\s*(?:\$ )?habitus (\w+)", (ROOT / page).read_text(), re.MULTILINE))
    assert named <= known
