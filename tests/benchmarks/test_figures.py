"""The figures of the documents are those that the benchmarks kept."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "figures.py"
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def figures(monkeypatch, tmp_path):
    """The script, with two results of its own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    claim = {"what": "EM", "ours": 1.5, "unit": "ms", "peer": 150.0, "ratio": 100.0}
    kept(tmp_path / "speed.json", [claim | {"target": None, "note": "by hand", "met": None}])
    kept(tmp_path / "found.json", [{"method": "tail", "area": 0.95}, {"method": "x", "area": 0.9}])
    return module


def kept(path, rows):
    machine = {"processor": "Abacus", "cores": 2, "load": 0.5}
    result = {"command": "benchmarks/x.py", "version": "0.1.0", "machine": machine, "rows": rows}
    path.write_text(json.dumps(result))


def test_no_figure_of_the_documents_is_stale():
    run = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_a_table_is_written_between_its_marks(figures):
    page = "a\n\n<!-- figures with notes: speed -->\nold\n<!-- /figures -->\n\nb\n"
    written = figures.written(page)
    assert "| EM | 1.50 ms | 150 ms | 100 | - | - |\n" in written
    assert "*`benchmarks/x.py` (version 0.1.0, Abacus, 2 cores, load at most 0.5)*" in written
    assert "- EM: by hand\n" in written
    assert "old" not in written
    assert (written[:3], written[-3:]) == ("a\n\n", "\nb\n")
    assert figures.written(written) == written


def test_a_figure_is_quoted_with_the_digits_of_its_column(figures):
    mark = "<!-- figure: found :: x :: area -->"
    assert figures.written(f"{mark}1<!-- /figure -->") == f"{mark}0.90<!-- /figure -->"


@pytest.mark.parametrize(
    "mark", ["none :: x :: area", "found :: y :: area", "found :: x :: volume"]
)
def test_a_figure_that_was_not_measured_is_refused(figures, mark):
    with pytest.raises(SystemExit, match="result"):
        figures.written(f"<!-- figure: {mark} -->1<!-- /figure -->")


@pytest.mark.filterwarnings("ignore")  # of libraries that only benchmarks use
def test_every_benchmark_can_be_started(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = {path.stem for path in BENCHMARKS.glob("*.py")}
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        for name in sorted(names):
            assert BENCHMARKS / f"{name}.py" == Path(importlib.import_module(name).__file__)
    finally:
        for name in names & set(sys.modules):
            del sys.modules[name]


@pytest.mark.parametrize("page", ["benchmarks.md", "console.md"])
def test_every_table_of_a_page_of_benchmarks_is_made_from_results(page):
    text = (ROOT / "docs" / "results" / page).read_text()
    written = re.sub(r"<!-- figures.*?<!-- /figures -->", "", text, flags=re.DOTALL)
    assert "|---" not in written.replace(" ", "")
