"""How the console is started: where its data are, and where it listens."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

PORT = 8420
REMOVED = "removed"
"""File that marks the folder of a camera that was removed."""


@dataclass(frozen=True)
class ServerSettings:
    """How the console is started, as `serve` takes it."""

    data: Path
    host: str = "127.0.0.1"
    port: int = PORT
    database: str | None = None
    """Address of a database; by default, SQLite in the data folder."""
    demo: bool = False
    behind_proxy: bool = False
    public_url: str | None = None
    """For links in messages, and another name that it answers to."""

    @property
    def is_loopback(self) -> bool:
        """Whether it listens to this machine alone."""
        return is_loopback(self.host)

    @property
    def is_exposed(self) -> bool:
        """Whether others can reach it, so that a password is needed."""
        return not self.is_loopback or self.behind_proxy or self.public_url is not None

    def camera_folder(self, camera: str) -> Path:
        """Return the folder of a camera: its model, documents, events and journal."""
        return self.data / "cameras" / camera

    @property
    def uploads(self) -> Path:
        """Folder of the files that were given on the page."""
        return self.data / "uploads"

    def located(self, address: str) -> str:
        """Return where a camera's video is; an uploaded file moves with the data folder."""
        path = self.uploads / Path(address).name
        uploaded = "://" not in address and Path(address).parent.name == path.parent.name
        return str(path.resolve()) if uploaded and path.is_file() else address

    @property
    def secret_key(self) -> Path:
        """File of the key that addresses and passwords are encrypted with."""
        return self.data / "secret.key"


def is_loopback(host: str) -> bool:
    """Return whether a name or an address, with or without brackets, is this machine for itself.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("localhost.example.org")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        name = host.lower().rstrip(".")
        return name == "localhost" or name.endswith(".localhost")
