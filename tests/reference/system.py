"""What the tests need of the system beyond Python, and what becomes of them without it."""

import functools
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "system_packages.sh"
BROWSER = ("chromium-headless-shell", "libatomic1")
BROKER = ("mosquitto",)
UNIT_CHECK = ("systemd",)
RTSP_SERVER = (
    "python3-gi",
    "gir1.2-gst-rtsp-server-1.0",
    "gstreamer1.0-plugins-base",
    "gstreamer1.0-plugins-good",
)


def in_ci() -> bool:
    """Whether this is a run that may leave nothing out."""
    return os.environ.get("CI") == "true"


@functools.cache
def missing() -> frozenset[str]:
    """Debian packages that the tests need and the system lacks."""
    listed = subprocess.run(
        ["/bin/sh", SCRIPT, "--missing"], capture_output=True, text=True, check=True
    )
    return frozenset(listed.stdout.split())


def needs(packages: tuple[str, ...]) -> None:
    """Skip the test that runs, with the reason, where a package is missing; fail it in CI."""
    lacking = " ".join(package for package in packages if package in missing())
    if not lacking:
        return
    reason = f"needs system packages; as root: apt-get install --no-install-recommends {lacking}"
    if in_ci():
        pytest.fail(f"CI=true, and the test {reason}", pytrace=False)
    pytest.skip(reason)
