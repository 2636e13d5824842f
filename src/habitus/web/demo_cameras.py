"""Three rendered junctions as cameras, so that anyone sees the console work within a minute.

Each scene is rendered once into the data folder. It is first judged at once, as a recording: a
model is learnt from its first half, in which nothing unusual happens, and the second half has its
first events. From then on it plays as a camera, whose time begins then.
"""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from habitus.errors import HabitusError
from habitus.jobs.fork_server import ForkServer
from habitus.site.pipe_messages import CameraState, StateChanged
from habitus.site.process import RenderingProcess
from habitus.web import store
from habitus.web.database import CameraRow, LearningRow

if TYPE_CHECKING:
    from habitus.web.server import Console

SECONDS, ANOMALIES_PER_HOUR = 300.0, 90.0
"""Length of a scene, and how frequent anomalies are in its second half."""
ALERTS_PER_DAY = 480.0
"""20 an hour: minutes of footage cannot show what is rarer."""
# Scenes that are rendered at the same time.
AT_ONCE = 2
TICK = 0.25


class DemoScene(NamedTuple):
    """A camera of the demonstration."""

    id: str
    name: str
    seed: int


SCENES = (
    DemoScene("demo-market-square", "Market square", 12),
    DemoScene("demo-station-road", "Station road", 15),
    DemoScene("demo-harbour-bridge", "Harbour bridge", 19),
)


class Demo(threading.Thread):
    """The thread that prepares the cameras of the demonstration, while the supervisor runs.

    Nothing unusual happens in the first half of each scene's seconds.
    """

    def __init__(
        self,
        console: "Console",
        fork_server: ForkServer,
        *,
        scenes: Sequence[DemoScene] = SCENES,
        seconds: float = SECONDS,
    ) -> None:
        super().__init__(name="demo", daemon=True)
        self.console, self.fork_server = console, fork_server
        self.scenes, self.seconds = scenes, seconds
        self._stopping = threading.Event()

    def start(self) -> None:
        """Add the cameras that are not there, and begin to prepare them."""
        for scene in self.scenes:
            self._add(scene)
        super().start()

    def stop(self) -> None:
        """End what is under way; it goes on with the next start."""
        self._stopping.set()
        if self.is_alive():
            self.join()

    def _path(self, scene: DemoScene) -> Path:
        return (self.console.settings.data / "demo" / f"{scene.id}.mp4").resolve()

    def _add(self, scene: DemoScene) -> None:
        now = time.time()
        with self.console.database.transaction() as session:
            if session.get(CameraRow, scene.id) is not None:
                return
            camera = CameraRow(
                id=scene.id,
                name=scene.name,
                kind="recording",
                secret_address=self.console.vault.seal(str(self._path(scene))),
                shown_address="a rendered junction",
                alerts_per_day=ALERTS_PER_DAY,
                learn_days=1,
                options={"local": True, "preparing": True},
                state=CameraState.LEARNING.value,
                reason="its scene is drawn first",
                created=now,
                since=now,
            )
            session.add(camera)

    def run(self) -> None:
        """Render and judge the scenes until each plays."""
        waiting = [scene for scene in self.scenes if self._is(scene, preparing=True)]
        rendering: dict[DemoScene, RenderingProcess] = {}
        try:
            while not self._stopping.is_set():
                while waiting and len(rendering) < AT_ONCE:
                    scene = waiting.pop(0)
                    if self._path(scene).exists():
                        self._change(scene)
                    else:
                        rendering[scene] = self._render(scene)
                for scene, process in list(rendering.items()):
                    if process.step(TICK / 2):
                        process.child.end()
                        del rendering[scene]
                        self._change(scene)
                    else:
                        self._say(scene, f"its scene is drawn: {100 * process.progress:.0f} %")
                judged = [scene for scene in self.scenes if self._is(scene, preparing=False)]
                for scene in judged:
                    if self._is(scene, preparing=False, state=CameraState.ENDED):
                        self._change(scene, kind="playback")
                if not (waiting or rendering or judged):
                    return
                self._stopping.wait(TICK)
        except (HabitusError, SQLAlchemyError, OSError) as error:
            reason = str(error).partition("\n")[0]
            self.console.bulletin.post(f"the demonstration cannot be prepared: {reason}")
        finally:
            for process in rendering.values():
                process.child.end()

    def _render(self, scene: DemoScene) -> RenderingProcess:
        junction = {
            "seed": scene.seed,
            "seconds": self.seconds,
            "fps": 12.5,
            "normal_for": self.seconds / 2,
            "anomalies_per_hour": ANOMALIES_PER_HOUR,
        }
        return RenderingProcess(self._path(scene), junction, self.fork_server)

    def _is(self, scene: DemoScene, *, preparing: bool, state: str | None = None) -> bool:
        """Return whether a camera is there that does not play yet, and is rendered or judged."""
        with self.console.database.session() as session:
            camera = session.get(CameraRow, scene.id)
        if camera is None or camera.kind != "recording":
            return False
        as_wanted = bool(camera.options.get("preparing", False)) == preparing
        return as_wanted and state in (None, camera.state)

    def _say(self, scene: DemoScene, reason: str) -> None:
        change = StateChanged(CameraState.LEARNING, time.time(), reason)
        with self.console.database.transaction() as session:
            changed = store.set_state(session, scene.id, change)
        if changed:
            self.console.bulletin.publish("camera", camera=scene.id, **change._asdict())

    def _change(self, scene: DemoScene, *, kind: str = "recording") -> None:
        with self.console.database.transaction() as session:
            camera = session.get(CameraRow, scene.id)
            if camera is None:
                return
            camera.kind, camera.options = kind, {"local": True}
            camera.state, camera.reason = CameraState.CONNECTING.value, ""
            if kind == "playback":  # nobody knows when it was recorded
                camera.created = time.time()
                undated = update(LearningRow).where(LearningRow.camera_id == scene.id)
                session.execute(undated.values(since=None, until=None))
        if self.console.supervisor is not None:
            self.console.supervisor.refresh()
