"""What make does before it does anything: environments, and packages of the system."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def machine(tmp_path):
    """A machine on which nothing is on the path but id and apt-get, which only says its part."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def script(name, text):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)

    def run(command, *arguments, user, **variables):
        script("id", f"echo {0 if user == 'root' else 1000}")
        script("apt-get", f"echo $* >> {tmp_path}/asked")
        (folder / "basename").symlink_to("/usr/bin/basename")
        done = subprocess.run(
            ["/bin/sh", SCRIPTS / command, *map(str, arguments)],
            cwd=tmp_path,
            env={"PATH": str(folder), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        asked = tmp_path / "asked"
        return done, asked.read_text() if asked.exists() else ""

    return run


def hint_of(done):
    """The one line on stderr."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_an_ordinary_user_is_told_the_one_command(machine):
    done, asked = machine("system_packages.sh", user="person")
    assert done.returncode == 0
    assert "skipped" in hint_of(done)
    assert "as root: apt-get install --no-install-recommends chromium-headless-shell" in hint_of(
        done
    )
    assert asked == ""


def test_in_ci_a_missing_package_is_an_error(machine):
    done, asked = machine("system_packages.sh", user="person", CI="true")
    assert done.returncode == 1
    assert "as root: apt-get install --no-install-recommends chromium-headless-shell" in hint_of(
        done
    )
    assert asked == ""


def test_root_gets_the_packages_announced_in_a_line(machine):
    done, asked = machine("system_packages.sh", user="root")
    assert done.returncode == 0
    announced, skipped = done.stderr.splitlines()  # the second, as nothing came of it
    assert announced.startswith("installing system packages for the tests: chromium-headless-shell")
    assert "skipped" in skipped
    assert "install -y --no-install-recommends chromium-headless-shell" in asked


def test_root_in_ci_needs_them_to_come(machine):
    done, _ = machine("system_packages.sh", user="root", CI="true")
    assert done.returncode == 1


def test_missing_packages_are_listed(machine):
    done, asked = machine("system_packages.sh", "--missing", user="root")
    assert done.stdout.split()[0] == "chromium-headless-shell"
    assert (done.returncode, done.stderr, asked) == (0, "", "")


@pytest.fixture
def incomplete(tmp_path):
    """Variables under which Python lacks ensurepip, as Debian's does without python3-venv."""
    (tmp_path / "ensurepip.py").write_text("raise ImportError")
    return {"PYTHONPATH": str(tmp_path)}


def test_without_ensurepip_an_ordinary_user_gets_a_hint(machine, incomplete, tmp_path):
    done, asked = machine("environment.sh", sys.executable, "venv", user="person", **incomplete)
    assert done.returncode == 1
    assert f"as root: apt-get install {Path(sys.executable).name}-venv" in hint_of(done)
    assert asked == ""
    assert not (tmp_path / "venv").exists()


def test_without_ensurepip_root_gets_it(machine, incomplete):
    done, asked = machine("environment.sh", sys.executable, "venv", user="root", **incomplete)
    package = f"{Path(sys.executable).name}-venv"
    assert done.stderr.splitlines()[0] == f"installing {package}"
    assert f"install -y --no-install-recommends {package}" in asked


def test_without_python_at_all_the_hint_is_the_same(machine):
    done, _ = machine("environment.sh", "python3", "venv", user="person")
    assert done.returncode == 1
    assert hint_of(done).endswith("as root: apt-get install python3-venv")


def test_an_old_python_is_refused(machine, tmp_path):
    old = tmp_path / "old"
    run = "import sys; sys.version_info = (3, 9, 1); exec(sys.argv[1])"
    old.write_text(
        f'#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.1 || exec {sys.executable} -c "{run}" "$2"\n'
    )
    old.chmod(0o755)
    done, _ = machine("environment.sh", old, "venv", user="root")
    assert done.returncode == 1
    assert "habitus needs Python 3.11 or newer" in hint_of(done)
    assert "is Python 3.9.1" in hint_of(done)


def test_an_environment_is_made(machine, tmp_path):
    done, _ = machine("environment.sh", sys.executable, "venv", user="person")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "venv/bin/pip").exists()
