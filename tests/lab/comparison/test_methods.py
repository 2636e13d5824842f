"""The table of methods against the paper's Table I, as it is printed."""

import re
import sys

import pytest

from habitus.errors import InvalidInputError
from habitus.lab.comparison.protocol import CHAINS, GROUPS, available, chosen

TABLE = """
EM 1 p, EM H p, EM H+1 p,
VB 1 p, VB 1 mc 5, VB 1 mc 100, VB H p, VB H mc 5, VB H mc 100, VB H+1 p, VB H+1 mc 5, VB H+1 mc 100,
GS 1 p, GS 1 mc 5, GS 1 mc 100, GS H p, GS H mc 5, GS H mc 100, GS H+1 p, GS H+1 mc 5, GS H+1 mc 100
"""  # noqa: E501


def test_the_papers_21_methods_are_there_by_its_names():
    names = [method.name for chain in chosen(["em", "vb", "gibbs"]) for method in chain.methods]
    assert names == [re.sub(r"\s+", " ", name.strip()) for name in TABLE.split(",")]


def test_groups_and_single_names_choose_and_others_are_refused():
    assert chosen([]) == list(CHAINS.values())
    assert [chain.name for chain in chosen(["lda", "em"])] == ["em-1", "em-H", "em-H+1", "lda"]
    assert {chain.group for chain in CHAINS.values()} == set(GROUPS)
    with pytest.raises(InvalidInputError, match=r"found 'svm'"):
        chosen(["svm"])


def test_without_hmmlearn_its_row_is_left_out_and_said(monkeypatch):
    everything = chosen([])
    assert available(everything) == (everything, [])
    monkeypatch.setitem(sys.modules, "hmmlearn", None)
    chains, notes = available(everything)
    assert [chain.name for chain in everything if chain not in chains] == ["hmm"]
    assert "habitus[compare]" in notes[0]
    assert available(chosen(["em"])).notes == []
