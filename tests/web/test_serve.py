"""The real command: it starts, says where it is, answers, and ends with nothing left behind."""

import contextlib
import fcntl
import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import habitus
from habitus.web.administration import add_token
from habitus.web.answers import NewTokenRequest
from habitus.web.database import CameraRow, Role
from habitus.web.server import Console, open_console, serve
from habitus.web.server_settings import ServerSettings
from reference.commands import habitus as command
from reference.footage import encode, moving_square
from reference.processes import LONG, descendants, running, wait_until
from reference.streams import free_port

COMMAND = [sys.executable, "-m", "habitus", "serve"]
Start = Callable[..., "subprocess.Popen[str]"]


def run(*arguments: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LONG, check=False, **options
    )


def started(start: Start, data: Path, *arguments: object, **options: Any) -> Any:
    """The command once it answers, and its address."""
    process = start(
        [*COMMAND, "--data", data, "--port", 0, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"habitus: the console is at (http://\S+) \(Ctrl-C ends it\)\n", line)
    assert found, line or process.stderr.read()
    return process, found[1]


def get(address: str, path: str, **headers: str) -> tuple[int, str]:
    with contextlib.closing(http.client.HTTPConnection(urlsplit(address).netloc)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_and_ends(start: Start, tmp_path: Path, number: int) -> None:
    video = encode(tmp_path / "a.mp4", moving_square(75))
    data = tmp_path / "data"
    data.mkdir()
    (data / "cameras.toml").write_text(f'[[camera]]\nname = "Yard"\naddress = "{video}"\n')
    process, address = started(start, data)
    assert get(address, "/healthz") == (200, '{"status":"ok","problems":[]}')
    wait_until(
        lambda: json.loads(get(address, "/api/cameras")[1])[0]["width"] == 160,
        "the camera gives a picture",
    )
    picture = "/api/cameras/yard/picture"
    wait_until(lambda: get(address, picture)[0] == 200, "the picture is there")
    family = descendants(process.pid)
    assert len(family) >= 3, "forkserver, camera, decoder"
    connections = []  # of pages that listen meanwhile
    for _ in range(2):
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LONG)
        connection.request("GET", "/api/stream")
        answer = connection.getresponse()
        assert answer.readline().startswith(b"retry:")
        connections.append((connection, answer))
    process.send_signal(number)
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    assert (output, errors) == ("", "")
    for connection, answer in connections:
        answer.read()  # to its end, not cut off
        connection.close()
    wait_until(lambda: not any(map(running, family)), "all processes are gone")


def test_another_server_on_the_same_folder_is_refused(start: Start, tmp_path: Path) -> None:
    started(start, tmp_path / "data")
    other = command("serve", "--data", tmp_path / "data", "--port", 0, cwd=tmp_path)
    assert other.returncode == 1
    assert "another console runs" in other.stderr
    assert other.stderr.count("\n") == 1


def test_a_database_is_not_migrated_by_a_server_that_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = command("serve", "--data", tmp_path, "--port", 0, cwd=tmp_path)
    assert "another console runs" in refused.stderr
    assert not list(tmp_path.glob("*.sqlite*"))


def test_for_want_of_descriptors_it_is_not_the_port(tmp_path: Path) -> None:
    code = (
        "import os, resource\n"
        "from pathlib import Path\n"
        "import habitus\n"
        "from habitus.web.server import listening\n"
        "from habitus.web.server_settings import ServerSettings\n"
        "settings = ServerSettings(Path.cwd(), '127.0.0.1', 0, None)\n"
        "with listening(settings):\n"
        "    pass\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "try:\n"
        "    while True:\n"
        "        os.dup(0)\n"
        "except OSError:\n"
        "    pass\n"
        "try:\n"
        "    with listening(settings):\n"
        "        pass\n"
        "except habitus.InvalidInputError as error:\n"
        "    print(error, error.parameter)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == (
        "cannot listen at 127.0.0.1, port 0: Too many open files: raise the limit (ulimit -n) "
        "None\n"
    )


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("serve", "--data", tmp_path / "data", "--port", port, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        f"habitus: cannot listen at 127.0.0.1, port {port}: Address already in use (--port)\n"
    )


def refusals(folder: Path) -> dict[str, tuple[list[object], str]]:
    """What is refused, and what is said of it."""
    file = folder / "file"
    nobody = f"postgresql+psycopg://me:hunter2@127.0.0.1:{free_port()}/x"
    return {
        "a port there cannot be": (["--port", 70_000], "port must be from 0 to 65535"),
        "a host that is not known": (["--host", "no-such-host.invalid"], "(--host)"),
        "a folder that is a file": (["--data", file], "cannot write to"),
        "a database that is away": (["--database", nobody], "cannot use the database"),
        "no database": (["--database", "nonsense"], "cannot use the database"),
        "no driver": (["--database", "mysql://a/b"], "cannot use the database"),
        "no password": (["--host", "0.0.0.0"], "set one first (--set-password)"),  # noqa: S104
        "no password behind a proxy": (["--behind-proxy"], "set one first (--set-password)"),
        "no address": (["--public-url", "example.org"], "public_url must be as"),
        "a short password": (["--password-file", file], "a password must have 8"),
        "no password file": (["--password-file", folder / "none"], "cannot read"),
        "no backup": (["--restore", file], "not a complete backup"),
        "nothing to back up": (["--backup", folder / "b.zip"], "no data of a console here"),
    }


@pytest.mark.parametrize("name", list(refusals(Path())))
def test_what_cannot_be_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    arguments, said = refusals(tmp_path)[name]
    done = command("serve", "--data", tmp_path / "data", "--port", 0, *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("habitus: ")
    assert "hunter2" not in done.stderr


def test_a_mistake_in_the_camera_file_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "cameras.toml").write_text('[[camera]]\nname = "Yard"\n')
    done = command("serve", "--data", data, "--port", 0, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"habitus: {data}/cameras.toml, line 1: address is missing\n"


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    """As where only `pip install habitus` was done: the package cannot be found."""
    hiding = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'fastapi' else find(name, *rest)\n"
        "sys.argv = ['habitus', 'serve']\n"
        "from habitus.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hiding], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert done.stderr == ("habitus: the console needs fastapi: pip install 'habitus[console]'\n")
    assert not list(tmp_path.iterdir())


def test_with_a_password_others_may_reach_it(start: Start, tmp_path: Path) -> None:
    data, secret = tmp_path / "data", "a long password"
    done = run("--data", data, "--set-password", input=f"{secret}\n")
    assert done.returncode == 0, done.stderr
    assert secret not in done.stdout + done.stderr
    _, address = started(start, data, "--host", "0.0.0.0")  # noqa: S104
    assert get(address, "/api/cameras")[0] == 401
    assert get(address, "/healthz")[0] == 200


@pytest.mark.parametrize("again", ["a long password", "another one"])
def test_a_password_is_asked_for_twice_and_not_shown(
    start: Start, tmp_path: Path, again: str
) -> None:
    ours, theirs = pty.openpty()
    process = start(
        [*COMMAND, "--data", tmp_path / "data", "--set-password"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    answers = ["a long password", again, *(2 * ["a long password"] if "another" in again else [])]
    output = ""
    for number, answer in enumerate(answers):
        prompt = "again: " if number % 2 else "password of admin: "
        while not output.endswith(prompt):  # what is typed earlier is thrown away
            output += process.stdout.read(1)
        os.write(ours, f"{answer}\n".encode())
        output += "|"
    output += process.communicate(timeout=LONG)[0]
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, output
    assert "a long password" not in output
    assert ("do not match" in output) == (again == "another one")
    assert "is set" in output


def test_a_service_is_given_its_password(start: Start, tmp_path: Path) -> None:
    environment = {**os.environ, "HABITUS_PASSWORD": "a long password"}
    process, address = started(start, tmp_path / "data", env=environment)
    assert get(address, "/api/cameras")[0] == 401
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LONG)
    file = tmp_path / "password"
    file.write_text("another long password\n")
    _, address = started(start, tmp_path / "data", "--password-file", file)
    assert get(address, "/api/cameras")[0] == 401


def test_a_backup_is_made_and_restored(start: Start, tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "backup.zip"
    (data).mkdir()
    (data / "cameras.toml").write_text('[[camera]]\nname = "Gate"\naddress = "srt://192.0.2.1"\n')
    started(start, data)
    done = command("serve", "--data", data, "--backup", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"wrote {file}\n"), done.stderr
    again = tmp_path / "again"
    done = command("serve", "--data", again, "--restore", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"restored to {again}\n"), done.stderr
    console = open_console(ServerSettings(again))
    with console.database.transaction() as session:
        assert session.get(CameraRow, "gate") is not None
    console.database.close()


def test_the_data_folder_is_its_owners(tmp_path: Path) -> None:
    console = open_console(ServerSettings(tmp_path / "data"))
    console.database.close()
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    assert (tmp_path / "data" / "secret.key").stat().st_mode & 0o077 == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A console in a thread of this process, by the public function."""
    stop, addresses = threading.Event(), []
    ready = threading.Event()

    def tell(address: str) -> None:
        addresses.append(address)
        ready.set()

    data = tmp_path / "data"
    thread = threading.Thread(
        target=habitus.serve, args=(data,), kwargs={"port": 0, "started": tell, "stop": stop}
    )
    thread.start()
    try:
        assert ready.wait(LONG)
        yield addresses[0], data
    finally:
        stop.set()
        thread.join()


class Listener:
    """Somebody who reads news as they come."""

    def __init__(self, address: str, query: str = "", **headers: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=LONG)
        self.connection.request("GET", f"/api/stream{query}", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"].startswith("text/event-stream")
        self.message()  # that it listens

    def message(self) -> dict[str, str]:
        """The fields of the next message."""
        fields: dict[str, str] = {}
        while line := self.answer.readline().decode().rstrip("\n"):
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        return fields

    def close(self) -> None:
        self.connection.close()


@contextlib.contextmanager
def listening(*arguments: str, **headers: str) -> Iterator[Listener]:
    listener = Listener(*arguments, **headers)
    try:
        yield listener
    finally:
        listener.close()


def add_camera(address: str, data: Path, name: str) -> None:
    console = open_console(ServerSettings(data))
    secret = add_token(console, "test", NewTokenRequest(name="script", role=Role.ADMIN)).secret
    console.database.close()
    body = json.dumps({"name": name, "address": "srt://192.0.2.1:9000", "enabled": False})
    with contextlib.closing(http.client.HTTPConnection(urlsplit(address).netloc)) as connection:
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        connection.request("POST", "/api/cameras", body, headers)
        assert connection.getresponse().status == 201


def test_news_reach_all_who_listen(served: tuple[str, Path]) -> None:
    address, data = served
    with (
        listening(address) as one,
        listening(address, "?topic=camera") as other,
        listening(address, "?topic=event") as third,
        listening(address, "?camera=elsewhere") as fourth,
    ):
        add_camera(address, data, "Gate")
        for listener in (one, other):
            message = listener.message()
            assert message["event"] == "camera"
            assert json.loads(message["data"])["camera"] == "gate"
        for listener in (third, fourth):
            listener.connection.sock.settimeout(0.3)
            with pytest.raises(TimeoutError):
                listener.message()


def test_events_that_were_missed_are_told(served: tuple[str, Path]) -> None:
    from habitus.web import store
    from reference.consoles import add_camera as put_camera
    from reference.consoles import entry

    address, data = served
    console: Console = open_console(ServerSettings(data))
    put_camera(console, enabled=False)
    now = time.time()
    with console.database.transaction() as session:
        for name, ago in {"old": 7200.0, "missed": 20.0}.items():
            start = now - ago
            times = {"start": start, "end": start + 1, "peak": start}
            store.ingest(session, "north", entry(name, **times))
    console.database.close()
    with listening(address, "?topic=event", **{"Last-Event-ID": f"{now - 30:.3f}"}) as listener:
        message = listener.message()
        assert json.loads(message["data"])["event"] == "missed"
        assert float(message["id"]) >= now - 1


def test_who_has_gone_is_not_kept(served: tuple[str, Path]) -> None:
    address, _ = served

    def n_streams() -> str:
        found = re.search(
            r"^habitus_news_streams (\S+)$", get(address, "/metrics")[1], re.MULTILINE
        )
        assert found is not None
        return found[1]

    with listening(address):
        assert n_streams() == "1.0"
    wait_until(lambda: n_streams() == "0.0", "the stream is given up")


def test_a_public_function_of_the_command() -> None:
    assert habitus.serve is serve
