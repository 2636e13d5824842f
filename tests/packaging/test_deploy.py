"""Files to run the console with: a unit of systemd, a container, reverse proxies."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from packaging.specifiers import SpecifierSet
from scripts.container_steps import Instruction, instructions
from sqlalchemy import create_engine, text
from typer.main import get_command

from habitus.cli import command_for
from habitus.web.server_settings import PORT
from reference.consoles import PostgresServer
from reference.processes import wait_until
from reference.streams import free_port
from reference.system import BROKER, UNIT_CHECK, needs
from reference.telling import MOSQUITTO
from reference.web import HERE, site

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONTAINER = (DEPLOY / "Containerfile").read_text().replace("\\\n", "")
STEPS = instructions((DEPLOY / "Containerfile").read_text())
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with the program that is installed here."""
    needs(UNIT_CHECK)
    program = Path(sys.executable).parent / "habitus"
    text = (DEPLOY / "habitus.service").read_text()
    path = tmp_path / "habitus.service"
    path.write_text(text.replace("/opt/habitus/bin/habitus", str(program)))
    return path


def analyzed(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [shutil.which("systemd-analyze") or "systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_accepts_the_unit(unit: Path) -> None:
    done = analyzed("verify", unit)
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(unit.read_text() + "\n[Service]\nProtectSytem=strict\n")
    assert "ProtectSytem" in analyzed("verify", unit).stderr


def test_the_unit_is_confined(unit: Path) -> None:
    command = ["security", "--offline=yes", "--threshold=15", unit]
    assert analyzed(*command).returncode == 0
    unit.write_text(unit.read_text().replace("DynamicUser=yes", "User=root"))
    assert analyzed(*command).returncode == 1


@pytest.mark.parametrize("page", [*DEPLOY.iterdir(), ROOT / "docs/how-to/service.md"])
def test_options_are_those_of_the_command(page: Path) -> None:
    command = get_command(command_for()).commands["serve"]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    text = page.read_text().replace("\\\n", " ")
    lines = re.findall(r"habitus serve[^\n`]*|\"serve\", [^\n]*", text)
    found = {flag for line in lines for flag in re.findall(r"--[a-z][a-z-]*", line)}
    assert found <= known
    assert found or page.suffix in (".conf", ".yaml") or page.name == "Caddyfile"


def test_the_container_is_of_a_python_that_is_supported() -> None:
    (version,) = re.findall(r"^FROM \S+/python:(3\.\d+)-slim$", CONTAINER, re.MULTILINE)
    assert version in SpecifierSet(PROJECT["requires-python"])
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    (extra,) = re.findall(r"habitus\[(\w+)\]", CONTAINER)
    assert extra in PROJECT["optional-dependencies"]
    assert re.findall(r"^USER (\w+)$", CONTAINER, re.MULTILINE) == ["habitus"]


def test_the_container_knows_whether_it_is_healthy() -> None:
    (words,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", CONTAINER, re.MULTILINE)
    _, *arguments = json.loads(words)
    with site(HERE) as server:
        here = [
            word.replace("127.0.0.1:8420", f"{HERE}:{server.server_port}") for word in arguments
        ]
        check = [sys.executable, *here]
        assert subprocess.run(check, check=False, capture_output=True).returncode == 1
        server.pages["/healthz"] = b"{}"
        assert subprocess.run(check, check=False).returncode == 0


def steps(word: str) -> list[Instruction]:
    return [step for step in STEPS if step.word == word]


def test_the_steps_of_the_container_are_those_that_are_known() -> None:
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "VOLUME", "EXPOSE"}
    known |= {"HEALTHCHECK", "ENTRYPOINT"}
    assert {step.word for step in STEPS} == known
    (entry,), (check,) = steps("ENTRYPOINT"), steps("HEALTHCHECK")
    assert entry.words[:2] == ["habitus", "serve"]
    assert entry.words[0] in PROJECT["scripts"]
    assert check.words[0] == "python"
    assert f":{PORT}/healthz" in check.words[-1]
    assert [step.text for step in steps("EXPOSE")] == [str(PORT)]
    (volume,) = steps("VOLUME")
    assert entry.words[entry.words.index("--data") + 1].startswith(f"{volume.text}/")
    for file in ("constraints.txt", "pyproject.toml", "README.md", "LICENSE", "src"):
        assert f"!{file}\n" in (ROOT / ".containerignore").read_text()
        assert (ROOT / file).exists()


def test_the_steps_of_a_container_are_parsed(tmp_path: Path) -> None:
    text = '# why\nFROM a\nRUN one \\\n    # no step\n    && two\nCMD ["x", \\\n  "y"]\n'
    assert [(step.word, " ".join(step.text.split())) for step in instructions(text)] == [
        ("FROM", "a"),
        ("RUN", "one && two"),
        ("CMD", '["x", "y"]'),
    ]
    assert instructions(text)[2].words == ["x", "y"]


def test_compose_agrees_with_the_container_and_the_command() -> None:
    console = SERVICES["habitus"]
    context = DEPLOY / console["build"]["context"]
    assert (context / console["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
    assert console["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert console["volumes"] == [f"habitus:{steps('VOLUME')[0].text}"]
    command = get_command(command_for()).commands["serve"]  # type: ignore[attr-defined]
    variables = {parameter.envvar for parameter in command.params}
    assert set(console["environment"]) - {"HABITUS_PASSWORD"} <= variables
    assert {name for name, one in SERVICES.items() if "profiles" in one} == {
        "postgres",
        "mosquitto",
    }
    named = {one.split(":")[0] for service in SERVICES.values() for one in service["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])
    for name in named - set(COMPOSE["volumes"]):
        assert (DEPLOY / name).is_file()


def interpolated(text: str, variables: dict[str, str]) -> str:
    """A value of the file with variables, as compose puts them in: ${NAME:-else}, ${NAME:?why}."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        assert variables.get(name) or kind == "-", rest
        return variables.get(name) or rest

    return re.sub(r"\$\{(\w+):([-?])([^}]*)\}", value, text)


def exported() -> dict[str, str]:
    """The variables that the documents have people export for all three services."""
    text = (ROOT / "docs/how-to/service.md").read_text()
    words = [shlex.split(line) for line in text.splitlines() if line.startswith("export ")]
    return dict(word.split("=", 1) for line in words for word in line[1:])


def environment(service: str) -> dict[str, str]:
    """What compose gives a service."""
    values = SERVICES[service]["environment"]
    return {name: interpolated(text, exported()) for name, text in values.items()}


@contextlib.contextmanager
def broker(tmp_path: Path) -> Iterator[int]:
    """Debian's Mosquitto with the settings of compose, its folders and its port those of a test."""
    needs(BROKER)
    service, port = SERVICES["mosquitto"], free_port()
    text = (DEPLOY / "mosquitto.conf").read_text()
    (inside,) = {published.split(":")[-1] for published in service["ports"]}
    mounted = [volume.split(":") for volume in service["volumes"]]
    (place,) = (inner for outer, inner, *_ in mounted if outer in COMPOSE["volumes"])
    assert any(outer == "./mosquitto.conf" for outer, *_ in mounted)
    assert text.count(f"listener {inside}\n") == text.count(f"_location {place}/\n") == 1
    (folder := tmp_path / "broker").mkdir()
    text = text.replace(f"listener {inside}", f"listener {port} {HERE}").replace(place, str(folder))
    (tmp_path / "mosquitto.conf").write_text(f"{text}user root\n")
    process = subprocess.Popen([MOSQUITTO, "-c", tmp_path / "mosquitto.conf"])

    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HERE, port), 1):
            return True
        assert process.poll() is None
        return False

    try:
        wait_until(answers, "the broker listens")
        yield port
    finally:
        process.terminate()
        process.wait()
    assert list(folder.iterdir())  # what it keeps is on the volume


@contextlib.contextmanager
def postgres() -> Iterator[PostgresServer]:
    """Debian's PostgreSQL with what its image makes of the environment: a user and a database."""
    given = environment("postgres")
    user, password, name = (given[f"POSTGRES_{part}"] for part in ("USER", "PASSWORD", "DB"))
    with tempfile.TemporaryDirectory(prefix="habitus-postgres-") as folder:
        server = PostgresServer(Path(folder), user=user, password=password)
        kind, *check = SERVICES["postgres"]["healthcheck"]["test"]
        assert kind == "CMD"
        known = os.environ | {"PGHOST": HERE, "PGPORT": str(server.port), "PGPASSWORD": password}
        try:
            assert subprocess.run(check, env=known, check=False).returncode == 0
            made = ["psql", "-q", "-U", user, "-d", "postgres", "-c", f'CREATE DATABASE "{name}"']
            subprocess.run(made, env=known, check=True)
            yield server
        finally:
            server.stop()
        assert subprocess.run(check, env=known, check=False).returncode != 0


def test_the_services_of_compose_work_together(tmp_path: Path) -> None:
    """The servers are the system's; of the commands, addresses and folders alone are a test's."""
    given, (entry,), (check,) = environment("habitus"), steps("ENTRYPOINT"), steps("HEALTHCHECK")
    assert SERVICES["habitus"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    with postgres() as server, broker(tmp_path) as port:
        address = given["HABITUS_DATABASE"]
        assert "@postgres/" in address
        address = address.replace("@postgres/", f"@{HERE}:{server.port}/")
        data, words = str(tmp_path / "data"), entry.words[1:]
        words[words.index("--data") + 1] = data
        console = subprocess.Popen(
            [sys.executable, "-m", "habitus", *words, "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | given | {"HABITUS_DATABASE": address},
        )
        try:
            assert console.stdout is not None
            (number,) = re.findall(r"http://\S+:(\d+)", console.stdout.readline())
            health = [word.replace(f":{PORT}/", f":{number}/") for word in check.words[1:]]
            wait_until(
                lambda: subprocess.run([sys.executable, *health], check=False).returncode == 0,
                "the console is healthy",
            )
            with httpx.Client(base_url=f"http://{HERE}:{number}") as client:
                (csrf,) = re.findall('name="csrf_token" value="([^"]+)"', client.get("/login").text)
                person = {"name": "admin", "password": given["HABITUS_PASSWORD"]}
                assert client.post("/login", data=person | {"csrf_token": csrf}).status_code == 303
                client.headers["X-CSRF-Token"] = client.get("/api/session").json()["csrf"]
                settings = {"host": HERE, "port": port}
                channel = {"name": "broker", "kind": "mqtt", "settings": settings}
                made = client.post("/api/channels", json=channel)
                assert made.status_code == 201, made.text
                told = client.post(f"/api/channels/{made.json()['id']}/test")
                assert told.status_code == 204, told.text
            engine = create_engine(address)
            with engine.connect() as connection:
                names = connection.execute(text("SELECT name FROM channels")).scalars().all()
            engine.dispose()
            assert names == ["broker"]
            assert not (tmp_path / "data" / "habitus.sqlite").exists()
        finally:
            console.terminate()
            console.wait()
            console.stdout.close()


def test_compose_asks_for_the_password() -> None:
    with pytest.raises(AssertionError, match="at least 8 characters"):
        interpolated(SERVICES["habitus"]["environment"]["HABITUS_PASSWORD"], {})
    assert interpolated(SERVICES["habitus"]["environment"]["HABITUS_DATABASE"], {}) == ""
