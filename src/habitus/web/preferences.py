"""Settings that admins change on the page, kept in the database."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

from pydantic import ConfigDict
from sqlalchemy import select
from sqlalchemy.orm import Session

from habitus.errors import InvalidInputError
from habitus.web.database import Setting

GIGABYTE = 1_000_000_000


@dataclass(frozen=True)
class Preferences:
    """Settings of the console."""

    quota_bytes: int = 20 * GIGABYTE
    """What everything on disk may take; the oldest goes first."""
    retention_days: float = 30.0
    """How long events are kept."""
    upload_bytes: int = 2 * GIGABYTE
    """Size of a file that is given on the page, at most."""
    quiet_from: str | None = None
    """What is proposed for new channels, such as 22:00; as `quiet_until`."""
    quiet_until: str | None = None
    # An answer of the API always has all of them.
    __pydantic_config__: ClassVar = ConfigDict(json_schema_serialization_defaults_required=True)

    def __post_init__(self) -> None:
        limits = {
            "quota_bytes": (GIGABYTE // 10, 10**6 * GIGABYTE),
            "retention_days": (1, 3650),
            "upload_bytes": (0, 10**3 * GIGABYTE),
        }
        for name, (least, most) in limits.items():
            if not least <= getattr(self, name) <= most:
                raise InvalidInputError(f"{name} must be from {least} to {most}", parameter=name)


def read_preferences(session: Session) -> Preferences:
    """Return the settings as they are now; defaults where nobody changed one."""
    names = {field.name for field in fields(Preferences)}
    stored = session.scalars(select(Setting).where(Setting.key.in_(names)))
    return Preferences(**{setting.key: setting.value["value"] for setting in stored})


def write_preferences(session: Session, changes: dict[str, Any]) -> Preferences:
    """Change settings, and return them all."""
    changed = replace(read_preferences(session), **changes)
    for key, value in asdict(changed).items():
        if key in changes:
            session.merge(Setting(key=key, value={"value": value}))
    return changed
