"""Zones in place of masks and regions; what people call behaviours."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

FILTERED = [
    *("review", "silenced_by", "cue", "at_half", "unusual", "hour", "end", "starred"),
    *("zone", "quiet"),
]
WIDER = {
    "ix_events_start": ["start", "id", *FILTERED, "camera_id"],
    "ix_events_alarm_start": ["alarm", "start", "id", *FILTERED, "camera_id"],
    "ix_events_camera_start": ["camera_id", "start", "id", *FILTERED, "alarm"],
    "ix_events_camera_alarm_start": ["camera_id", "alarm", "start", "id", *FILTERED],
    "ix_events_words": ["alarm", "start", "id", *FILTERED, "camera_id", "words"],
}
KINDS = {"mask": ("ignore", "Not watched"), "region": ("watch", "Watched")}


def upgrade() -> None:
    """Add the columns, make a zone of each polygon, and widen the indexes."""
    op.add_column("events", sa.Column("zone", sa.String(), nullable=False, server_default=""))
    false = sa.false()
    op.add_column("events", sa.Column("quiet", sa.Boolean(), nullable=False, server_default=false))
    for name in WIDER:
        op.drop_index(name, "events")
    for name, columns in WIDER.items():
        op.create_index(name, "events", columns)
    names = sa.Column("names", sa.JSON(), nullable=False, server_default="{}")
    op.add_column("learnings", names)
    op.add_column("cameras", sa.Column("zones", sa.JSON(), nullable=False, server_default="[]"))
    _draw(op.get_bind())
    for name in KINDS:
        op.drop_column("cameras", name)


def _draw(connection: sa.Connection) -> None:
    """Make a zone of each polygon of a camera."""
    columns = [sa.column("id"), *(sa.column(name, sa.JSON()) for name in ("zones", *KINDS))]
    cameras = sa.table("cameras", *columns)
    for row in connection.execute(sa.select(cameras)).mappings().all():
        zones = [
            {"name": f"{called} {number}", "kind": kind, "polygon": polygon}
            for name, (kind, called) in KINDS.items()
            for number, polygon in enumerate(row[name], start=1)
        ]
        change = cameras.update().where(cameras.c.id == row["id"])
        connection.execute(change.values(zones=zones))
