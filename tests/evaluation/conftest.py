"""A junction whose truth several tests ask for."""

import pytest

from habitus.lab import Junction


@pytest.fixture(scope="session")
def scene():
    """A small one, with three anomalies."""
    return Junction(
        seed=305, seconds=150, normal_for=80, anomalies_per_hour=300, width=160, height=128,
        fps=12.5,
    )  # fmt: skip
