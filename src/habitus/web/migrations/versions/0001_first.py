"""The tables of the first version: those of `database`, until a version is released.

Before a second step, `scripts/console_migration.py` writes them down here.
"""

from alembic import op

from habitus.web.database import Base

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    Base.metadata.create_all(op.get_bind())
