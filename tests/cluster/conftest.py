"""A cluster of two workers, for the tests of a module that do it no harm."""

import pytest

from habitus.workers import open_workers
from reference.clusters import cluster


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture(scope="module")
def workers(two):
    with open_workers(two.address) as found:
        yield found
