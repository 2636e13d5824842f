"""Kernels that are compiled while the demonstration is rendered."""

import os
import subprocess
import sys

CALLED = """
import habitus.lab.kernels_ahead
from habitus.model import expected_counts
from habitus.video import cells
assert cells.fill_moves._entry
assert len(expected_counts.scatter.dispatcher.signatures) == 1
"""


def test_kernels_of_motion_and_learning_are_called():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", CALLED], env=environment, check=True)
