"""Whatever is sent, the answer says in one line what is wrong with it."""

import json

import pytest

from habitus.web.server import Console
from reference.consoles import add_camera
from reference.visitors import Visitor, visitors

TOO_LARGE = "9" * 400
A_ROW = "9" * 30
A_CAMERA = "name=a&address=rtsp://192.0.2.1/"
A_BROKER = "name=a&kind=mqtt&host=h"
A_CHANNEL = {"name": "a", "kind": "mqtt"}
PLACES = {
    "/events?until=9999-12-31": 200,
    "/events?since=0001-01-01": 200,
    f"/settings?before={A_ROW}": 422,
}
FORMS = [
    (f"/settings/users/{A_ROW}", "role=viewer"),
    (f"/settings/users/{A_ROW}/remove", ""),
    (f"/settings/tokens/{A_ROW}/remove", ""),
    (f"/settings/channels/{A_ROW}", A_BROKER),
    (f"/settings/channels/{A_ROW}/switch", ""),
    (f"/settings/channels/{A_ROW}/test", ""),
    (f"/settings/channels/{A_ROW}/remove", ""),
    ("/settings/disk", "quota=inf&retention_days=5&upload=1"),
    ("/settings/disk", "quota=nan&retention_days=5&upload=1"),
    ("/settings/disk", "quota=1e300&retention_days=5&upload=1"),
    ("/settings/channels", f"{A_BROKER}&port=inf"),
    ("/settings/channels", f"{A_BROKER}&port=nan"),
    ("/settings/channels", f"{A_BROKER}&most_per_hour=1e30"),
    ("/settings/channels", f"{A_BROKER}&most_per_hour=999999"),
    ("/settings/channels", f"{A_BROKER}&username=%00"),
    ("/cameras", f"{A_CAMERA}&learn_days=inf"),
    ("/cameras/north/zones", "zones=[[[["),
    ("/cameras/north/zones", f'zones=[{{"name":"a","polygon":[[{TOO_LARGE},0],[0,0],[1,1]]}}]'),
    ("/cameras/north/zones", "zones=[]&timezone=%00"),
    ("/cameras/north", "name=a&learn_days=nan"),
]
VALUES = [
    ("PATCH", "/api/settings", {"quota_bytes": int(TOO_LARGE)}),
    ("PATCH", "/api/cameras/north", {"options": {"starts": 1e300}}),
    ("POST", "/api/channels", {**A_CHANNEL, "settings": {"host": "h\ud800"}}),
    ("POST", "/api/channels", {**A_CHANNEL, "settings": {"host": "h\0"}}),
    ("POST", "/api/channels", {**A_CHANNEL, "settings": {"host": "h", "tls": True, "ca": "é"}}),
]


@pytest.fixture
def admin(console: Console) -> Visitor:
    add_camera(console)
    return visitors(console)[1]["admin"]


def test_places_that_there_are_not(admin: Visitor) -> None:
    assert {path: admin.get(path).status_code for path in PLACES} == PLACES


def test_forms_with_numbers_that_nobody_means(admin: Visitor) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for path, form in FORMS:
        answer = admin.post(path, content=form, headers=headers)
        assert answer.status_code == 422, f"{path}: {form[:80]}"


def test_where_forms_are_sent_to_leads_to_their_pages(admin: Visitor) -> None:
    for path in (
        *(path for path, _ in FORMS),
        "/cameras/north/learn",
        "/logout",
        "/settings/quiet",
    ):
        answer = admin.get(path, follow_redirects=True)
        assert answer.status_code == 200, path


def test_values_that_nobody_means(admin: Visitor) -> None:
    headers = {"Content-Type": "application/json"}
    for method, path, body in VALUES:
        answer = admin.request(method, path, content=json.dumps(body), headers=headers)
        assert answer.status_code == 422, f"{path}: {body}"
        assert answer.json()["detail"]
