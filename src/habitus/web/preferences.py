"""Settings that are changed on the page: those of the console, and of each person's wall."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from habitus.web.answers import Preferences, WallLayout, WallTile
from habitus.web.database import CameraRow, Setting


def read_preferences(session: Session) -> Preferences:
    """Return the settings as they are now; defaults where nobody changed one."""
    stored = session.scalars(select(Setting).where(Setting.key.in_(Preferences.model_fields)))
    return Preferences(**{setting.key: setting.value["value"] for setting in stored})


def write_preferences(session: Session, changes: Preferences) -> Preferences:
    """Change those settings that are named, and return them all."""
    for key, value in changes.model_dump(exclude_unset=True).items():
        session.merge(Setting(key=key, value={"value": value}))
    return read_preferences(session)


NOT_LIVE = frozenset(["connecting", "lost", "refused", "off", "ended"])
"""States in which no pictures come."""


class WallGroup(NamedTuple):
    """Cameras that stand together on the wall."""

    name: str
    cameras: list[CameraRow]


def read_wall(session: Session, person: str) -> WallLayout:
    """Return how somebody has the wall."""
    stored = session.get(Setting, f"wall of {person}")
    return WallLayout(**stored.value) if stored else WallLayout()


def write_wall(session: Session, person: str, layout: WallLayout | None) -> None:
    """Keep how somebody has the wall; None: forget it."""
    session.execute(delete(Setting).where(Setting.key == f"wall of {person}"))
    if layout is not None:
        session.add(Setting(key=f"wall of {person}", value=layout.model_dump()))


def arranged(cameras: Sequence[CameraRow], layout: WallLayout) -> list[WallGroup]:
    """Return cameras as somebody has them; those without a group come first."""
    tiles = {tile.camera: tile for tile in layout.tiles}
    places = {camera: place for place, camera in enumerate(tiles)}

    def place(camera: CameraRow) -> tuple[bool, int]:
        is_late = layout.live_first and camera.state in NOT_LIVE
        return is_late, places.get(camera.id, len(places))

    names = dict.fromkeys(["", *(tile.group for tile in layout.tiles)])
    groups = {name: WallGroup(name, []) for name in names}
    for camera in sorted(cameras, key=place):
        tile = tiles.get(camera.id, WallTile(camera=camera.id))
        groups[tile.group].cameras.append(camera)
    return [group for group in groups.values() if group.cameras]
