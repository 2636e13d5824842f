"""A small labelled crossing."""

import pytest

from habitus.lab.comparison.scoring import labelled_words
from reference.labelled import QUICK, labelled_footage


@pytest.fixture(scope="session")
def footage():
    return labelled_footage()


@pytest.fixture(scope="session")
def labelled(footage):
    return labelled_words(footage, QUICK)
