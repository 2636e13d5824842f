"""One name, one thing: no class and no module of habitus is called as another."""

import ast
import re
from collections import Counter
from pathlib import Path

import habitus

MODULES = sorted(Path(habitus.__file__).parent.rglob("*.py"))


def repeated(names):
    return [name for name, n in Counter(names).items() if n > 1]


def test_no_class_has_the_name_of_another():
    trees = [ast.parse(module.read_text(encoding="utf-8")) for module in MODULES]
    names = [n.name for tree in trees for n in tree.body if isinstance(n, ast.ClassDef)]
    assert len(names) > 500
    assert repeated(names) == []


def test_no_module_has_the_name_of_another():
    assert repeated(m.stem for m in MODULES if m.stem not in ("__init__", "__main__")) == []


def test_the_page_about_the_folders_names_modules_that_exist():
    page = Path(__file__).parents[2] / "docs/project/architecture.md"
    named = set(
        re.findall(r"`([a-z_]+(?:/[a-z_]+)+)(?:\.py|/)?`", page.read_text(encoding="utf-8"))
    )
    assert len(named) > 60
    home = Path(habitus.__file__).parent
    absent = [n for n in named if not (home / n).is_dir() and not (home / f"{n}.py").is_file()]
    assert absent == ["benchmarks/results"]
