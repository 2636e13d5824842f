"""Reports to a server that does not read them, and orders from it."""

from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

import pytest

from habitus.site.pipe_messages import (
    MOST_JUDGED,
    AlertOrder,
    CameraPicture,
    JudgedDocument,
    NewEntry,
    Report,
    ServerLink,
    Stop,
)
from reference.processes import LONG, wait_until

N_REPORTS = 3 * MOST_JUDGED


@pytest.fixture
def ends() -> Iterator[tuple[ServerLink, Connection]]:
    server, camera = Pipe()
    link = ServerLink(camera)
    yield link, server
    server.close()
    link.close(within=LONG)
    camera.close()


def all_reports(server: Connection) -> Iterator[Report]:
    while server.poll(1.0):
        yield server.recv()


def test_old_documents_and_pictures_are_dropped_and_no_file(ends: tuple[ServerLink, Connection]):
    link, server = ends
    for n in range(N_REPORTS):
        link.send(JudgedDocument(float(n), None, None, 0, (), 0.0))
        link.send(CameraPicture(float(n), bytes(20_000), 1, 1, [], []))
        link.send(NewEntry(str(n)))
    found = list(all_reports(server))
    assert [r.name for r in found if isinstance(r, NewEntry)] == [str(n) for n in range(N_REPORTS)]
    judged = [r.time for r in found if isinstance(r, JudgedDocument)]
    assert MOST_JUDGED <= len(judged) < N_REPORTS
    assert judged[-MOST_JUDGED:] == [float(n) for n in range(N_REPORTS - MOST_JUDGED, N_REPORTS)]
    pictures = [r.time for r in found if isinstance(r, CameraPicture)]
    assert len(pictures) < N_REPORTS
    assert pictures[-1] == N_REPORTS - 1


def test_orders_come_and_the_last_one_is_to_stop(ends: tuple[ServerLink, Connection]):
    link, server = ends
    assert link.next_order() is None
    server.send(AlertOrder(3.0))
    assert link.next_order(within=LONG) == AlertOrder(3.0)
    server.send(Stop())
    assert link.stop.wait(LONG)


def test_a_server_that_is_gone_is_an_order_to_stop(ends: tuple[ServerLink, Connection]):
    link, server = ends
    server.close()
    assert link.stop.wait(LONG)
    link.send(NewEntry("nobody reads it"))
    wait_until(lambda: not link._waiting[NewEntry], "it is not kept for anybody")
