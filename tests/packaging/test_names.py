"""One name, one thing: no class and no module of habitus is called as another."""

import ast
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
