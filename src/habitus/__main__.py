"""`python -m habitus` is the command `habitus`."""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the command; Ctrl-C before it can be told in a line just ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _open_standard_files()
    if sys.argv[1:2] == ["extract"]:
        _load_decoding()
    from habitus.cli import main as run

    run()


def _open_standard_files() -> None:
    """Have three standard files, where some were closed: else other files take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def _load_decoding() -> None:
    """Load what decodes in a process of its own, beside all that is imported here."""
    from habitus.errors import HabitusError
    from habitus.jobs.fork_server import ONE_THREAD
    from habitus.jobs.workers import DECODING, load_early

    os.environ.update(ONE_THREAD | os.environ)  # the other processors decode
    with suppress(HabitusError, OSError):  # whoever needs it tries again, and tells
        load_early(DECODING)


if __name__ == "__main__":
    main()
