"""Who may do what, and what every answer has."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from sqlalchemy import select
from sqlalchemy.event import listen, remove

import habitus
from habitus.web import administration, news_stream, security
from habitus.web.administration import add_user, change_user, give_password
from habitus.web.answers import HttpError, NewUser, UserChanges
from habitus.web.app import create_app
from habitus.web.database import AuditEntry, Login, Role, Setting, Token, User
from habitus.web.guard import LARGEST_BODY, is_own_name
from habitus.web.security import Attempts, Passwords
from habitus.web.server import Console, open_console
from habitus.web.server_settings import ServerSettings
from reference.processes import wait_until
from reference.visitors import HERE, PASSWORD, ROLES, Visitor, visitors

ANOTHER = "another password"
RULES: dict[Any, str] = {
    security.admin: "admin",
    security.reviewer: "reviewer",
    security.viewer: "viewer",
    security.anybody: "anybody",
    security.from_here: "from here",
    security.everyone: "everyone",
}
FOR_ADMINS = (
    "/api/users", "/api/tokens", "/api/channels", "/api/audit", "/api/settings", "/api/uploads",
    "/api/finding", "/api/backup", "/api/restore", "/api/log", "/settings", "/cameras/new",
)  # fmt: skip
FOR_REVIEWERS = ("review", "undo", "/note", "/events", "/snooze")


def routes(app: FastAPI) -> Iterator[APIRoute]:
    for included in app.routes:
        router = getattr(included, "original_router", None)
        if router is None:
            assert included.path == "/static", "only files of pages have no rule"  # type: ignore[attr-defined]
            continue
        for route in router.routes:
            assert isinstance(route, APIRoute)
            yield route


def rule_of(route: APIRoute) -> str:
    """The one rule among everything that a route depends on."""
    found, waiting = set(), list(route.dependant.dependencies)
    while waiting:
        dependant = waiting.pop()
        if dependant.call in RULES:
            found.add(RULES[dependant.call])
        else:
            waiting.extend(dependant.dependencies)
    assert len(found) == 1, f"{route.path} has the rules {found or 'none'}"
    return found.pop()


def test_every_route_has_a_rule_and_changes_are_not_for_viewers(console: Console) -> None:
    for route in routes(create_app(console)):
        rule, path = rule_of(route), route.path
        if path.startswith(FOR_ADMINS):
            assert rule == "admin", path
        elif route.methods & {"POST", "PATCH", "DELETE", "PUT"} and rule not in ("admin",):
            allowed = {"/login": "anybody", "/logout": "viewer", "/api/password": "viewer"}
            own = ("/account", "/api/push", "/api/wall")
            allowed |= dict.fromkeys(own, "viewer")
            reviewing = any(word in path for word in FOR_REVIEWERS)
            assert rule == allowed.get(path, "reviewer" if reviewing else "none"), path
        if rule in ("anybody", "from here", "everyone"):
            open_to_all = ("/login", "/healthz", "/metrics", "/manifest.webmanifest", "/worker.js")
            assert path in open_to_all, f"{path} is open"


def test_roles_and_routes(console: Console) -> None:
    """Each route, asked by each role and by nobody: exactly who may is let in."""
    app, known = visitors(console)
    stranger = Visitor(app)
    asked = 0
    for route in routes(app):
        rule = rule_of(route)
        if rule not in ROLES:
            continue
        path = route.path
        for name in ("camera", "event", "user", "token", "channel", "number", "kind"):
            path = path.replace(f"{{{name}}}", "7")
        for method in route.methods - {"HEAD"}:
            assert stranger.request(method, path).status_code in (401, 403, 303), path
            for role, visitor in known.items():
                may = Role(role).includes(Role(rule))
                if route.path == "/api/stream" and may:
                    continue  # never ends; see test_serve
                status = visitor.request(method, path).status_code
                asked += 1
                assert (status not in (401, 403)) == may, f"{method} {path}: {role}: {status}"
                assert status != 500
    assert asked > 100


def test_without_a_user_the_owner_is_admin(console: Console) -> None:
    browser = Visitor(create_app(console))
    found = browser.get("/api/session").json()
    assert (found["name"], found["role"]) == (security.OWNER, "admin")


def test_a_proxy_that_was_not_declared_opens_nothing(console: Console) -> None:
    browser = Visitor(create_app(console))
    answer = browser.get("/api/cameras", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status_code == 401
    assert "behind a proxy" in answer.json()["detail"]


@pytest.mark.parametrize(
    "settings",
    [{"host": "0.0.0.0"}, {"behind_proxy": True}, {"public_url": "https://example.org"}],  # noqa: S104
)
def test_where_others_can_reach_it_nobody_is_admin_by_default(
    tmp_path: Any, settings: dict[str, Any]
) -> None:
    console = open_console(ServerSettings(tmp_path / "data", **settings))
    assert Visitor(create_app(console)).get("/api/cameras").status_code == 401
    console.database.close()


def test_csrf_of_a_browser_without_login(console: Console) -> None:
    app = create_app(console)
    browser, other = Visitor(app), Visitor(app)
    change = {"json": {"quota_bytes": 10**9}}
    assert browser.patch("/api/settings", **change).status_code == 403
    stolen = {"X-CSRF-Token": other.csrf()}
    assert browser.patch("/api/settings", headers=stolen, **change).status_code == 403
    assert browser.change("PATCH", "/api/settings", **change).status_code == 200


def test_csrf_of_a_login(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    assert browser.log_in("admin").status_code == 303
    change = {"json": {"quota_bytes": 10**9}}
    assert browser.patch("/api/settings", **change).status_code == 403
    assert browser.change("PATCH", "/api/settings", **change).status_code == 200
    before = browser.csrf()
    browser.log_in("admin")
    assert browser.csrf() != before


def test_csrf_field_of_a_form(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    form = {"name": "admin", "password": PASSWORD}
    assert browser.post("/login", data=form).status_code == 403
    assert browser.log_in("admin").status_code == 303


def test_cookies_are_safe(console: Console) -> None:
    app, _ = visitors(console)
    for address, is_secure in ((HERE, False), ("https://127.0.0.1:8420", True)):
        cookies = Visitor(app, address=address).log_in("admin").headers.get_list("Set-Cookie")
        assert cookies
        for cookie in cookies:
            assert "HttpOnly" in cookie
            assert "SameSite=Lax" in cookie
            assert "Path=/" in cookie
            assert "Domain" not in cookie
            assert ("Secure" in cookie) == is_secure


def test_cookies_are_secure_where_the_public_address_is(tmp_path: Any) -> None:
    """A proxy that speaks HTTPS asks by HTTP, and may not say so."""
    for scheme in ("http", "https"):
        url = f"{scheme}://cameras.example.org"
        console = open_console(ServerSettings(tmp_path / scheme, public_url=url))
        (cookie,) = Visitor(create_app(console)).get("/login").headers.get_list("Set-Cookie")
        console.database.close()
        assert ("Secure" in cookie) == (scheme == "https")


def test_what_is_stored_does_not_let_anybody_in(console: Console) -> None:
    app, known = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    cookie = browser.cookies[security.LOGIN_COOKIE]
    with console.database.session() as session:
        login = session.scalar(select(Login))
        user = session.scalar(select(User))
        tokens = list(session.scalars(select(Token)))
    assert login is not None
    assert user is not None
    assert login.digest != cookie
    assert user.password.startswith("$argon2id$")
    secret = known["admin"].headers["Authorization"].split()[1]
    assert secret not in [token.digest for token in tokens]
    thief = Visitor(app)
    thief.cookies.set(security.LOGIN_COOKIE, login.digest)
    assert thief.get("/api/session").status_code == 401
    digests = Visitor(app, token=tokens[0].digest)
    assert digests.get("/api/session").status_code == 401


def test_logging_out_ends_the_login_at_the_server(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    cookie = browser.cookies[security.LOGIN_COOKIE]
    assert browser.change("POST", "/logout").status_code == 303
    browser.cookies.set(security.LOGIN_COOKIE, cookie)
    assert browser.get("/api/session").status_code == 401


def test_a_login_expires_and_is_renewed_by_use(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    half = security.LOGIN_SECONDS / 2

    def set_rest(seconds: float) -> None:
        with console.database.transaction() as session:
            login = session.scalars(select(Login)).one()
            login.expires = time.time() + seconds

    set_rest(half - 60)
    answer = browser.get("/api/session")
    assert f"Max-Age={int(security.LOGIN_SECONDS)}" in answer.headers["Set-Cookie"]
    with console.database.session() as session:
        assert session.scalars(select(Login)).one().expires > time.time() + 1.9 * half
    set_rest(-1)
    assert browser.get("/api/session").status_code == 401


def test_a_new_password_or_removal_ends_logins(console: Console) -> None:
    app, _ = visitors(console)
    user = add_user(console, "test", NewUser(name="eve", password=PASSWORD))
    browser = Visitor(app)
    browser.log_in("eve")
    assert browser.get("/api/session").status_code == 200
    change_user(console, "test", user.id, UserChanges(password=ANOTHER))
    assert browser.get("/api/session").status_code == 401
    browser.log_in("eve", ANOTHER)
    admin = Visitor(app)
    admin.log_in("admin")
    assert admin.change("DELETE", f"/api/users/{user.id}").status_code == 204
    assert browser.get("/api/session").status_code == 401


def test_a_role_that_is_taken_away_holds_at_once(console: Console) -> None:
    app, _ = visitors(console)
    user = add_user(console, "test", NewUser(name="eve", password=PASSWORD, role=Role.REVIEWER))
    browser = Visitor(app)
    browser.log_in("eve")
    assert browser.get("/api/session").json()["role"] == "reviewer"
    change_user(console, "test", user.id, UserChanges(role=Role.VIEWER))
    assert browser.get("/api/session").json()["role"] == "viewer"


def test_passwords_are_tried_a_few_times_only(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    for _ in range(Attempts.FREE):
        assert browser.log_in("admin", "wrong password").status_code == 401
    answer = browser.log_in("admin")
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) >= 1


def test_passwords_are_tried_a_few_times_only_from_one_network(console: Console) -> None:
    """Whoever has an address of version 6 has 2**64 of them."""
    app, _ = visitors(console)
    for k in range(Attempts.FREE + 1):
        browser = Visitor(app)
        browser._transport.client = (f"2001:db8:0:1:{k}::{k}", 4000)  # type: ignore[attr-defined]
        answer = browser.log_in(f"name {k}", "wrong password")
        assert answer.status_code == (401 if k < Attempts.FREE else 429)


def test_other_addresses_are_networks_of_their_own() -> None:
    for address, network in {
        "2001:db8:0:2::1": "2001:db8:0:2::/64",
        "192.0.2.1": "192.0.2.1",
        "::ffff:192.0.2.1": "::ffff:192.0.2.1",
        "testclient": "testclient",
    }.items():
        request = Request({"type": "http", "client": (address, 4000)})
        assert security._network(request) == network


def test_waits_grow_for_a_name_and_for_an_address() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    waits = []
    for n in range(Attempts.FREE + 12):
        attempts.begin(f"name {n}", "address a")  # another name each time, from one address
        try:
            attempts.begin(f"name {n + 1000}", "address a")
        except HttpError as error:
            waits.append(int(error.headers["Retry-After"]))
            now[0] += waits[-1] + 0.001
    assert waits == sorted(waits)
    assert waits[0] == 1.0
    assert waits[-1] == pytest.approx(Attempts.LONGEST_WAIT)
    attempts.begin("name 1", "address b")
    attempts.succeed("address a")
    attempts.begin("name 2", "address a")


def test_failures_are_forgotten_after_an_hour() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for _ in range(Attempts.FREE):
        attempts.begin("name")
    now[0] = Attempts.FORGOTTEN + 1
    attempts.begin("name")
    attempts.begin("name")  # without any wait


def test_failures_do_not_fill_the_memory() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for n in range(Attempts.MOST_KEYS + 10):
        now[0] += 1e-3
        attempts.begin(f"name {n}")
    assert len(attempts._failures) <= Attempts.MOST_KEYS


def test_many_names_do_not_make_the_latest_failures_forgotten() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    for n in range(Attempts.MOST_KEYS - 1):
        attempts.begin(f"name {n}")
    now[0] = 1.0
    for _ in range(Attempts.FREE + 1):
        now[0] += 1.0
        attempts.begin("admin")
    for n in range(3):
        attempts.begin(f"another name {n}")
    assert len(attempts._failures) < Attempts.MOST_KEYS
    with pytest.raises(HttpError, match="too many"):
        attempts.begin("admin")


def test_a_name_that_is_not_known_takes_as_long() -> None:
    """The same work is done for it, against a hash of the same cost."""
    passwords = Passwords()
    known = passwords.hashed(PASSWORD)
    assert passwords.fits(PASSWORD, known)
    assert not passwords.fits(PASSWORD, None)
    assert passwords._nobody is not None
    assert passwords._nobody.split("$")[1:4] == known.split("$")[1:4]
    assert known.startswith("$argon2id$v=19$m=65536,t=3,p=4$")


@pytest.mark.parametrize("password", ["", "short", "x" * 1001])
def test_passwords_have_a_length(console: Console, password: str) -> None:
    with pytest.raises(ValueError, match="a password must have 8 to 1000"):
        give_password(console, "admin", password)


@pytest.mark.parametrize(
    "host", ["rebound.example.org", "127.0.0.1.example.org", "192.0.2.7", "", "localhost@evil"]
)
def test_other_names_are_not_answered_to_on_loopback(console: Console, host: str) -> None:
    answer = Visitor(create_app(console)).get("/healthz", headers={"Host": host})
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "[::1]:8420", "LOCALHOST:8420"])
def test_own_names_on_loopback(console: Console, host: str) -> None:
    answer = Visitor(create_app(console)).get("/healthz", headers={"Host": host})
    assert answer.status_code == 200


def test_own_names_elsewhere(tmp_path: Any) -> None:
    settings = ServerSettings(tmp_path, host="0.0.0.0", public_url="https://cameras.example.org")  # noqa: S104
    assert is_own_name("cameras.example.org", settings)
    assert is_own_name("192.0.2.7", settings)
    assert is_own_name("127.0.0.1", settings)
    assert not is_own_name("example.org", settings)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.org"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_changes_from_other_pages_are_refused(console: Console, headers: dict[str, str]) -> None:
    browser = Visitor(create_app(console))
    change = {"json": {"quota_bytes": 10**9}}
    assert browser.change("PATCH", "/api/settings", headers=headers, **change).status_code == 403
    own = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}
    assert browser.change("PATCH", "/api/settings", headers=own, **change).status_code == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/cameras", "/api/nothing", "/nothing"])
def test_every_answer_has_the_headers(console: Console, path: str) -> None:
    headers = Visitor(create_app(console)).get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"


def test_a_fault_of_ours_is_not_shown(console: Console) -> None:
    app = create_app(console)

    @app.get("/api/broken")
    def broken() -> None:
        raise RuntimeError("secret of the house")

    visitor = Visitor(app)
    visitor._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    answer = visitor.get("/api/broken")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Content-Security-Policy" in answer.headers


def test_bodies_have_a_size(console: Console) -> None:
    browser = Visitor(create_app(console))
    large = b"x" * (LARGEST_BODY + 1)
    assert browser.change("PATCH", "/api/settings", content=large).status_code == 413
    pieces = (large[:1000] for _ in range(LARGEST_BODY // 1000 + 2))
    assert browser.change("PATCH", "/api/settings", content=pieces).status_code in (400, 413)


def test_nothing_of_an_upload_is_read_before_it_is_known_who_sends_it(console: Console) -> None:
    app, _ = visitors(console)
    read = 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b"x=" + b"x" * 1000, "more_body": read < 1000}

    answers: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        answers.append(message)

    headers = {"content-type": security.FORM, "host": "127.0.0.1:8420", "origin": HERE}
    scope = {
        "type": "http",
        "method": "POST",
        "path": security.UPLOADS,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
    }
    asyncio.run(app(scope, receive, send))
    assert answers[0]["status"] == 401
    assert read <= 1


def test_what_is_good_to_know_needs_no_database_that_writes(console: Console) -> None:
    _, known = visitors(console)
    with console.database.transaction() as session:
        for login in session.scalars(select(Login)):
            login.expires = time.time() + 60  # it is renewed by use
    listen(console.database.engine, "checkout", read_only)
    try:
        assert known["viewer"].get("/api/cameras").status_code == 200
        assert known["viewer"].get("/metrics").status_code == 200
    finally:
        remove(console.database.engine, "checkout", read_only)


def read_only(connection: Any, *others: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def test_pages_send_strangers_to_the_login(console: Console) -> None:
    app, _ = visitors(console)
    stranger = Visitor(app)
    answer = stranger.get("/events")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/login?next=%2Fevents")
    htmx = {"HX-Request": "true", "HX-Current-URL": "http://127.0.0.1/events?cue=speed"}
    part = stranger.get("/parts/latest", headers=htmx)
    way_back = "/login?next=%2Fevents%3Fcue%3Dspeed"
    assert (part.status_code, part.headers["HX-Redirect"]) == (401, way_back)
    assert stranger.get("/api/events").status_code == 401


def test_there_is_always_an_admin(console: Console) -> None:
    app, known = visitors(console)
    admin = known["admin"]
    user = admin.get("/api/users").json()[0]["id"]
    assert admin.patch(f"/api/users/{user}", json={"role": "viewer"}).status_code == 409
    add_user(console, "test", NewUser(name="eve", password=PASSWORD))
    assert admin.delete(f"/api/users/{user}").status_code == 409
    assert Visitor(app).log_in("admin").status_code == 303


def test_the_first_user_is_an_admin(console: Console) -> None:
    browser = Visitor(create_app(console))
    first = {"name": "eve", "password": PASSWORD, "role": "viewer"}
    assert browser.change("POST", "/api/users", json=first).status_code == 409
    assert browser.get("/api/session").json()["name"] == security.OWNER


def test_who_did_what_is_written_down_without_secrets(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    eve = {"name": "eve", "password": "a password of eve", "role": "viewer"}
    browser.change("POST", "/api/users", json=eve)
    address = "rtsp://me:topsecret@192.0.2.9/1"
    browser.change("POST", "/api/cameras", json={"name": "Gate", "address": address})
    token = browser.change("POST", "/api/tokens", json={"name": "script", "role": "viewer"}).json()
    with console.database.session() as session:
        entries = list(session.scalars(select(AuditEntry).where(AuditEntry.actor == "admin")))
    assert [entry.action for entry in entries] == [
        "logged in",
        "user added",
        "camera added",
        "token added",
    ]
    text = str([(entry.subject, entry.details) for entry in entries])
    assert "topsecret" not in text
    assert "password of eve" not in text
    assert token["secret"] not in text


def test_a_withdrawn_token_is_not_known(console: Console) -> None:
    _, known = visitors(console)
    viewer, admin = known["viewer"], known["admin"]
    assert viewer.get("/api/session").status_code == 200
    tokens = {token["name"]: token for token in admin.get("/api/tokens").json()}
    assert tokens["viewer"]["last_used"] is not None
    assert "digest" not in tokens["viewer"]
    admin.delete(f"/api/tokens/{tokens['viewer']['id']}")
    assert viewer.get("/api/session").status_code == 401


def test_a_password_of_the_proxy_is_not_ours(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    basic = {"Authorization": "Basic cHJveHk6c2VjcmV0"}
    assert browser.get("/api/session", headers=basic).status_code == 200
    assert Visitor(app).get("/api/session", headers=basic).status_code == 401


def test_ones_own_password(console: Console) -> None:
    app, known = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    wrong = {"old": "not the password", "new": ANOTHER}
    assert browser.change("POST", "/api/password", json=wrong).status_code == 403
    right = {"old": PASSWORD, "new": ANOTHER}
    assert browser.change("POST", "/api/password", json=right).status_code == 204
    assert browser.log_in("admin", ANOTHER).status_code == 303
    assert known["admin"].post("/api/password", json=right).status_code == 403


def test_ones_old_password_is_tried_a_few_times_only(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    browser.log_in("admin")
    wrong = {"old": "a wrong one", "new": ANOTHER}
    answers = [browser.change("POST", "/api/password", json=wrong) for _ in range(7)]
    assert [answer.status_code for answer in answers] == [403] * Attempts.FREE + [429] * 2
    assert "Retry-After" in answers[-1].headers


def test_logins_are_written_down(console: Console) -> None:
    app, _ = visitors(console)
    Visitor(app).log_in("admin", "a wrong one")
    Visitor(app).log_in("admin")
    with console.database.session() as session:
        found = session.scalars(select(AuditEntry).where(AuditEntry.action == "logged in")).all()
    assert [(entry.actor, entry.subject) for entry in found] == [("admin", "127.0.0.1")]


def test_a_stream_of_news_ends_with_its_token(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news_stream, "HEARTBEAT", 0.05)
    _, known = visitors(console)
    ended: list[bool] = []

    def withdraw() -> None:
        try:
            wait_until(lambda: len(console.bulletin) == 1, "somebody listens")
            with console.database.session() as session:
                token = session.scalars(select(Token).where(Token.role == "viewer")).one()
            administration.remove(console, "test", Token, token.id)
            wait_until(lambda: len(console.bulletin) == 0, "nobody listens")
            ended.append(True)
        finally:
            console.closing.set()
            console.bulletin.publish("closing")

    thread = threading.Thread(target=withdraw)
    thread.start()
    assert known["viewer"].get("/api/stream").status_code == 200
    thread.join()
    assert ended


def test_only_their_owner_reads_files_in_a_folder_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    console = open_console(ServerSettings(tmp_path / "data"))
    with console.database.transaction() as session:
        session.add(Setting(key="a", value={}))
    found = {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "data").iterdir()}
    console.database.close()
    assert found.keys() >= {"habitus.sqlite", "habitus.sqlite-wal", "secret.key", "cameras"}
    assert set(found.values()) == {0}


def test_metrics_are_for_this_machine_or_a_token(console: Console) -> None:
    app, known = visitors(console)
    assert Visitor(app).get("/metrics").status_code == 200
    far = Visitor(app)
    far._transport.client = ("203.0.113.9", 4000)  # type: ignore[attr-defined]
    assert far.get("/metrics").status_code == 401
    assert far.get("/healthz").status_code == 200
    assert known["viewer"].get("/metrics").status_code == 200
    assert Visitor(app, token=ANOTHER).get("/metrics").status_code == 401


def audited(console: Console) -> list[tuple[str, str]]:
    with console.database.session() as session:
        return [(entry.actor, entry.action) for entry in session.scalars(select(AuditEntry))]


def test_wrong_passwords_are_written_down(console: Console) -> None:
    app, _ = visitors(console)
    browser = Visitor(app)
    assert browser.log_in("admin", ANOTHER).status_code == 401
    assert browser.log_in("hunter2", ANOTHER).status_code == 401
    noted = audited(console)
    assert noted[-2:] == [("admin", "wrong password"), ("somebody unknown", "wrong password")]
    assert browser.log_in("admin").status_code == 303
    assert audited(console)[-1] == ("admin", "logged in")


def test_changes_that_change_nothing_are_not_written_down(console: Console) -> None:
    _, known = visitors(console)
    admin = known["admin"]
    settings = {"url": "https://example.org/in", "secret": "s"}
    channel = {"name": "Desk", "kind": "webhook", "settings": settings, "most_per_hour": 5}
    made = admin.post("/api/channels", json=channel).json()
    user = admin.post("/api/users", json={"name": "me", "password": ANOTHER}).json()
    quota = admin.get("/api/settings").json()["quota_bytes"]
    before = audited(console)
    for path, same in {
        f"/api/channels/{made['id']}": {"name": "Desk", "settings": settings, "most_per_hour": 5},
        f"/api/users/{user['id']}": {"role": "viewer"},
        "/api/settings": {"quota_bytes": quota},
    }.items():
        assert admin.patch(path, json=same).status_code == 200
    assert audited(console) == before
    secret = {"settings": {"secret": "other"}, "most_per_hour": 5}
    assert admin.patch(f"/api/channels/{made['id']}", json=secret).status_code == 200
    with console.database.session() as session:
        last = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
    assert last is not None
    assert last.details == {"changed": ["settings"]}


def test_an_answer_names_the_role_that_is_missing(console: Console) -> None:
    _, known = visitors(console)
    detail = known["viewer"].get("/api/users").json()["detail"]
    assert detail == "that needs the role admin, and yours is viewer"


def test_everybody_changes_their_own_password_on_a_page(console: Console) -> None:
    app, _ = visitors(console)
    add_user(console, "test", NewUser(name="guest", password=PASSWORD))
    browser = Visitor(app)
    browser.log_in("guest")
    page = browser.get("/account")
    assert (page.status_code, "Review" in page.text) == (200, False)
    csrf = {"csrf_token": browser.csrf()}
    wrong = browser.post("/account", data={"old": ANOTHER, "new": ANOTHER, **csrf})
    assert (wrong.status_code, "does not fit" in wrong.text) == (403, True)
    short = browser.post("/account", data={"old": PASSWORD, "new": "short", **csrf})
    assert (short.status_code, "8 to 1000 characters" in short.text) == (422, True)
    done = browser.post("/account", data={"old": PASSWORD, "new": ANOTHER, **csrf})
    assert (done.status_code, done.headers["Location"]) == (303, "/login")
    assert browser.get("/account").status_code == 303, "all logins have ended"
    assert browser.log_in("guest", ANOTHER).status_code == 303


def test_the_password_of_a_service_does_not_undo_a_change(tmp_path: Path) -> None:
    def fits(password: str) -> bool:
        with closing(open_console(ServerSettings(tmp_path)).database) as database:
            user = database.read(lambda session: session.scalars(select(User)).one())
        return security.PASSWORDS.fits(password, user.password)

    habitus.set_password(tmp_path, "of the service", again=False)
    console = open_console(ServerSettings(tmp_path))
    administration.change_user(console, "admin", 1, UserChanges(password="of the page"))  # noqa: S106
    console.database.close()
    habitus.set_password(tmp_path, "of the service", again=False)
    assert fits("of the page")
    habitus.set_password(tmp_path, "another of the service", again=False)
    assert fits("another of the service")
    habitus.set_password(tmp_path, "another of the service")
    assert fits("another of the service")
