"""What is dear and the same for all workers of a run is made by the first of them that needs it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder of the run, once `make` has filled it here or in another worker.

    Nobody may change what is in it.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with (base / f"{name}.made").open("a+") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        if mark.seek(0, os.SEEK_END) == 0:  # another may have written since it was opened
            shutil.rmtree(folder, ignore_errors=True)  # of a worker that failed
            folder.mkdir()
            make(folder)
            mark.write(name)
    return folder
