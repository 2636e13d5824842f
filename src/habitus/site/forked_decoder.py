"""Decoder processes that are forked from the fork server, and so cost little memory."""

import contextlib
import os
import threading
from typing import IO

from habitus.ingest.decoder import Job, Launch, decode
from habitus.jobs.fork_server import Child, ForkServer, wait_for_hang_up


class ForkedDecoder:
    """A decoder process that was forked; see `habitus.ingest.decoder.DecoderProcess`."""

    def __init__(self, child: Child, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.child, self.stdin, self.stdout = child, stdin, stdout

    @property
    def returncode(self) -> int | None:
        """Its exit code, if it has ended."""
        return self.child.exit_code

    def kill(self) -> None:
        """End it at once."""
        self.child.kill()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended, or for some seconds."""
        while timeout is None and self.child.is_alive:
            self.child.wait(1.0)
        return self.child.wait(timeout or 0.0)


def decoders_of(fork_server: ForkServer) -> Launch:
    """Return how to launch decoders from a fork server.

    The address with its password goes through a socket: no command line and no file has it.
    """

    def launch(job: Job, stack: contextlib.ExitStack) -> ForkedDecoder:
        their_orders, orders = os.pipe()
        messages, their_messages = os.pipe()
        ours = os.fdopen(orders, "wb"), os.fdopen(messages, "rb")
        theirs = [their_orders, their_messages]
        try:
            child = fork_server.fork("habitus.site.forked_decoder:run_decoder", job, theirs)
        except BaseException:
            for pipe in ours:
                pipe.close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return ForkedDecoder(child, *ours)

    return launch


def run_decoder(job: Job, orders: int, messages: int) -> None:
    """Decode, in a process that ends at once with whoever reads its messages."""
    threading.Thread(target=_end_with_reader, args=(messages,), daemon=True).start()
    decode(job, orders, messages)


def _end_with_reader(messages: int) -> None:
    wait_for_hang_up(messages)
    os._exit(1)
