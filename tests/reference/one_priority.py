"""What processes of cameras have loaded, in a fork server whose processes have one priority.

What is niced would wait for whatever runs beside its test: a camera, other tests, a type checker.
"""

import os

import habitus.site.camera_preload  # noqa: F401


def _stay(increment: int) -> int:
    """Leave the priority as it is, instead of `os.nice`."""
    return os.getpriority(os.PRIO_PROCESS, 0)


os.nice = _stay
