"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_time"), "audit", ["time"], unique=False)
    op.create_table(
        "cameras",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("secret_address", sa.LargeBinary(), nullable=False),
        sa.Column("shown_address", sa.String(), nullable=False),
        sa.Column("alerts_per_day", sa.Double(), nullable=False),
        sa.Column("learn_days", sa.Integer(), nullable=False),
        sa.Column("mask", sa.JSON(), nullable=False),
        sa.Column("region", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=True),
        sa.Column("height", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cameras")),
    )
    op.create_table(
        "channels",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("secret_settings", sa.LargeBinary(), nullable=False),
        sa.Column("shown_settings", sa.JSON(), nullable=False),
        sa.Column("cameras", sa.JSON(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("quiet_from", sa.String(), nullable=True),
        sa.Column("quiet_until", sa.String(), nullable=True),
        sa.Column("most_per_hour", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channels")),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("last_used", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("password", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("camera_id", sa.String(), nullable=False),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("end", sa.Double(), nullable=True),
        sa.Column("peak", sa.Double(), nullable=False),
        sa.Column("alarm", sa.Boolean(), nullable=False),
        sa.Column("at_half", sa.Boolean(), nullable=False),
        sa.Column("normality", sa.Double(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("rarity", sa.String(), nullable=False),
        sa.Column("cue", sa.String(), nullable=False),
        sa.Column("explanation", sa.String(), nullable=False),
        sa.Column("behaviour", sa.Integer(), nullable=False),
        sa.Column("thumbnail", sa.String(), nullable=True),
        sa.Column("heat", sa.String(), nullable=True),
        sa.Column("clip", sa.String(), nullable=True),
        sa.Column("n_bytes", sa.Integer(), nullable=False),
        sa.Column("clip_bytes", sa.Integer(), nullable=False),
        sa.Column("review", sa.String(), nullable=True),
        sa.Column("reviewed", sa.Double(), nullable=True),
        sa.Column("reviewer", sa.String(), nullable=True),
        sa.Column("signature", sa.LargeBinary(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["camera_id"], ["cameras.id"], name=op.f("fk_events_camera_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index(
        "ix_events_alarm_start",
        "events",
        ["alarm", "start", "id", "review", "cue", "at_half", "camera_id"],
        unique=False,
    )
    op.create_index(
        "ix_events_camera_alarm_start",
        "events",
        ["camera_id", "alarm", "start", "id", "review", "cue", "at_half"],
        unique=False,
    )
    op.create_index(
        "ix_events_camera_bytes", "events", ["camera_id", "n_bytes", "clip_bytes"], unique=False
    )
    op.create_index(
        "ix_events_camera_start",
        "events",
        ["camera_id", "start", "id", "review", "cue", "at_half", "alarm"],
        unique=False,
    )
    op.create_index(
        "ix_events_start",
        "events",
        ["start", "id", "review", "cue", "at_half", "camera_id"],
        unique=False,
    )
    op.create_table(
        "learnings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("camera_id", sa.String(), nullable=False),
        sa.Column("occasion", sa.String(), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("since", sa.Double(), nullable=True),
        sa.Column("until", sa.Double(), nullable=True),
        sa.Column("n_documents", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("summary", sa.String(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["camera_id"], ["cameras.id"], name=op.f("fk_learnings_camera_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_learnings")),
    )
    op.create_index(op.f("ix_learnings_camera_id"), "learnings", ["camera_id"], unique=False)
    op.create_table(
        "logins",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("csrf", sa.String(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_logins_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_logins")),
    )
    op.create_index(op.f("ix_logins_user_id"), "logins", ["user_id"], unique=False)
    op.create_table(
        "minutes",
        sa.Column("camera_id", sa.String(), nullable=False),
        sa.Column("minute", sa.Integer(), nullable=False),
        sa.Column("normality", sa.Double(), nullable=True),
        sa.Column("behaviour", sa.Integer(), nullable=True),
        sa.Column("n_documents", sa.Integer(), nullable=False),
        sa.Column("n_judged", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["camera_id"], ["cameras.id"], name=op.f("fk_minutes_camera_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("camera_id", "minute", name=op.f("pk_minutes")),
    )
    op.create_index(
        "ix_minutes_drawn",
        "minutes",
        ["camera_id", "minute", "behaviour", "normality", "n_judged"],
        unique=False,
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("sent", sa.Double(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["channel_id"], ["channels.id"], name=op.f("fk_outbox_channel_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("channel_id", "subject", name=op.f("uq_outbox_channel_id")),
    )
    op.create_index(
        "ix_outbox_channel_outcome", "outbox", ["channel_id", "outcome", "id"], unique=False
    )
    op.create_index("ix_outbox_channel_sent", "outbox", ["channel_id", "sent"], unique=False)
    op.create_index(op.f("ix_outbox_created"), "outbox", ["created"], unique=False)
    op.create_table(
        "troubles",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("camera_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("start", sa.Double(), nullable=False),
        sa.Column("end", sa.Double(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("told", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["camera_id"], ["cameras.id"], name=op.f("fk_troubles_camera_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_troubles")),
    )
    op.create_index("ix_troubles_camera_start", "troubles", ["camera_id", "start"], unique=False)
