"""Searches: beside the narrow index of rarity, SQLite looked up each event by itself."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Drop that index, and add one of the names that searches offer."""
    op.drop_index("ix_events_unusual", "events")
    op.create_index("ix_events_named", "events", ["alarm", "cue", "zone"])
