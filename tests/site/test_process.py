"""Processes of cameras, as the server has them: real streams, real files, real signals."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any, TypeVar

import cv2
import pytest

from habitus.jobs.fork_server import ForkServer
from habitus.site import watcher
from habitus.site.journal import SiteEvent, filed_events
from habitus.site.pipe_messages import (
    AlertOrder,
    CameraPicture,
    CameraState,
    FootageExtent,
    GoOn,
    JudgedDocument,
    ModelWanted,
    NewEntry,
    PictureSize,
    Remark,
    Report,
    ServerLink,
    StateChanged,
    UseModel,
)
from habitus.site.process import CameraJob, CameraProcess
from habitus.site.zones import Zone
from reference.footage import encode, moving_square
from reference.processes import LONG, command_of, decoders, descendants, running, wait_until
from reference.streams import free_port, motion_jpeg, rtsp
from reference.two_lanes import FPS, HEIGHT, WIDTH, WRONG, lanes_at

R = TypeVar("R")


class Listener:
    """A camera's process, and all that it has reported."""

    def __init__(self, process: CameraProcess) -> None:
        self.process, self.reports = process, list[Report]()

    def all(self, kind: type[R]) -> list[R]:
        return [report for report in self.reports if isinstance(report, kind)]

    @property
    def states(self) -> list[CameraState]:
        return [report.state for report in self.all(StateChanged)]

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Listen until a condition holds."""

        def holds() -> bool:
            wait([self.process.child.connection], 0.1)
            self.reports += self.process.reports()
            return bool(condition()) or not self.process.child.is_alive

        wait_until(holds, what)
        assert condition(), f"the process ended before: {what}; {self.states}"

    def wait_for_state(self, state: CameraState) -> None:
        self.wait_for(lambda: self.states[-1:] == [state], f"it is {state}")

    def end(self) -> None:
        self.reports += self.process.end(within=LONG)
        assert self.process.child.exit_code == 0

    def entries(self, kind: str) -> list[SiteEvent]:
        """Entries of the journal."""
        found = [entry for _, entry in filed_events(self.process.job.folder / "journal")]
        assert not [entry for entry in found if not isinstance(entry, SiteEvent)]
        return [e for e in found if isinstance(e, SiteEvent) and e.kind == kind]

    @property
    def decoder(self) -> int:
        """Process id of its decoder, by whom the camera's own pipe is held."""
        server = self.process.fork_server.pid
        assert server is not None
        # That of a test before may still be ending.
        wait_until(lambda: len(decoders(server)) == 1, "one decoder")
        return decoders(server)[0]


Start = Callable[..., Listener]


@pytest.fixture
def camera(fork_server: ForkServer, tmp_path: Path) -> Iterator[Start]:
    """A function that starts the process of a camera; it is killed at the end."""
    processes: list[CameraProcess] = []

    def start(address: object, **job: Any) -> Listener:
        folder = tmp_path / "camera"
        folder.mkdir(exist_ok=True)
        job["options"] = {"local": True, **job.get("options", {})}
        given = {"alerts": AlertOrder(144.0)} | job  # what minutes of footage can tell
        process = CameraProcess(CameraJob("camera", folder, str(address), **given), fork_server)
        processes.append(process)
        return Listener(process)

    yield start
    for process in processes:
        process.kill()


def test_a_file_plays_as_a_camera_again_and_again(camera: Start, video: Path, model: Path):
    seen = camera(video, kind="playback", model=str(model), options={"speed": 20.0})
    seen.wait_for(lambda: len(seen.all(JudgedDocument)) > 2.3 * 76, "it played more than twice")
    seen.end()
    assert seen.all(PictureSize) == [PictureSize(WIDTH, HEIGHT)]
    assert seen.states == [CameraState.CONNECTING, CameraState.WATCHING]
    ended = [entry for entry in seen.entries("ended") if entry.alarm]
    assert len(ended) == 2, "one event in each turn, and none because of the turn"
    names = {report.name for report in seen.all(NewEntry)}
    assert {path.name for path in (seen.process.job.folder / "journal").iterdir()} == names


def test_a_camera_gives_signs_of_life_while_it_counts_what_is_normal(
    fork_server: ForkServer, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    """Hundreds of events take longer than a process may be silent."""
    monkeypatch.setattr(watcher, "BEAT_EVERY", 0.0)
    ours, theirs = Pipe()
    accepted = ({"habitus": "event"},) * 5
    options = {"local": True}
    job = CameraJob("camera", tmp_path, "-", options=options, model=str(model), accepted=accepted)
    link = ServerLink(theirs)
    watcher.Watcher(job, link, fork_server).close()
    link.close(within=LONG)
    reports = list[Report]()
    while ours.poll():
        reports.append(ours.recv())
    assert [type(report) for report in reports].count(FootageExtent) == 5
    ours.close()


def test_an_event_is_filed_with_its_pictures_and_its_clip(camera: Start, turn: Path, model: Path):
    seen = camera(turn, kind="playback", model=str(model), options={"speed": 4.0})
    folder = seen.process.job.folder
    seen.wait_for(lambda: [e for e in seen.entries("started") if e.alarm], "it has started")
    (started,) = (entry for entry in seen.entries("started") if entry.alarm)
    assert started.end is None
    assert Path(folder, "events", started.thumbnail).read_bytes()[:2] == b"\xff\xd8"
    seen.wait_for(lambda: [e for e in seen.entries("ended") if e.alarm], "it is over")
    (ended,) = (entry for entry in seen.entries("ended") if entry.alarm)
    assert ended.id == started.id
    assert ended.end is not None
    assert ended.start <= ended.peak < ended.end
    assert ended.details.boxes
    assert ended.details.normality < ended.details.threshold
    for name in (ended.thumbnail, ended.heat):
        assert cv2.imread(str(folder / "events" / name)).shape[1] == 720
    seen.wait_for(lambda: seen.entries("clip"), "its clip is cut")
    (clip,) = seen.entries("clip")
    assert clip.id == ended.id
    assert Path(folder, "events", clip.clip).stat().st_size == clip.n_bytes
    unusual = [picture for picture in seen.all(CameraPicture) if picture.heat]
    assert unusual, "heat is shown while it lasts"
    seen.end()


def test_a_clip_is_cut_though_the_process_was_killed_before(camera: Start, turn: Path, model: Path):
    options = {"speed": 4.0}
    killed = camera(turn, kind="playback", model=str(model), options=options)
    killed.wait_for(lambda: [e for e in killed.entries("ended") if e.alarm], "it is over")
    killed.process.kill()
    (ended,) = (entry for entry in killed.entries("ended") if entry.alarm)
    assert not killed.entries("clip")
    again = camera(turn, kind="playback", model=str(model), options=options)
    again.wait_for(lambda: again.entries("clip"), "its clip is cut")
    clip = again.entries("clip")[0]
    assert clip.id == ended.id
    folder = again.process.job.folder
    assert Path(folder, "events", clip.clip).stat().st_size == clip.n_bytes
    again.wait_for(lambda: not list((folder / "clips").iterdir()), "it is not cut again")
    again.end()


def test_what_is_seen_is_told_each_second(camera: Start, video: Path):
    seen = camera(video, kind="playback")
    seen.wait_for(lambda: len(seen.all(CameraPicture)) >= 3, "three pictures")
    assert seen.states == [CameraState.CONNECTING, CameraState.LEARNING]
    picture = seen.all(CameraPicture)[1]
    assert (picture.width, picture.height) == (WIDTH, HEIGHT)
    assert picture.jpeg[:2] == b"\xff\xd8"
    assert picture.arrows
    assert not picture.heat
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y, _, _ in picture.arrows)
    times = [report.time for report in seen.all(JudgedDocument)]
    assert 0.5 < times[1] - times[0] < 1.5
    assert abs(times[-1] - time.time()) < 30
    seen.end()


def test_a_camera_that_is_absent_is_waited_for(camera: Start, video: Path):
    port = free_port()
    seen = camera(f"rtsp://127.0.0.1:{port}/camera")
    seen.wait_for(lambda: seen.all(StateChanged)[-1:] and seen.all(StateChanged)[-1].reason, "why")
    assert seen.states[-1] is CameraState.CONNECTING
    with rtsp(port, video):
        seen.wait_for_state(CameraState.LEARNING)
    seen.wait_for_state(CameraState.LOST)
    lost = seen.all(StateChanged)[-1]
    assert lost.reason
    with rtsp(port, video):
        seen.wait_for_state(CameraState.LEARNING)
        seen.end()


def test_a_stream_of_this_machine_is_not_opened_unless_that_is_allowed(camera: Start):
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen = camera(f"rtsp://127.0.0.1:{server.getsockname()[1]}/x", options={"local": False})
        seen.wait_for(
            lambda: any("this machine" in found.reason for found in seen.all(StateChanged)), "why"
        )
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            server.accept()
    seen.end()


def test_pictures_without_times_are_a_camera_too(camera: Start):
    pictures = [cv2.imencode(".jpg", lanes_at(n / FPS))[1].tobytes() for n in range(60)]
    with motion_jpeg(pictures, fps=FPS) as address:
        seen = camera(address)
        seen.wait_for_state(CameraState.LEARNING)
        assert seen.all(PictureSize) == [PictureSize(WIDTH, HEIGHT)]
        seen.wait_for_state(CameraState.LOST)
    assert 4 <= len(seen.all(JudgedDocument)) <= 6
    seen.end()


def test_a_decoder_that_is_killed_is_started_again(camera: Start, video: Path):
    seen = camera(video, kind="playback")
    seen.wait_for_state(CameraState.LEARNING)
    os.kill(seen.decoder, signal.SIGKILL)
    seen.wait_for(lambda: CameraState.LOST in seen.states, "that it crashed is told")
    assert "crashed" in seen.all(StateChanged)[-1].reason
    seen.wait_for_state(CameraState.LEARNING)
    seen.end()


def test_the_decoder_ends_with_a_process_that_is_killed(camera: Start, video: Path):
    seen = camera(video, kind="playback")
    seen.wait_for_state(CameraState.LEARNING)
    decoder = seen.decoder
    seen.process.kill()
    assert seen.process.child.exit_code == -signal.SIGKILL
    wait_until(lambda: not running(decoder), "the decoder ends")


def test_a_model_is_taken_without_losing_the_connection(camera: Start, video: Path, model: Path):
    seen = camera(video, kind="playback", options={"speed": 10.0})
    seen.wait_for_state(CameraState.LEARNING)
    decoder = seen.decoder
    assert seen.process.order(UseModel(str(model)))
    seen.wait_for_state(CameraState.WATCHING)
    assert seen.decoder == decoder
    seen.wait_for(
        lambda: seen.all(JudgedDocument)[-1].normality is not None, "documents are judged"
    )
    judged = seen.all(JudgedDocument)[-1]
    assert judged.threshold is not None
    assert judged.behaviour in (1, 2)
    assert sum(judged.expected) == pytest.approx(1, rel=1e-6)
    seen.process.order(AlertOrder(500.0))
    seen.wait_for(
        lambda: seen.all(JudgedDocument)[-1].threshold > judged.threshold, "more alerts a day"
    )
    seen.end()


def test_a_recording_waits_for_a_model_and_is_judged_once(camera: Start, video: Path, model: Path):
    seen = camera(video, kind="recording", options={"starts": 1e9})
    seen.wait_for(lambda: seen.all(ModelWanted), "it wants a model")
    (wanted,) = seen.all(ModelWanted)
    assert wanted.seconds == 38, "of 76 seconds, half"
    assert seen.all(FootageExtent)[-1] == FootageExtent(38.0, 1e9, 1e9 + 38)
    n_documents = len(seen.all(JudgedDocument))
    assert n_documents == 38
    assert seen.states == [CameraState.CONNECTING, CameraState.LEARNING]
    seen.process.order(UseModel(str(model)))
    seen.wait_for_state(CameraState.ENDED)
    judged = seen.all(JudgedDocument)
    assert [report.time for report in judged] == [1e9 + n for n in range(76)]
    assert [report.normality is None for report in judged[:38]] == [True] * 38
    (alarm,) = (entry for entry in seen.entries("ended") if entry.alarm)
    assert 1e9 + WRONG[0] - 1 <= alarm.start <= alarm.peak < 1e9 + WRONG[1] + 1
    assert [entry.id for entry in seen.entries("clip")] == [alarm.id]
    wait_until(lambda: seen.process.child.exit_code == 0, "the process ends by itself")


def test_a_recording_judged_again_has_the_same_events(camera: Start, video: Path, model: Path):
    ids = set()
    for _ in range(2):
        seen = camera(video, kind="recording", model=str(model))
        seen.wait_for_state(CameraState.ENDED)
        (alarm,) = (entry for entry in seen.entries("ended") if entry.alarm)
        ids.add((alarm.id, alarm.start))
        assert not seen.all(ModelWanted)
    assert len(ids) == 1


def test_a_recording_that_no_model_comes_of_is_read_to_its_end(camera: Start, video: Path):
    seen = camera(video, kind="recording")
    for n in (1, 2):
        seen.wait_for(lambda n=n: len(seen.all(ModelWanted)) == n, "it wants a model")
        seen.process.order(GoOn("nothing moves"))
    seen.wait_for_state(CameraState.ENDED)
    assert seen.all(StateChanged)[-1].reason == "not judged: nothing moves"
    assert [wanted.seconds for wanted in seen.all(ModelWanted)] == [38, 76]


def test_another_frame_size_than_the_model_is_refused(camera: Start, video: Path, model: Path):
    small = encode(video.with_name("small.mkv"), moving_square(100))
    port = free_port()
    seen = camera(f"rtsp://127.0.0.1:{port}/camera", model=str(model))
    with rtsp(port, small):
        seen.wait_for_state(CameraState.REFUSED)
    assert "192x144" in seen.all(StateChanged)[-1].reason
    seen.end()


def test_a_mask_that_leaves_nothing_is_refused(camera: Start, video: Path):
    everything = ((0.0, 0.0), (WIDTH, 0.0), (WIDTH, HEIGHT), (0.0, HEIGHT))
    zones = (Zone("All", "ignore", everything),)
    seen = camera(video, kind="playback", alerts=AlertOrder(144.0, zones))
    seen.wait_for_state(CameraState.REFUSED)
    assert "no cell" in seen.all(StateChanged)[-1].reason


def test_a_server_that_does_not_listen_stops_nothing(camera: Start, turn: Path, model: Path):
    seen = camera(turn, kind="playback", model=str(model), options={"speed": 25.0})
    journal = seen.process.job.folder / "journal"
    wait_until(lambda: len(list(journal.glob("*-ended.json"))) >= 2, "two turns are judged")
    assert not seen.all(JudgedDocument)
    seen.wait_for(lambda: len(seen.all(NewEntry)) >= 4, "files are told of")
    assert len(seen.all(CameraPicture)) < 40, "of pictures only the latest"
    seen.end()


def test_a_process_ends_with_its_server(camera: Start, video: Path):
    seen = camera(video, kind="playback")
    seen.wait_for_state(CameraState.LEARNING)
    pids = [seen.process.child.pid, seen.decoder]
    seen.process.child.connection.close()
    wait_until(lambda: not any(map(running, pids)), "both end")


def test_a_full_disk_is_told_and_events_wait(camera: Start, turn: Path, model: Path):
    seen = camera(turn, kind="playback", model=str(model), options={"speed": 20.0})
    seen.wait_for_state(CameraState.WATCHING)
    journal = seen.process.job.folder / "journal"
    journal.write_text("in the way: nothing can be written here")
    seen.wait_for(lambda: [r for r in seen.all(Remark) if "wait in memory" in r.text], "a remark")
    assert len([r for r in seen.all(Remark) if "be written" in r.text]) == 1
    journal.unlink()
    seen.wait_for(lambda: [e for e in seen.entries("ended") if e.alarm], "events are written")
    seen.wait_for(lambda: [r for r in seen.all(Remark) if "again" in r.text], "that is told")
    seen.end()


def test_passwords_are_on_no_command_line(camera: Start, fork_server: ForkServer):
    seen = camera("rtsp://someone:hunter2@127.0.0.1:1/camera")
    seen.wait_for(lambda: seen.all(StateChanged)[-1:] and seen.all(StateChanged)[-1].reason, "why")
    assert fork_server.pid is not None
    for pid in [fork_server.pid, *descendants(fork_server.pid)]:
        assert "hunter2" not in command_of(pid)
    assert not [report for report in seen.reports if "hunter2" in str(report)]


def test_what_cannot_be_done_is_refused_and_nothing_is_started_anew(camera: Start, video: Path):
    for options in ({"fps": 0.0}, {"speed": 0.0}):
        seen = camera(video, kind="playback", options=options)
        seen.wait_for_state(CameraState.REFUSED)
        assert "above 0" in seen.all(StateChanged)[-1].reason
        seen.end()


def test_an_impossible_budget_is_a_remark(camera: Start, video: Path, model: Path):
    seen = camera(video, kind="playback", model=str(model), options={"speed": 5.0})
    seen.wait_for_state(CameraState.WATCHING)
    seen.process.order(AlertOrder(0.0))
    seen.wait_for(
        lambda: [r for r in seen.all(Remark) if "budget and zones stay" in r.text], "a remark"
    )
    seen.process.order(UseModel("no such file"))
    seen.wait_for(lambda: [r for r in seen.all(Remark) if "cannot be used" in r.text], "a remark")
    n_judged = len(seen.all(JudgedDocument))
    seen.wait_for(lambda: len(seen.all(JudgedDocument)) > n_judged + 2, "it goes on as before")
    assert seen.all(JudgedDocument)[-1].threshold is not None
    seen.end()
