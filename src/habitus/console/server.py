"""The console as a whole: its parts, and how they start and end."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from habitus.console.bulletin import Bulletin
from habitus.console.database import Database
from habitus.console.migrations import upgrade
from habitus.console.settings import ServerSettings
from habitus.console.vault import Vault

if TYPE_CHECKING:
    from habitus.console.supervisor import Supervisor


@dataclass
class Console:
    """The parts that pages, the API and the threads of the server share."""

    settings: ServerSettings
    database: Database
    vault: Vault
    bulletin: Bulletin = field(default_factory=Bulletin)
    supervisor: "Supervisor | None" = None


def open_console(settings: ServerSettings) -> Console:
    """Return the console of a data folder, its database up to date; nothing runs yet."""
    settings.data.mkdir(parents=True, exist_ok=True)
    database = (
        Database(settings.database) if settings.database else Database.in_folder(settings.data)
    )
    upgrade(database)
    return Console(settings, database, Vault.of_file(settings.secret_key))
