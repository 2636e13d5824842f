"""What events are found by: how unusual, at which hour, in which words; notes and stars."""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

FILTERED = ["review", "silenced_by", "cue", "at_half", "unusual", "hour", "end", "starred"]
WIDER = {
    "ix_events_start": ["start", "id", *FILTERED, "camera_id"],
    "ix_events_alarm_start": ["alarm", "start", "id", *FILTERED, "camera_id"],
    "ix_events_camera_start": ["camera_id", "start", "id", *FILTERED, "alarm"],
    "ix_events_camera_alarm_start": ["camera_id", "alarm", "start", "id", *FILTERED],
}
NEW = {
    "ix_events_words": ["alarm", "start", "id", *FILTERED, "camera_id", "words"],
    "ix_events_unusual": ["alarm", "unusual", "start", "id", "camera_id"],
}
TOGETHER = 1000


def upgrade() -> None:
    """Add the columns, fill them for the events that are there, and widen the indexes."""
    for column in (
        sa.Column("silenced_by", sa.String()),
        sa.Column("clip_start", sa.Double()),
        sa.Column("unusual", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("hour", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("offset", sa.Double()),
        sa.Column("note", sa.String(), nullable=False, server_default=""),
        sa.Column("starred", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("words", sa.String(), nullable=False, server_default=""),
    ):
        op.add_column("events", column)
    _fill(op.get_bind())
    for name in WIDER:
        op.drop_index(name, "events")
    for name, columns in (WIDER | NEW).items():
        op.create_index(name, "events", columns)


def _fill(connection: sa.Connection) -> None:
    """Set the new columns of the events that are there."""
    from habitus.rarity import unusualness

    events = sa.table(
        "events",
        *map(sa.column, ("id", "start", "probability", "explanation", "unusual", "hour", "words")),
    )
    rows = connection.execute(
        sa.select(events.c.id, events.c.start, events.c.probability, events.c.explanation)
    ).all()
    change = (
        events.update()
        .where(events.c.id == sa.bindparam("which"))
        .values(unusual=sa.bindparam("scale"), hour=sa.bindparam("at"), words=sa.bindparam("text"))
    )
    for first in range(0, len(rows), TOGETHER):
        connection.execute(
            change,
            [
                {
                    "which": row.id,
                    "scale": unusualness(row.probability),
                    "at": datetime.fromtimestamp(row.start).hour,
                    "text": row.explanation.lower(),
                }
                for row in rows[first : first + TOGETHER]
            ],
        )
