"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TYPES = {
    "text": sa.String,
    "int": sa.Integer,
    "real": sa.Double,
    "bool": sa.Boolean,
    "bytes": sa.LargeBinary,
    "json": sa.JSON,
}
TABLES = {
    "audit": "id int, time real, actor text, action text, subject text, details json",
    "cameras": "id text, name text, kind text, secret_address bytes, shown_address text, "
    "alerts_per_day real, learn_days int, mask json, region json, options json, enabled bool, "
    "created real, width int?, height int?, state text, since real, reason text, model text?",
    "channels": "id int, name text, kind text, secret_settings bytes, shown_settings json, "
    "cameras json, enabled bool, quiet_from text?, quiet_until text?, most_per_hour int?",
    "settings": "key text, value json",
    "tokens": "id int, name text, digest text, role text, created real, last_used real?",
    "users": "id int, name text, password text, role text, created real",
    "events": "id text, camera_id text, start real, end real?, peak real, alarm bool, "
    "at_half bool, normality real, threshold real, probability real?, rarity text, cue text, "
    "explanation text, behaviour int, thumbnail text?, heat text?, clip text?, n_bytes int, "
    "clip_bytes int, review text?, reviewed real?, reviewer text?, signature bytes?, details json",
    "learnings": "id int, camera_id text, occasion text, started real, ended real?, since real?, "
    "until real?, n_documents int, model text?, summary text, notes json",
    "logins": "digest text, user_id int, csrf text, created real, expires real",
    "minutes": "camera_id text, minute int, normality real?, behaviour int?, n_documents int, "
    "n_judged int, seconds bytes",
    "outbox": "id int, channel_id int, subject text, kind text, body json, created real, "
    "sent real?, outcome text, attempts int, error text",
    "troubles": "id int, camera_id text, kind text, start real, end real?, reason text, told real?",
}
"""By table its columns with their types; ? where one may be null. The first is the key."""
KEYS = {"minutes": ["camera_id", "minute"]}
UNIQUE = {"tokens": ["digest"], "users": ["name"], "outbox": ["channel_id", "subject"]}
PARENTS = {"camera_id": "cameras", "user_id": "users", "channel_id": "channels"}
INDEXES = {
    "ix_audit_time": "audit time",
    "ix_events_alarm_start": "events alarm start id review cue at_half camera_id",
    "ix_events_camera_alarm_start": "events camera_id alarm start id review cue at_half",
    "ix_events_camera_bytes": "events camera_id n_bytes clip_bytes",
    "ix_events_camera_start": "events camera_id start id review cue at_half alarm",
    "ix_events_start": "events start id review cue at_half camera_id",
    "ix_learnings_camera_id": "learnings camera_id",
    "ix_logins_user_id": "logins user_id",
    "ix_minutes_drawn": "minutes camera_id minute behaviour normality n_judged",
    "ix_outbox_channel_outcome": "outbox channel_id outcome id",
    "ix_outbox_channel_sent": "outbox channel_id sent",
    "ix_outbox_created": "outbox created",
    "ix_troubles_camera_start": "troubles camera_id start",
}
"""By name, the table and its columns."""


def upgrade() -> None:
    """Make the tables."""
    for table, text in TABLES.items():
        columns = dict(column.split() for column in text.split(", "))
        key = KEYS.get(table, [next(iter(columns))])
        parts: list[sa.Column[object] | sa.Constraint] = [
            sa.Column(name, TYPES[kind.rstrip("?")](), nullable=kind.endswith("?"))
            for name, kind in columns.items()
        ]
        parts.append(sa.PrimaryKeyConstraint(*key, name=op.f(f"pk_{table}")))
        if unique := UNIQUE.get(table):
            parts.append(sa.UniqueConstraint(*unique, name=op.f(f"uq_{table}_{unique[0]}")))
        for name in columns.keys() & PARENTS.keys():
            parent, known = f"{PARENTS[name]}.id", op.f(f"fk_{table}_{name}")
            parts.append(sa.ForeignKeyConstraint([name], [parent], known, ondelete="CASCADE"))
        op.create_table(table, *parts)
    for name, text in INDEXES.items():
        table, *names = text.split()
        op.create_index(op.f(name), table, names)
