"""What is made of shards: kept in memory and in a temporary file, and given back as it was."""

from typing import NamedTuple

import numpy as np

from habitus.corpus import shards as module
from habitus.corpus.shards import ShardCache

SIZES = (50, 12, 90, 35, 70)


class Four(NamedTuple):
    data: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    number: int


def made_of(number):
    """Return counts, positions in two bytes and numbers that are not whole, of a shard."""
    rng = np.random.default_rng(number)
    counts = rng.poisson(1.0, SIZES[number]).astype(float)
    return Four(counts, 300 + np.arange(SIZES[number]), np.array([0.5, -1.0]), number)


def test_the_first_that_fit_are_kept_and_given_back_as_they_were_made():
    made = []

    def arrays(number):
        made.append(number)
        return made_of(number)

    limit = 3 * sum(SIZES[:3]) + 3 * 16
    for spill_bytes, wanted in ((0, [3, 4]), (1 << 20, []), (60, [3, 4]), (240, [4])):
        made.clear()
        kept = ShardCache(arrays, keep_bytes=limit, spill_bytes=spill_bytes)
        first = [kept(i) for i in range(5)]
        for _ in range(2):
            second = [kept(i) for i in range(5)]
            for one, other in zip(first, second, strict=True):
                for a, b in zip(one, other, strict=True):
                    np.testing.assert_array_equal(a, b)
                    assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
                    assert not isinstance(b, np.ndarray) or b.flags.writeable
        assert made == [0, 1, 2, 3, 4, *wanted, *wanted]


def test_a_full_disk_only_costs_time(monkeypatch):
    def full():
        raise OSError(28, "No space left on device")

    n_made = 0

    def make(number):
        nonlocal n_made
        n_made += 1
        return made_of(number)

    monkeypatch.setattr(module.tempfile, "TemporaryFile", full)
    kept = ShardCache(make, keep_bytes=0, spill_bytes=1 << 20)
    assert kept(1).number == kept(1).number == 1
    assert n_made == 2
    monkeypatch.undo()
    usage = module.shutil.disk_usage("/")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: usage._replace(free=10))
    kept = ShardCache(make, keep_bytes=0, spill_bytes=1 << 20)
    assert kept(1).number == kept(1).number == 1
    assert n_made == 4  # never more than half of what is free
