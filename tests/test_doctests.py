"""Every example of a docstring runs. A module is imported when its turn has come."""

import doctest
import importlib
from pathlib import Path

import pytest

import habitus

PACKAGE = Path(habitus.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name, capsys):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried, "the module has an example that doctest does not find"
    assert not failed, capsys.readouterr().out
