"""What the project says of itself, in several files, is one thing."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import habitus

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [
    line.partition("#")[0].strip()
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if not line.startswith("#")
]
PINS = {canonicalize_name(Requirement(line).name): Requirement(line) for line in LINES}
SERIES = {
    line.rpartition(" ")[2]
    for line in PROJECT["classifiers"]
    if re.fullmatch(r".* :: 3\.\d+", line)
}


def needed(requirements, found):
    """Add the names of all distributions that these requirements lead to, as installed here."""
    for requirement in map(Requirement, requirements):
        name, extras = canonicalize_name(requirement.name), requirement.extras or {""}
        if name == "habitus":
            for extra in extras:
                needed(PROJECT["optional-dependencies"][extra], found)
        elif (name, *sorted(extras)) not in found:
            found.add((name, *sorted(extras)))
            needed(wanted_by(name, extras), found)
    return found


def wanted_by(name, extras):
    """Requirements of an installed distribution with these extras, on this machine."""
    for line in importlib.metadata.requires(name) or []:
        marker = Requirement(line).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield line.partition(";")[0]


def test_every_version_is_pinned():
    extras = PROJECT["optional-dependencies"]
    found = needed([*PROJECT["dependencies"], *extras["dev"], *extras["bench"]], set())
    names = {name for name, *_ in found}
    assert len(names) > 100
    assert names <= PINS.keys()


def test_a_pin_is_one_version_and_names_no_index():
    for pin in PINS.values():
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin
        assert pin.url is None


def test_pins_fit_what_the_project_asks_for():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in (Requirement(text) for group in groups for text in group):
        if requirement.name != "habitus":
            (pin,) = PINS[canonicalize_name(requirement.name)].specifier
            assert pin.version in requirement.specifier, requirement


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == habitus.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Isupova",
        "Kuzin",
        "Mihaylova",
    ]
    assert paper["doi"] in PROJECT["urls"]["Paper"]


def test_the_changelog_knows_this_version():
    assert f"## {habitus.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_workflow_runs_every_python_that_is_claimed():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    demo = workflow["jobs"].pop("demo")
    assert demo["steps"][-1]["run"] == "sh scripts/demo.sh"
    for job in workflow["jobs"].values():
        assert set(job["strategy"]["matrix"]["python"]) == SERIES
        assert job["steps"][-1]["run"].startswith("make test")


def test_hooks_run_the_linter_of_make_test():
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in repo["hooks"]]
    for command in ("ruff check", "ruff format"):
        assert any(entry.startswith(f".venv/bin/{command}") for entry in entries)
        assert f"$(BIN)/{command}" in (ROOT / "Makefile").read_text()
