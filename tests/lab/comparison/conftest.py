"""One small labelled crossing for all."""

import pytest

from habitus.lab.comparison.baselines import truths_of
from reference.labelled import QUICK, labelled_footage


@pytest.fixture(scope="session")
def footage():
    return labelled_footage()


@pytest.fixture(scope="session")
def truths(footage):
    return truths_of(footage, QUICK)
