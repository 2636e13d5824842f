"""`python -m habitus` is the command `habitus`."""

import gc
import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the command; Ctrl-C before it can be reported in a line just ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_files()
    # Work is shared among processes; threads of a product of small matrices wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.disable()  # what is imported stays: looking for the rest is a sixth of the time
    if sys.argv[1:2] == ["extract"] and "--help" not in sys.argv:
        _load_decoding()
    from habitus.cli import main as run

    gc.freeze()
    gc.enable()
    try:
        run()
    finally:
        gc.freeze()  # all of it ends with the process: searching it first takes longer than that


def _open_standard_files() -> None:
    """Have three standard files, where some were closed: else other files take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def _load_decoding() -> None:
    """Load what decodes, and its kernels in a process of its own, beside all that is imported here.

    Not where memory is limited: that is said in a line first.
    """
    with suppress(Exception):  # whoever needs it tries again, and reports
        import resource

        from habitus.jobs.fork_server import ONE_THREAD

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            return
        os.environ.update(ONE_THREAD)  # the other processors decode
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # else it looks through all packages

        from habitus.ingest.segments import DECODING
        from habitus.jobs.workers import load_early

        load_early(DECODING, forked=True)


if __name__ == "__main__":
    main()
