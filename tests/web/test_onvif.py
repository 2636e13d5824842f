"""Cameras are found by a real exchange on loopback, and looked at before they are added."""

import json
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from habitus import InvalidInputError, VideoError
from habitus.site.probe import look as look_at
from habitus.web import administration, onvif
from habitus.web.answers import CameraChanges, NewCamera
from habitus.web.database import CameraRow
from habitus.web.server import Console
from reference.console_pages import Site
from reference.onvif_device import PASSWORD, USER, OnvifDevice, onvif_device
from reference.streams import motion_jpeg


@pytest.fixture
def device() -> Iterator[OnvifDevice]:
    with onvif_device() as found:
        yield found


def test_a_device_of_the_network_is_found(device: OnvifDevice) -> None:
    found = onvif.OnvifDevice("North gate", "Model-5", device.address)
    assert onvif.discover(wait=1.0) == [found]


def test_streams_of_a_device_are_at_its_own_host(device: OnvifDevice) -> None:
    main, sub = onvif.streams(device.address, USER, PASSWORD, local=True)
    assert astuple(main) == ("Main", "rtsp://127.0.0.1:8554/main?a=1&b=2", 2560, 1440, "H264")
    assert astuple(sub) == ("Sub", "rtsp://127.0.0.1:8554/sub?a=1&b=2", 640, 360, "H264")
    assert device.asked == [
        "GetSystemDateAndTime",
        "GetCapabilities",
        "GetProfiles",
        "GetStreamUri",
        "GetStreamUri",
    ]


@pytest.mark.parametrize(("user", "password"), [(USER, "wr0ng"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_password_is_refused_in_one_line(
    device: OnvifDevice, user: str, password: str
) -> None:
    with pytest.raises(InvalidInputError, match="Sender not Authorized; check user") as told:
        onvif.streams(device.address, user, password, local=True)
    assert told.value.parameter == "username"
    assert "wr0ng" not in str(told.value)


def test_this_machine_is_asked_only_if_an_admin_allows_it(device: OnvifDevice) -> None:
    with pytest.raises(InvalidInputError, match="this machine"):
        onvif.streams(device.address, USER, PASSWORD)
    with pytest.raises(InvalidInputError, match="by http"):
        onvif.streams("ftp://127.0.0.1/x", local=True)
    assert device.asked == []


BOMB = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>"""
OUTSIDE = (
    b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>"""
)


@pytest.mark.parametrize("raw", [b"", b"<html>", BOMB, OUTSIDE, "é".encode("utf-16"), b"\0" * 99])
def test_what_is_no_device_is_refused_in_one_line(device: OnvifDevice, raw: bytes) -> None:
    device.raw = raw
    with pytest.raises(InvalidInputError, match="no camera that speaks ONVIF"):
        onvif.streams(device.address, USER, PASSWORD, local=True)


def test_streams_without_a_host_are_refused(device: OnvifDevice) -> None:
    device.uri = "not an address"
    with pytest.raises(InvalidInputError, match="without a host"):
        onvif.streams(device.address, USER, PASSWORD, local=True)


def picture() -> bytes:
    import cv2
    import numpy as np

    return bytes(cv2.imencode(".jpg", np.full((96, 128, 3), 200, np.uint8))[1])


def test_a_camera_is_looked_at_before_it_is_added() -> None:
    with motion_jpeg([picture()] * 50, fps=25) as address:
        seen = look_at(address, local=True)
    assert seen[:2] == (128, 96)
    assert seen.jpeg.startswith(b"\xff\xd8")
    with pytest.raises(VideoError) as told:
        look_at("rtsp://me:s3cret@192.0.2.1:9/x", within=0.5)
    assert "s3cret" not in str(told.value)
    with pytest.raises(VideoError, match="this machine"):
        look_at("http://me:s3cret@127.0.0.1:9/x")


def stored(console: Console, camera: str) -> Any:
    with console.database.session() as session:
        return console.vault.open(session.get_one(CameraRow, camera).secret_address)


def test_user_and_password_are_given_apart(console: Console) -> None:
    values = {"address": "rtsp://10.0.4.11/main", "username": "me", "password": "p@ss/word"}
    camera = administration.add_camera(console, "admin", NewCamera(name="Gate", **values))
    assert stored(console, "gate") == "rtsp://me:p%40ss%2Fword@10.0.4.11/main"
    assert camera.shown_address == "rtsp://10.0.4.11/main"
    administration.change_camera(console, "admin", "gate", CameraChanges(**{"password": "n3w"}))
    assert stored(console, "gate") == "rtsp://me:n3w@10.0.4.11/main"
    administration.change_camera(console, "admin", "gate", CameraChanges(name="North"))
    assert stored(console, "gate") == "rtsp://me:n3w@10.0.4.11/main"


def test_a_camera_is_found_looked_at_and_added(
    empty_site: Site, look: dict[str, Any], device: OnvifDevice
) -> None:
    visit = empty_site.visit("/cameras/new", **look)
    page = visit.page
    with motion_jpeg([picture()] * 500, fps=25) as address:
        device.uri = address.replace("&", "&amp;")
        page.get_by_label("User").fill(USER)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_label("The camera is on this machine").check()
        page.get_by_role("button", name="Find cameras").press("Enter")
        expect(page.locator("#finder-said")).to_have_text("1 camera answered.")
        page.get_by_role("button", name="Streams: North gate").press("Enter")
        expect(page.locator("#found li")).to_have_count(2)
        expect(page.locator("#found li").last).to_contain_text("640 x 360, H264, enough")
        expect(page.get_by_role("button", name="Choose: North gate: Sub")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Address", exact=True)).to_have_value(address)
        expect(page.get_by_role("button", name="Test picture")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#finder-said")).to_have_text("It shows 128 x 96 pixels.")
        expect(page.locator("#test-picture")).to_be_visible()
        assert visit.violations(["wcag2a", "wcag2aa"]) == []
        assert visit.overflow() <= 0
    page.get_by_role("button", name="Add the camera").click()
    page.wait_for_url("**/cameras/north-gate?said=added")
    assert PASSWORD not in page.content()
    assert stored(empty_site.console, "north-gate").startswith("http://viewer:p%40ss")


def test_the_usual_address_of_a_maker_is_filled_in(empty_site: Site) -> None:
    page = empty_site.visit("/cameras/new").page
    page.get_by_label("Address", exact=True).fill("10.0.4.11")
    page.get_by_label("Usual address of a maker").select_option("Hikvision")
    expect(page.get_by_label("Address", exact=True)).to_have_value(
        "rtsp://10.0.4.11/Streaming/Channels/102"
    )


def test_makers_have_addresses_that_can_be_opened(tmp_path: Path) -> None:
    for paths in onvif.PATHS.values():
        for path in paths:
            onvif._split(f"rtsp://10.0.4.11{path}")
    assert json.dumps(onvif.PATHS)
