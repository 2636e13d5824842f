"""Write the first migration of the console's database down, statement by statement."""

import sys
from pathlib import Path

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine

from habitus.web.database import Base
from habitus.web.migrations import FOLDER

HEAD = '''"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    {body}
'''


def main() -> None:
    """Write the file that is named, or the one of the package."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "versions" / "0001_first.py"
    with create_engine("sqlite://").connect() as connection:
        context = MigrationContext.configure(connection)
        made = produce_migrations(context, Base.metadata).upgrade_ops
        code = render_python_code(made) if made else "pass"
    body = "\n".join(line for line in code.splitlines() if not line.lstrip().startswith("#"))
    target.write_text(HEAD.format(body=body.strip()), encoding="utf-8")


if __name__ == "__main__":
    main()
