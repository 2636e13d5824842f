"""A cluster of two workers, for all tests that do it no harm."""

import pytest

from habitus.jobs.cluster import open_workers
from reference.clusters import cluster


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@pytest.fixture(scope="session")
def workers(two):
    with open_workers(two.address) as found:
        yield found
