from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from habitus.jobs.fork_server import ForkServer
from habitus.web import camera_timeline, queries
from habitus.web.database import CameraRow, Minute
from habitus.web.demo_cameras import SCENES, Demo
from habitus.web.server import Console
from habitus.web.supervisor import Supervisor
from reference.processes import wait_until


def camera(console: Console) -> CameraRow:
    with console.database.session() as session:
        return session.get_one(CameraRow, SCENES[0].id)


def test_a_rendered_scene_is_judged_once_and_then_plays_as_a_camera(
    console: Console, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    news, publish = list[tuple[str, dict[str, Any]]](), console.bulletin.publish

    def heard(topic: str, **data: Any) -> None:
        news.append((topic, data))
        publish(topic, **data)

    monkeypatch.setattr(console.bulletin, "publish", heard)
    supervisor = console.supervisor = Supervisor(console, fork_server)
    supervisor.start()
    demo = Demo(console, fork_server, scenes=SCENES[:1], seconds=60.0)
    demo.start()
    wait_until(lambda: news, "its scene is being drawn")
    topic, data = news[0]
    assert (topic, data["state"]) == ("camera", "learning")
    assert data["reason"].startswith("its scene is drawn: ")
    wait_until(lambda: camera(console).kind == "playback", "it was judged to its end")
    wait_until(lambda: camera(console).state == "watching", "it plays as a camera")
    demo.stop()
    supervisor.stop()
    film = Path(console.vault.open(camera(console).secret_address))
    rendered = film.stat().st_mtime_ns
    assert (camera(console).width, camera(console).height) == (360, 288)
    with console.database.session() as session:
        (learning,) = queries.learnings(session, SCENES[0].id)
        assert (learning.since, learning.until) == (None, None), "nobody knows when it was"
        at = camera(console).created
        n_minutes = select(func.count()).where(Minute.camera_id == SCENES[0].id)
        assert session.scalar(n_minutes.where(Minute.minute < at // 60)), "of the recording"
        before = camera_timeline.timeline(session, SCENES[0].id, at - 600, at + 0.5)
        long_before = camera_timeline.timeline(session, SCENES[0].id, at - 9000, at - 60)
    assert not any((*before.behaviour, *long_before.behaviour)), "no time before it plays"
    again = Demo(console, fork_server, scenes=SCENES[:1], seconds=60.0)
    again.start()
    again.stop()
    assert film.stat().st_mtime_ns == rendered
    assert camera(console).kind == "playback"


def test_what_cannot_be_rendered_is_a_notice(console: Console, fork_server: ForkServer) -> None:
    (console.settings.data / "demo").write_text("in the way")
    demo = Demo(console, fork_server, scenes=SCENES[:1], seconds=60.0)
    demo.start()
    wait_until(lambda: console.bulletin.notices(), "a notice")
    demo.stop()
    assert "cannot be prepared" in console.bulletin.notices()[0].text
