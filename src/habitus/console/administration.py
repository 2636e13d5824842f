"""What admins do: cameras, users, tokens, channels and settings; each is written down."""

import time
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from habitus.console.database import AuditEntry, Login, User
from habitus.console.security import OWNER, PASSWORDS, Role
from habitus.console.server import Console


def note(session: Session, actor: str, action: str, subject: str, **details: Any) -> None:
    """Write down who did what."""
    session.add(
        AuditEntry(time=time.time(), actor=actor, action=action, subject=subject, details=details)
    )


def give_password(console: Console, name: str, password: str, actor: str = OWNER) -> None:
    """Set the password of an admin, who is made where there is none of that name."""
    hashed = PASSWORDS.hashed(password)
    with console.database.transaction() as session:
        user = session.scalar(select(User).where(User.name == name))
        if user is None:
            user = User(name=name, password=hashed, role=Role.ADMIN, created=time.time())
            session.add(user)
        user.password, user.role = hashed, Role.ADMIN
        session.flush()
        session.query(Login).where(Login.user_id == user.id).delete()
        note(session, actor, "password set", name)
