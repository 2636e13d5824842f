"""The API: what it gives, what it refuses, and that its description is right."""

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.event import listen, remove

from habitus.site.relearning import LearntModel
from habitus.web import store
from habitus.web.administration import camera_of
from habitus.web.app import create_app
from habitus.web.database import CameraRow, Channel
from habitus.web.server import Console
from reference.consoles import START, add_camera, entry, event_json
from reference.footage import encode, moving_square
from reference.visitors import Visitor, visitors

ZONE: dict[str, Any] = {
    "name": "Loading bay",
    "kind": "own",
    "polygon": [[0, 0], [10, 0], [10, 10]],
    "alerts_per_day": 1.0,
    "hours": [{"days": ["mon", "fri"], "start": "22:00", "end": "06:00"}],
}
NAUGHTY = '<img src=x onerror="alert(1)">'


@pytest.fixture
def browser(console: Console) -> Visitor:
    return Visitor(create_app(console))


def add_events(console: Console, n: int, camera: str = "north", **fields: Any) -> list[str]:
    ids = [f"{camera}-{k:03d}" for k in range(n)]
    with console.database.transaction() as session:
        for k, event_id in enumerate(ids):
            times = {"start": START + k, "end": START + k + 0.5, "peak": START + k}
            store.ingest(session, camera, entry(event_id, **(times | fields)))
    return ids


def add_files(console: Console, event_id: str) -> dict[str, str]:
    folder = console.settings.camera_folder("north") / "events"
    folder.mkdir(parents=True)
    endings = {"thumbnail": "jpg", "heat": "heat.jpg", "clip": "mp4"}
    names = {kind: f"{event_id}.{ending}" for kind, ending in endings.items()}
    for k, name in enumerate(names.values()):
        (folder / name).write_bytes(bytes([65 + k]) * 1000)
    return names


def test_a_camera_is_added_changed_and_removed(browser: Visitor, console: Console) -> None:
    address = "rtsp://me:hunter2@192.0.2.1/main?token=abc"
    made = browser.change(
        "POST",
        "/api/cameras",
        json={"name": " North  gate ", "address": address, "alerts_per_day": 2},
    )
    assert made.status_code == 201
    camera = made.json()
    assert (camera["id"], camera["name"]) == ("north-gate", "North gate")
    assert camera["shown_address"] == "rtsp://192.0.2.1/main?token=***"
    for answer in (made, browser.get("/api/cameras"), browser.get("/api/cameras/north-gate")):
        assert "hunter2" not in answer.text
        assert "abc" not in answer.text
    with console.database.session() as session:
        stored = session.get(CameraRow, "north-gate")
    assert stored is not None
    assert b"hunter2" not in stored.secret_address
    assert console.vault.open(stored.secret_address) == address

    changes = {"zones": [ZONE], "enabled": False, "options": {"fps": 5}}
    changed = browser.change("PATCH", "/api/cameras/north-gate", json=changes).json()
    assert changed["zones"] == [ZONE]
    assert (changed["enabled"], changed["options"]) == (False, {"fps": 5})
    assert changed["alerts_per_day"] == 2
    fast = {"options": {"fast": True, "fps": None}}
    changed = browser.change("PATCH", "/api/cameras/north-gate", json=fast).json()
    assert changed["options"] == {"fast": True}
    empty = browser.change("PATCH", "/api/cameras/north-gate", json={"address": ""})
    assert empty.status_code == 422
    with console.database.session() as session:
        stored = session.get_one(CameraRow, "north-gate")
    assert console.vault.open(stored.secret_address) == address

    assert browser.change("DELETE", "/api/cameras/north-gate").status_code == 204
    assert browser.get("/api/cameras/north-gate").status_code == 404


def test_a_zone_is_within_the_picture_of_its_camera(browser: Visitor, console: Console) -> None:
    add_camera(console, width=192, height=144)
    far = ZONE | {"polygon": [[200, 0], [240, 0], [240, 40]]}
    refused = browser.change("PATCH", "/api/cameras/north", json={"zones": [far]})
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        "zone 'Loading bay' must be a polygon of the frame, which has 192x144 pixels, found "
        "'200,0 240,0 240,40' outside it"
    )
    misspelt = {"zones": [ZONE, ZONE | {"polygon": []}]}
    refused = browser.change("PATCH", "/api/cameras/north", json=misspelt)
    assert refused.status_code == 422
    assert console.database.read(camera_of, "north").zones == []


def test_events_are_found_by_their_zone_and_say_it(browser: Visitor, console: Console) -> None:
    add_camera(console)
    of_zone = {"zone": "Loading bay", "explanation": "in Loading bay: something moving left"}
    with console.database.transaction() as session:
        store.ingest(session, "north", entry("a1", event=event_json(**of_zone)))
        store.ingest(session, "north", entry("a2", event=event_json()))
        not_raised = entry("a3", alarm=False, event=event_json(**of_zone))
        store.ingest(session, "north", not_raised)

    def found(query: str) -> list[str]:
        return [event["id"] for event in browser.get(f"/api/events?{query}").json()["events"]]

    assert found("zone=Loading bay") == ["a1"]
    assert found("zone=Gate") == []
    assert found("quiet=true") == ["a3"]
    assert sorted(found("alarms_only=false")) == ["a1", "a2", "a3"]
    assert browser.get("/api/events/a1").json()["zone"] == "Loading bay"
    lines = browser.get("/api/events.csv?zone=Loading bay").text.splitlines()
    assert [line.split(",")[:3] for line in lines] == [
        ["id", "camera", "zone"],
        ["a1", "North", "Loading bay"],
    ]
    assert browser.get("/api/precision?days=3650").json()["twice"]["alarms"] == 2, "not a3"


def test_behaviours_are_named(browser: Visitor, console: Console) -> None:
    add_camera(console, model="model-1.habitus")
    path = "/api/cameras/north/behaviours/2"
    nothing = browser.change("PATCH", path, json={"name": "north-south green"})
    assert nothing.status_code == 404
    with console.database.transaction() as session:
        number = store.begin_learning(session, "north", "first", START)
        learnt = LearntModel("model-1.habitus", "", (), START, START + 300, 300, 4)
        store.end_learning(session, number, learnt, START + 400)
    assert browser.change("PATCH", path, json={"name": " north-south  green "}).status_code == 204
    folder = console.settings.camera_folder("north")
    folder.mkdir(parents=True)
    (folder / "model-1.json").write_text(
        json.dumps(
            [{"number": n, "share": 0.5, "seconds": 9, "next": [], "picture": None} for n in (1, 2)]
        )
    )
    timeline = f"/api/cameras/north/timeline?since={START}&until={START + 3600}"
    assert browser.get(timeline).json()["names"] == [
        {"since": START + 400, "names": {"2": "north-south green"}}
    ]
    assert "north-south green" in browser.get("/cameras/north").text
    again = browser.change("PATCH", path.replace("2", "1"), json={"name": "north-south green"})
    assert again.status_code == 409
    assert browser.change("PATCH", path, json={"name": ""}).status_code == 204
    assert browser.get(timeline).json()["names"][0]["names"] == {}


def test_ids_of_cameras_are_their_own(browser: Visitor) -> None:
    for expected in ("gate", "gate-2", "gate-3"):
        made = browser.change(
            "POST", "/api/cameras", json={"name": "../Gate!", "address": "rtsp://192.0.2.1/1"}
        )
        assert made.json()["id"] == expected


REFUSED: list[dict[str, Any]] = [
    {"name": ""},
    {"name": "\u202e"},
    {"name": "x" * 101},
    {"address": "file:///etc/passwd"},
    {"address": "/etc/passwd"},
    {"address": "http://127.0.0.1/"},
    {"address": None},
    {"kind": "playback"},
    {"kind": "recording", "address": "/etc/passwd"},
    {"upload": "0" * 32},
    {"upload": "../../etc/passwd", "address": None, "kind": "playback"},
    {"upload": "0" * 32, "address": None, "kind": "playback"},
    {"upload": "0" * 32, "address": None},
    {"alerts_per_day": 0},
    {"alerts_per_day": -1},
    {"alerts_per_day": 1e9},
    {"learn_days": 0},
    {"learn_days": 1.5},
    {"mask": [[[0, 0], [9, 0], [9, 9]]]},
    {"zones": [{"name": "Gate"}]},
    {"zones": [{"name": "Gate", "polygon": [[0, 0], [1, 1]]}]},
    {"zones": [{"name": "Gate", "polygon": [[0, 0, 0], [1, 1, 1], [2, 0, 2]]}]},
    {"zones": [{"name": "Gate", "polygon": [[0, 0], [1e9, 1], [2, 2]]}]},
    {"zones": [{"name": "Gate", "polygon": [[0, 0], [1, 1], [2, 2]]}]},
    {"zones": [ZONE, ZONE]},
    {"zones": [ZONE | {"name": " "}]},
    {"zones": [ZONE | {"kind": "ignore"}]},
    {"zones": [ZONE | {"kind": "mask"}]},
    {"zones": [ZONE | {"alerts_per_day": 0}]},
    {"zones": [ZONE | {"hours": [{"start": "22:00"}]}]},
    {"zones": [ZONE | {"hours": [{"start": "24:00", "end": "06:00"}]}]},
    {"zones": [ZONE | {"hours": [{"days": ["day"], "start": "22:00", "end": "06:00"}]}]},
    {"options": {"timezone": "Mars/Olympus"}},
    {"options": {"timezone": "../../etc/passwd"}},
    {"options": {"other_hosts": True}},
    {"options": {"fps": 0}},
    {"options": {"nonsense": 1}},
    {"nonsense": 1},
]


def test_cameras_that_are_refused(browser: Visitor) -> None:
    for values in REFUSED:
        camera = {"name": "Gate", "address": "rtsp://192.0.2.1/1"} | values
        answer = browser.change("POST", "/api/cameras", json=camera)
        assert answer.status_code in (403, 404, 422), values
        assert "\n" not in answer.json()["detail"], values
        assert browser.get("/api/cameras").json() == [], values


def test_an_answer_to_a_mistake_does_not_repeat_secrets(browser: Visitor) -> None:
    camera = {"name": "Gate", "address": ["rtsp://me:hunter2@192.0.2.1/1"]}
    answer = browser.change("POST", "/api/cameras", json=camera)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("address: ")
    assert "hunter2" not in answer.text


def test_an_admin_may_allow_local_addresses_for_a_camera(browser: Visitor) -> None:
    camera = {"name": "Gate", "address": "rtsp://127.0.0.1/1", "options": {"local": True}}
    assert browser.change("POST", "/api/cameras", json=camera).status_code == 201
    # Taken back, the address is checked again.
    taken = {"options": {"local": None}}
    assert browser.change("PATCH", "/api/cameras/gate", json=taken).status_code == 422


def test_names_are_escaped(browser: Visitor) -> None:
    camera = {"name": NAUGHTY, "address": "rtsp://192.0.2.1/<script>"}
    made = browser.change("POST", "/api/cameras", json=camera).json()
    assert made["name"] == NAUGHTY
    for path in ("/", "/events", f"/cameras/{made['id']}", "/settings"):
        page = browser.get(path).text
        assert "<img src=x" not in page
        assert "<script>" not in page


def test_events_in_parts_and_by_filters(browser: Visitor, console: Console) -> None:
    add_camera(console)
    add_camera(console, "south")
    ids = add_events(console, 25)
    add_events(console, 3, "south", alarm=False)
    found, before = [], None
    while True:
        query: dict[str, Any] = {"limit": 10} | ({"before": before} if before else {})
        part = browser.get("/api/events", params=query).json()
        found += [event["id"] for event in part["events"]]
        before = part["next"]
        if before is None:
            break
    assert found == ids[::-1]
    whole = browser.get(f"/api/events/{ids[0]}").json()
    assert whole.keys() - part["events"][0].keys() == {"details", "newer", "older"}
    assert whole["details"]["habitus"] == "event"

    def listed(**query: Any) -> list[str]:
        answer = browser.get("/api/events", params=query).json()
        return [event["id"] for event in answer["events"]]

    assert listed(camera="south") == []
    assert len(listed(camera="south", alarms_only=False)) == 3
    assert listed(since=START + 23) == ids[:22:-1]
    assert listed(until=START + 1) == ids[:1]
    assert listed(cue="speed") == []
    assert len(listed(cue="direction")) == 25
    assert listed(review="normal") == []
    assert browser.get("/api/events", params={"before": "nonsense"}).status_code == 422


def test_one_event_and_its_review(browser: Visitor, console: Console) -> None:
    add_camera(console)
    first, second = add_events(console, 2)
    event = browser.get(f"/api/events/{first}").json()
    assert event["details"]["explanation"] == event_json()["explanation"]
    assert (event["newer"], event["older"]) == (second, None)
    path = f"/api/events/{first}/review"
    assert browser.change("POST", path, json={"verdict": "boring"}).status_code == 422
    said = browser.change("POST", path, json={"verdict": "unusual"}).json()
    assert said["verdict"] == "unusual"
    assert browser.get(f"/api/events/{first}").json()["review"] == "unusual"
    assert browser.change("DELETE", path).json()["verdict"] is None
    assert browser.get(f"/api/events/{first}").json()["review"] is None
    assert browser.get("/api/events/nothing").status_code == 404
    nothing = "/api/events/nothing/review"
    assert browser.change("POST", nothing, json={"verdict": "normal"}).status_code == 404


def test_files_of_an_event_in_parts(browser: Visitor, console: Console) -> None:
    add_camera(console)
    files = add_files(console, "north-000")
    clip = files.pop("clip")
    (event,) = add_events(console, 1, **files)
    with console.database.transaction() as session:
        store.ingest(session, "north", entry(event, clip=clip))
    for k, (name, media) in enumerate(
        {"thumbnail": "image/jpeg", "heat": "image/jpeg", "clip": "video/mp4"}.items()
    ):
        answer = browser.get(f"/api/events/{event}/{name}")
        assert answer.status_code == 200, name
        assert answer.content == bytes([65 + k]) * 1000
        assert answer.headers["Content-Type"] == media
        assert answer.headers["Accept-Ranges"] == "bytes"
    clip = f"/api/events/{event}/clip"
    part = browser.get(clip, headers={"Range": "bytes=10-19"})
    assert (part.status_code, len(part.content)) == (206, 10)
    assert part.headers["Content-Range"] == "bytes 10-19/1000"
    assert browser.get(clip, headers={"Range": "bytes=990-"}).headers["Content-Length"] == "10"
    assert browser.get(clip, headers={"Range": "bytes=5000-"}).status_code == 416
    head = browser.head(clip)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, "1000", b"")


def test_files_that_are_not_there(browser: Visitor, console: Console) -> None:
    add_camera(console)
    (event,) = add_events(console, 1, thumbnail="gone.jpg")
    clip = entry(event, clip="../../../secret.key")
    with console.database.transaction() as session:
        store.ingest(session, "north", clip)
    assert browser.get(f"/api/events/{event}/thumbnail").status_code == 404
    assert browser.get(f"/api/events/{event}/clip").status_code == 404
    assert browser.get("/api/cameras/north/behaviours/1.jpg").status_code == 404
    assert browser.get(f"/api/cameras/north/behaviours/{'9' * 300}.jpg").status_code == 422
    assert browser.get("/api/cameras/north/picture").status_code == 404


def test_now_without_a_process(browser: Visitor, console: Console) -> None:
    add_camera(console, width=360, height=288)
    now = browser.get("/api/cameras/north/now").json()
    assert (now["state"], now["width"], now["normality"]) == ("connecting", 360, None)
    assert browser.get("/api/cameras/nothing/now").status_code == 404
    assert browser.change("POST", "/api/cameras/north/learn").status_code == 503


def test_a_timeline(browser: Visitor, console: Console) -> None:
    add_camera(console)
    add_events(console, 2)
    span = {"since": START - 60, "until": START + 60}
    found = browser.get("/api/cameras/north/timeline", params=span).json()
    assert len(found["times"]) == len(found["normality"]) == len(found["behaviour"])
    assert [event["start"] for event in found["events"]] == [START, START + 1]
    for wrong in ({"until": START - 61}, {"until": "nan"}, {"points": 10**9}, {"since": "x"}):
        answer = browser.get("/api/cameras/north/timeline", params=span | wrong)
        assert answer.status_code == 422


def test_channels_keep_their_secrets(browser: Visitor, console: Console) -> None:
    url = "https://hooks.example.org/in/hunter2"
    channel = {"name": "Desk", "kind": "webhook", "settings": {"url": url, "secret": "s3cret"}}
    made = browser.change("POST", "/api/channels", json=channel)
    assert made.status_code == 201
    path = f"/api/channels/{made.json()['id']}"
    limits = {"quiet_from": "22:00", "quiet_until": "06:30", "most_per_hour": 10}
    changed = browser.change("PATCH", path, json={**limits, "settings": {"secret": "other"}})
    assert changed.json()["quiet_from"] == "22:00"
    listed = browser.get("/api/channels")
    for answer in (made, changed, listed):
        for secret in ("hunter2", "s3cret", "other"):
            assert secret not in answer.text
    with console.database.session() as session:
        stored = session.get(Channel, made.json()["id"])
    assert stored is not None
    assert console.vault.open(stored.secret_settings) == {"url": url, "secret": "other"}
    freed = browser.change("PATCH", path, json={"quiet_from": None, "quiet_until": None}).json()
    assert (freed["quiet_from"], freed["most_per_hour"]) == (None, 10)
    for wrong in ({"quiet_from": "25:00"}, {"quiet_from": "10:00"}, {"cameras": ["nothing"]}):
        assert browser.change("PATCH", path, json=wrong).status_code == 422
    assert browser.change("DELETE", path).status_code == 204
    assert browser.change("DELETE", path).status_code == 404


def test_a_channel_whose_only_camera_was_removed_can_be_changed(
    browser: Visitor, console: Console
) -> None:
    add_camera(console, "gone")
    channel = {"name": "Desk", "kind": "webhook", "settings": {"url": "https://example.org"}}
    made = browser.change("POST", "/api/channels", json={**channel, "cameras": ["gone"]})
    assert browser.change("DELETE", "/api/cameras/gone").status_code == 204
    path = f"/api/channels/{made.json()['id']}"
    changed = browser.change("PATCH", path, json={"enabled": False})
    assert (changed.status_code, changed.json()["enabled"]) == (200, False)


def test_settings(browser: Visitor) -> None:
    assert browser.get("/api/settings").json()["quota_bytes"] == 20 * 10**9
    changed = browser.change("PATCH", "/api/settings", json={"retention_days": 7})
    assert changed.json()["retention_days"] == 7
    assert browser.get("/api/settings").json()["retention_days"] == 7
    for wrong in ({"quota_bytes": 5}, {"retention_days": 0}, {"nonsense": 1}):
        assert browser.change("PATCH", "/api/settings", json=wrong).status_code == 422


def test_precision_audit_disk_and_notices(browser: Visitor, console: Console) -> None:
    console.bulletin.post("the broker is away")
    assert browser.get("/api/notices").json()[0]["text"] == "the broker is away"
    assert browser.change("DELETE", "/api/notices").status_code == 204
    assert browser.get("/api/notices").json() == []
    assert browser.get("/api/precision").json()["now"]["interval"] == [0.0, 1.0]
    assert browser.get("/api/disk").json()["database"] > 0
    browser.change("PATCH", "/api/settings", json={"retention_days": 7})
    assert browser.get("/api/audit").json()[0]["action"] == "settings changed"


def test_figures_for_prometheus(browser: Visitor, console: Console) -> None:
    add_camera(console, name=NAUGHTY)
    add_events(console, 3)
    browser.get("/api/cameras/north")
    text = browser.get("/metrics").text
    assert 'habitus_cameras{state="connecting"} 1.0' in text
    assert 'habitus_events{alarm="true",camera="north"} 3.0' in text
    route = 'habitus_http_seconds_count{method="GET",route="/api/cameras/{camera}",status="200"}'
    assert route in text
    assert text.count("_bucket{") < 20, "one histogram, not one for each route"
    browser.get("/api/cameras/nothing-1")
    browser.get("/nothing-1")
    assert "nothing-1" not in browser.get("/metrics").text


def test_health_says_what_fails(browser: Visitor, console: Console) -> None:
    assert browser.get("/healthz").json() == {"status": "ok", "problems": []}
    away = console.settings.data / "habitus.sqlite"
    console.database.close()
    away.rename(away.with_suffix(".away"))
    away.mkdir()
    answer = browser.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["the database does not answer"]
    refused = browser.get("/api/cameras")
    assert (refused.status_code, "database" in refused.json()["detail"]) == (503, True)
    assert browser.get("/events").status_code == 503
    assert "habitus_database_up 0.0" in browser.get("/metrics").text
    away.rmdir()
    away.with_suffix(".away").rename(away)
    assert browser.get("/healthz").status_code == 200


def test_health_says_that_the_database_cannot_be_written(
    browser: Visitor, console: Console
) -> None:
    def read_only(connection: Any, *others: object) -> None:
        connection.execute("PRAGMA query_only = ON")

    listen(console.database.engine, "checkout", read_only)
    try:
        answer = browser.get("/healthz")
    finally:
        remove(console.database.engine, "checkout", read_only)
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["the database cannot be written"]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/api/settings", {"retention_days": True}),
        ("/api/cameras/north", {"alerts_per_day": True}),
        ("/api/cameras/north", {"options": {"fps": True}}),
        ("/api/cameras/north", {"zones": [{"name": "A", "polygon": [[True, 0], [9, 0], [9, 9]]}]}),
    ],
)
def test_true_is_no_number(
    browser: Visitor, console: Console, path: str, values: dict[str, Any]
) -> None:
    add_camera(console)
    answer = browser.change("PATCH", path, json=values)
    assert answer.status_code == 422
    assert browser.change("PATCH", "/api/cameras/north", json={"enabled": False}).is_success


def test_what_is_not_there_is_json_here_and_a_page_elsewhere(browser: Visitor) -> None:
    assert browser.get("/api/nothing").json() == {"detail": "Not Found"}
    assert browser.get("/nothing").headers["Content-Type"].startswith("text/html")
    assert browser.change("PUT", "/api/cameras").status_code == 405


def test_the_description_is_right(browser: Visitor) -> None:
    """As OpenAPI 3.1 has it: every reference leads somewhere, every schema is one of JSON."""
    schema = browser.get("/api/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    for name, each in schema["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(each)
        assert each.get("description"), f"{name} is not described"
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(schema)):
        place: Any = schema
        for part in reference.split("/"):
            place = place[part]
    operations = [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) > 40
    for path, method, operation in operations:
        assert operation.get("description"), f"{method} {path} is not described"
        assert operation["tags"]
    page = browser.get("/api").text
    assert "/api/cameras/{camera}/now" in page
    assert "https://" not in page


def resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A schema that stands alone: with the definitions that it refers to."""
    text = json.dumps(part).replace("#/components/schemas/", "#/$defs/")
    definitions = json.dumps(schema["components"]["schemas"])
    defs = json.loads(definitions.replace("#/components/schemas/", "#/$defs/"))
    return {**json.loads(text), "$defs": defs}


def test_answers_are_as_described(browser: Visitor, console: Console) -> None:
    add_camera(console)
    add_events(console, 2)
    schema = browser.get("/api/openapi.json").json()
    checked = 0
    for path, methods in schema["paths"].items():
        found = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" not in found or path == "/api/stream":
            continue
        address = path.replace("{camera}", "north").replace("{event}", "north-000")
        span = {"since": START, "until": START + 9} if "timeline" in path else {}
        answer = browser.get(address, params=span)
        assert answer.status_code == 200, path
        part = resolved(schema, found["application/json"]["schema"])
        jsonschema.Draft202012Validator(part).validate(answer.json())
        checked += 1
    assert checked > 15


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_nothing_that_is_sent_makes_it_fail(
    browser: Visitor, console: Console, data: st.DataObject
) -> None:
    """Any value in any place of any operation: an answer, and never a fault of ours."""
    if not browser.get("/api/cameras").json():
        add_camera(console)
    schema = browser.get("/api/openapi.json").json()
    operations = [
        (path, method)
        for path in schema["paths"]
        for method in schema["paths"][path]
        if path not in ("/api/stream", "/api/uploads") and not path.endswith("/test")
    ]
    path, method = data.draw(st.sampled_from(sorted(operations)))
    operation = schema["paths"][path][method]
    text = st.text(max_size=20) | st.sampled_from(["north", "1", "0", "-1", "nan", "1e999"])
    for name in re.findall(r"{(\w+)}", path):
        value = data.draw(text)
        quoted = "".join(f"%{byte:02x}" for byte in value.encode()) or "x"
        path = path.replace(f"{{{name}}}", quoted)
    query = {
        each["name"]: data.draw(text)
        for each in operation.get("parameters", [])
        if each["in"] == "query" and data.draw(st.booleans())
    }
    body: dict[str, Any] = {}
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        name = content["schema"]["$ref"].rpartition("/")[2]
        fields = schema["components"]["schemas"][name]["properties"]
        body = {field: data.draw(plain) for field in fields if data.draw(st.booleans())}
    encoded = json.dumps(body).encode()
    answer = browser.change(
        method.upper(),
        path,
        params=query,
        content=encoded,
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code < 500 or answer.status_code == 503
    if answer.status_code >= 400:
        assert "\n" not in answer.json()["detail"]


def test_values_that_a_database_does_not_take(any_console: Console) -> None:
    """PostgreSQL takes no zero bytes, and neither takes numbers of any size."""
    browser = Visitor(create_app(any_console))
    add_camera(any_console)
    assert browser.get("/api/cameras").status_code == 200
    assert browser.get("/api/events/%00").status_code in (404, 422)
    assert browser.get("/api/cameras/a%00/now").status_code in (404, 422)
    assert browser.get("/api/events", params={"cue": "\0"}).status_code in (200, 422)
    for far, status in {9e10: 200, 1e15: 422, 1e300: 422}.items():
        span = {"since": far, "until": far + 3600}
        answer = browser.get("/api/cameras/north/timeline", params=span)
        assert answer.status_code == status
        assert browser.get("/api/events", params=span).status_code == status


def test_an_upload_becomes_a_camera(browser: Visitor, console: Console, tmp_path: Path) -> None:
    video = encode(tmp_path / "a.mp4", moving_square(75))
    upload = browser.change("POST", "/api/uploads", content=video.read_bytes())
    assert upload.status_code == 201
    assert math.isclose(upload.json()["seconds"], 3.0, abs_tol=0.2)
    camera = {"name": "Yard", "upload": upload.json()["id"], "kind": "recording"}
    made = browser.change("POST", "/api/cameras", json=camera)
    assert made.status_code == 201
    assert "uploads" not in made.text
    with console.database.session() as session:
        stored = session.get(CameraRow, "yard")
    assert stored is not None
    kept = Path(console.vault.open(stored.secret_address))
    assert kept.read_bytes() == video.read_bytes()
    assert kept.parent == (console.settings.data / "uploads").resolve()


def test_programs_need_no_cookie(console: Console) -> None:
    _, known = visitors(console)
    camera = {"name": "Gate", "address": "rtsp://192.0.2.1/1"}
    assert known["admin"].post("/api/cameras", json=camera).status_code == 201
    assert not known["admin"].cookies
    assert io.StringIO(known["viewer"].get("/metrics").text).readline().startswith("# HELP")
