"""Sums that are added as a fixed tree."""

import numpy as np
import pytest

from habitus.corpus.tree_sum import Sums, TreeSum, aligned_blocks, tree_sum


class Term:
    """A sum that remembers how it was added."""

    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Term(f"({self.text}{other.text})")


def as_defined(terms):
    """The largest power of two that is less than their number goes to the left."""
    if len(terms) == 1:
        return terms[0]
    left = 1 << ((len(terms) - 1).bit_length() - 1)
    return f"({as_defined(terms[:left])}{as_defined(terms[left:])})"


@pytest.mark.parametrize("n", range(1, 20))
def test_parts_are_added_as_a_tree_that_depends_on_their_number_alone(n):
    letters = [chr(ord("a") + i) for i in range(n)]
    assert tree_sum(map(Term, letters)).text == as_defined(letters)


def test_few_partial_sums_are_held():
    tree = TreeSum()
    for i in range(1000):
        tree.add(i)
        assert len(tree._sums) <= 10
    assert tree.total() == sum(range(1000))


def test_several_sums_in_one_pass():
    first, second = Sums((np.array([1.0, 2.0]), [1])), Sums((np.array([0.5, 0.0]), [2]))
    total = first + second
    assert total.parts[0].tolist() == [1.5, 2.0]
    assert total.parts[1] == [1, 2]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13, 100])
@pytest.mark.parametrize("most", [1, 4, 1000])
def test_sums_of_aligned_blocks_are_added_to_the_same_tree(n, most):
    numbers = np.random.default_rng(n).normal(size=n) * 10.0 ** np.arange(n, 0, -1)
    for cut in {0, 1, n // 3, n - 1, n}:
        blocks = [*aligned_blocks(0, cut, most), *aligned_blocks(cut, n, most)]
        assert [i for block in blocks for i in block] == list(range(n))
        assert max(map(len, blocks)) <= most
        tree = TreeSum()
        for block in blocks:
            tree.add(tree_sum(numbers[i] for i in block), len(block))
        assert tree.total() == tree_sum(numbers)
