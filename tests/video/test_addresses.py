"""Addresses that a camera may have, and those that would make the server a tool of others."""

import socket

import pytest

from habitus.errors import InvalidInputError, VideoError
from habitus.video import Reader, Source
from habitus.video.addresses import LOCAL_SCHEMES, SCHEMES, check_address
from habitus.video.opening import PROTOCOLS
from reference.web import HERE, playlist, site

OTHER_MACHINES = [
    "rtsp://me:secret@192.0.2.1/main",
    "rtsps://198.51.100.7:322/1",
    "http://10.0.4.11/video",
    "https://[2001:db8::1]:8443/video.m3u8",
    "rtmp://192.168.7.3/live",
    "srt://172.16.0.9:9000",
    "rtsp://me:pa%40ss@10.1.2.3/x?channel=1",
]
THIS_MACHINE = [
    "rtsp://127.0.0.1/x",
    "http://127.1/x",
    "http://2130706433/x",
    "http://0x7f000001/x",
    "http://0177.0.0.1/x",
    "http://localhost:8420/api",
    "http://localhost./api",
    "http://[::1]/x",
    "http://[::]/x",
    "http://0.0.0.0/x",
    "http://0/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://[::ffff:7f00:1]/x",
    "http://[::127.0.0.1]/x",
    "http://[64:ff9b::127.0.0.1]/x",
    "http://[2002:7f00:0001::]/x",
    "http://me@127.0.0.1/x",
    "http://192.0.2.1:80@127.0.0.1/x",
    "rtsp://192.0.2.1@evil@127.0.0.1/x",
    "HTTP://127.0.0.1/x",
]
OTHER_PLACES = [
    "http://169.254.169.254/latest/meta-data",
    "http://[::ffff:169.254.169.254]/x",
    "http://[fe80::1]/x",
    "http://[fe80::1%25eth0]/x",
    "rtsp://224.0.0.1/x",
    "rtsp://[ff02::1]/x",
    "rtsp://255.255.255.255/x",
    "rtsp://240.0.0.1/x",
    "rtsp://0.1.2.3/x",
]
NOT_STREAMS = [
    "/etc/passwd",
    "etc/passwd",
    "-",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "concat:/etc/passwd",
    "pipe:0",
    "pipe://0",
    "ftp://192.0.2.1/x",
    "gopher://192.0.2.1/x",
    "udp://192.0.2.1:5000",
    "rtp://192.0.2.1:5000",
    "tcp://192.0.2.1:22",
    "subfile,,start,0,end,9,,:/etc/passwd",
    "data:video/mp4;base64,AAAA",
    "crypto+http://192.0.2.1/x",
    "http:/192.0.2.1/x",
    "://192.0.2.1",
    "",
]
NOT_UNDERSTOOD = [
    "http:///x",
    "http://[::1/x",
    "http://host:port/x",
    "http://192.0.2.1 /x",
    "http://192.0.2.1/\r\nHost: x",
    "http://192.0.2.1\t/x",
    "http://192.0.2.1/\x00",
    "http://192.0.2.1/" + "x" * 3000,
]


@pytest.mark.parametrize("address", OTHER_MACHINES)
def test_streams_of_other_machines_are_allowed(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize("address", THIS_MACHINE)
def test_this_machine_is_refused_in_every_spelling(address: str) -> None:
    with pytest.raises(InvalidInputError, match="this machine") as refused:
        check_address(address)
    assert refused.value.parameter == "address"


@pytest.mark.parametrize("address", OTHER_PLACES)
def test_addresses_of_no_other_machine_are_refused(address: str) -> None:
    with pytest.raises((InvalidInputError, VideoError)):
        check_address(address)


@pytest.mark.parametrize("address", NOT_STREAMS + NOT_UNDERSTOOD)
def test_files_other_protocols_and_nonsense_are_refused(address: str) -> None:
    with pytest.raises(InvalidInputError):
        check_address(address)


def test_own_addresses_of_the_network_are_refused() -> None:
    """Those of the network's cards too, which are not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no network")
        own = probe.getsockname()[0]
    with pytest.raises(InvalidInputError, match="this machine"):
        check_address(f"rtsp://{own}/x")


def test_a_host_that_is_not_known_is_another_error() -> None:
    with pytest.raises(VideoError, match="not known"):
        check_address("rtsp://no-such-camera.invalid/x")


@pytest.mark.parametrize(
    "address", ["rtsp://127.0.0.1/x", "/dev/video0", "videos/a.mp4", "udp://0.0.0.0:5000"]
)
def test_an_admin_may_allow_local_addresses(address: str) -> None:
    check_address(address, local=True)


def test_even_local_addresses_are_of_known_kinds() -> None:
    with pytest.raises(InvalidInputError, match="gopher"):
        check_address("gopher://127.0.0.1/x", local=True)


@pytest.mark.parametrize("address", THIS_MACHINE + NOT_UNDERSTOOD)
def test_errors_show_no_password(address: str) -> None:
    scheme, separator, rest = address.partition("://")
    with pytest.raises(InvalidInputError) as refused:
        check_address(f"{scheme}{separator}me:hunter2@{rest}")
    assert "hunter2" not in str(refused.value)


def test_all_kinds_that_can_be_opened_are_known() -> None:
    assert {*SCHEMES, *LOCAL_SCHEMES, "pipe"} == set(PROTOCOLS)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/x", "rtsp://localhost/x", "a.mp4"])
def test_a_source_of_another_machine_is_checked_when_it_is_opened(address: str) -> None:
    with pytest.raises(InvalidInputError):
        Reader(Source(address, elsewhere=True))


def test_what_a_source_leads_to_is_checked_too() -> None:
    """As where a name leads to this machine by the time that a part of a playlist is opened."""
    from habitus.video.own_host import OwnHost

    with site(HERE) as here:
        here.pages["/a.m3u8"] = playlist("a.ts")
        source = Source(here.address("/a.m3u8"), elsewhere=True)
        with pytest.raises(InvalidInputError, match="this machine"):
            OwnHost(source).check(here.address("/a.ts"))
    assert here.asked == []
