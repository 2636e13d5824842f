"""Settings that are changed on the page: those of the console, and of each person's wall."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from habitus.errors import InvalidInputError
from habitus.web.answers import CameraSummary, WallLayout, WallTile
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


NOT_LIVE = frozenset(["connecting", "lost", "refused", "off", "ended"])
"""States in which no pictures come."""


class WallGroup(NamedTuple):
    """Cameras that stand together on the wall."""

    name: str
    cameras: list[CameraSummary]


def read_wall(session: Session, person: str) -> WallLayout:
    """Return how somebody has the wall."""
    stored = session.get(Setting, f"wall of {person}")
    return WallLayout(**stored.value) if stored else WallLayout()


def write_wall(session: Session, person: str, layout: WallLayout | None) -> None:
    """Keep how somebody has the wall; None: forget it."""
    session.execute(delete(Setting).where(Setting.key == f"wall of {person}"))
    if layout is not None:
        session.add(Setting(key=f"wall of {person}", value=layout.model_dump()))


def arranged(cameras: Sequence[CameraSummary], layout: WallLayout) -> list[WallGroup]:
    """Return cameras as somebody has them; those without a group come first."""
    tiles = {tile.camera: tile for tile in layout.tiles}
    places = {camera: place for place, camera in enumerate(tiles)}

    def place(camera: CameraSummary) -> tuple[bool, int]:
        is_late = layout.live_first and camera.state in NOT_LIVE
        return is_late, places.get(camera.id, len(places))

    names = dict.fromkeys(["", *(tile.group for tile in layout.tiles)])
    groups = {name: WallGroup(name, []) for name in names}
    for camera in sorted(cameras, key=place):
        tile = tiles.get(camera.id, WallTile(camera=camera.id))
        groups[tile.group].cameras.append(camera)
    return [group for group in groups.values() if group.cameras]
