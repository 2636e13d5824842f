"""Who asks a console: browsers with cookies, programs with tokens, without a network between."""

from typing import Any

from argon2 import PasswordHasher
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from habitus.web.administration import add_token, add_user
from habitus.web.answers import NewTokenRequest, NewUser
from habitus.web.app import create_app
from habitus.web.database import Role
from habitus.web.security import PASSWORDS
from habitus.web.server import Console

HERE = "http://127.0.0.1:8420"
PASSWORD = "correct horse"  # noqa: S105
# As safe as it is for no test to last long by it; what it is in use, test_security says.
PASSWORDS._hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
ROLES = ("viewer", "reviewer", "admin")


class Visitor(TestClient):
    """A browser, or a program, that asks one application."""

    def __init__(self, app: FastAPI, *, token: str | None = None, address: str = HERE) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(
            app,
            base_url=address,
            headers=headers,
            client=("127.0.0.1", 50_000),
            follow_redirects=False,
        )

    def csrf(self) -> str:
        """What pages of this browser send along."""
        found: str = self.get("/api/session").json()["csrf"]
        return found

    def change(self, method: str, path: str, **options: Any) -> Response:
        """Send a change as a page does."""
        headers = {"X-CSRF-Token": self.csrf(), **options.pop("headers", {})}
        return self.request(method, path, headers=headers, **options)

    def log_in(self, name: str, password: str = PASSWORD) -> Response:
        """Log in by the form of the page."""
        page = self.get("/login").text
        csrf = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        form = {"name": name, "password": password, "csrf_token": csrf}
        return self.post("/login", data=form)


def visitors(console: Console) -> tuple[FastAPI, dict[str, Visitor]]:
    """An application with an admin, and a program of each role."""
    app = create_app(console)
    add_user(console, "test", NewUser(name="admin", password=PASSWORD, role=Role.ADMIN))
    wanted = [NewTokenRequest(name=role, role=Role(role)) for role in ROLES]
    tokens = {token.name: add_token(console, "test", token).secret for token in wanted}
    return app, {role: Visitor(app, token=secret) for role, secret in tokens.items()}
