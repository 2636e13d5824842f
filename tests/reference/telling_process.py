"""Tells the outbox of a data folder until it is killed; the folder is the one argument."""

import signal
import sys
from pathlib import Path

from habitus.web.delivery import Deliverer
from habitus.web.server import open_console
from habitus.web.server_settings import ServerSettings

if __name__ == "__main__":
    Deliverer(open_console(ServerSettings(Path(sys.argv[1]))), first_wait=0.05).start()
    signal.pause()
