"""Answers are sent at once."""

import socket
from pathlib import Path

from habitus.web.server import listening
from habitus.web.server_settings import ServerSettings


def test_answers_do_not_wait_for_an_acknowledgement(tmp_path: Path):
    with (
        listening(ServerSettings(tmp_path, port=0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
