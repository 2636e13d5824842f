"""Cameras that are found by themselves: ONVIF's discovery, and the streams that a device has.

Discovery is one message to all of the network (WS-Discovery) and the answers to it. A device is
asked by SOAP for its media service, its profiles and the address of each one's stream; user and
password go along as a digest (WS-Security). Whatever a device answers, it is asked at its own host
alone, and its streams are taken to be there.
"""

import base64
import hashlib
import os
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

import habitus
from habitus.errors import InvalidInputError, VideoError

GROUP = ("239.255.255.250", 3702)
"""Where devices listen for questions."""
WAIT = 2.5
"""Seconds that devices have to answer."""
TIMEOUT = 5.0
"""Seconds that a device has for each answer."""
MOST_DEVICES, MOST_PROFILES, MOST_BYTES = 200, 16, 1 << 20
PROBE = """<?xml version="1.0" encoding="UTF-8"?>
<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"
 xmlns:w="http://schemas.xmlsoap.org/ws/2004/08/addressing"
 xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"
 xmlns:n="http://www.onvif.org/ver10/network/wsdl">
<e:Header><w:MessageID>uuid:{id}</w:MessageID>
<w:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</w:To>
<w:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</w:Action></e:Header>
<e:Body><d:Probe><d:Types>n:NetworkVideoTransmitter</d:Types></d:Probe></e:Body></e:Envelope>"""
ENVELOPE = """<?xml version="1.0" encoding="UTF-8"?>
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>{header}</s:Header>
<s:Body>{body}</s:Body></s:Envelope>"""
_WSS = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-"
SECURITY = f"""<w:Security xmlns:w="{_WSS}wssecurity-secext-1.0.xsd" s:mustUnderstand="1">
<w:UsernameToken><w:Username>{{user}}</w:Username>
<w:Password Type="{_WSS}username-token-profile-1.0#PasswordDigest">{{digest}}</w:Password>
<w:Nonce EncodingType="{_WSS}soap-message-security-1.0#Base64Binary">{{nonce}}</w:Nonce>
<u:Created xmlns:u="{_WSS}wssecurity-utility-1.0.xsd">{{created}}</u:Created>
</w:UsernameToken></w:Security>"""
DEVICE, MEDIA = "http://www.onvif.org/ver10/device/wsdl", "http://www.onvif.org/ver10/media/wsdl"
PATHS = {
    "Axis": ("/axis-media/media.amp", "/axis-media/media.amp?resolution=640x360"),
    "Bosch": ("/?inst=1", "/?inst=2"),
    "Dahua, Amcrest": (
        "/cam/realmonitor?channel=1&subtype=0",
        "/cam/realmonitor?channel=1&subtype=1",
    ),
    "Foscam": (":88/videoMain", ":88/videoSub"),
    "Hanwha, Samsung": ("/profile2/media.smp", "/profile3/media.smp"),
    "Hikvision": ("/Streaming/Channels/101", "/Streaming/Channels/102"),
    "Reolink": ("/h264Preview_01_main", "/h264Preview_01_sub"),
    "TP-Link Tapo, VIGI": ("/stream1", "/stream2"),
    "Ubiquiti": (":7447/s0", ":7447/s1"),
    "Uniview": ("/media/video1", "/media/video2"),
    "Vivotek": ("/live1s1.sdp", "/live1s2.sdp"),
}
"""By maker: what follows the host in the addresses of the main and the smaller stream."""


@dataclass(frozen=True, order=True)
class OnvifDevice:
    """A device that answered."""

    name: str
    hardware: str
    address: str
    """Of its device service."""


@dataclass(frozen=True)
class DeviceStream:
    """A stream that a device has."""

    name: str
    address: str
    """Without user and password."""
    width: int
    height: int
    encoding: str


def discover(wait: float = WAIT) -> list[OnvifDevice]:
    """Return the devices that answer within some seconds, by name."""
    found: dict[str, OnvifDevice] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        for number, _ in socket.if_nameindex():
            chosen = struct.pack("@4s4si", bytes(4), bytes(4), number)
            with suppress(OSError):  # an interface that is down, or without IPv4
                asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)
                asking.sendto(PROBE.format(id=uuid.uuid4()).encode(), GROUP)
        until = time.monotonic() + wait
        while (left := until - time.monotonic()) > 0 and len(found) < MOST_DEVICES:
            asking.settimeout(left)
            with suppress(OSError, InvalidInputError):
                for device in _matches(asking.recv(65_535)):
                    found.setdefault(device.address, device)
    return sorted(found.values())


def _matches(answer: bytes) -> Iterator[OnvifDevice]:
    for match in _named(_parsed(answer), "ProbeMatch"):
        scopes = dict(
            scope.removeprefix("onvif://www.onvif.org/").split("/", 1)
            for scope in _text(match, "Scopes").split()
            if scope.startswith(("onvif://www.onvif.org/name/", "onvif://www.onvif.org/hardware/"))
        )
        addresses = [one for one in _text(match, "XAddrs").split() if one.startswith("http")]
        for address in addresses[:1]:
            host = _split(address).hostname or ""
            name, hardware = (unquote(scopes.get(key, "")) for key in ("name", "hardware"))
            yield OnvifDevice(_shown(name) or host, _shown(hardware), address)


def device_address(host: str) -> str:
    """Return the address of the device service of a host, if nothing but the host is known.

    >>> device_address("10.0.4.11"), device_address("http://camera:8080/onvif/device_service")
    ('http://10.0.4.11/onvif/device_service', 'http://camera:8080/onvif/device_service')
    """
    return host if "://" in host else f"http://{host}/onvif/device_service"


def streams(
    address: str, user: str = "", password: str = "", *, local: bool = False
) -> list[DeviceStream]:
    """Return the streams of a device, the largest first.

    Parameters
    ----------
    address
        Of its device service, as `discover` gives it, or its host alone.
    user, password
        Whom the device knows.
    local
        Whether it may be this machine, as of `habitus.check_address`.

    Raises
    ------
    InvalidInputError
        If the address may not be asked, or what is there is no such device.
    """
    device = Device(device_address(address), user, password, local=local)
    found = []
    for profile in list(_named(device.ask(MEDIA, "GetProfiles"), "Profiles"))[:MOST_PROFILES]:
        token = profile.get("token", "")
        size = next(_named(profile, "VideoEncoderConfiguration"), None)
        if size is None:
            continue
        wanted = (
            '<StreamSetup xmlns:o="http://www.onvif.org/ver10/schema"><o:Stream>RTP-Unicast'
            "</o:Stream><o:Transport><o:Protocol>RTSP</o:Protocol></o:Transport></StreamSetup>"
            f"<ProfileToken>{escape(token)}</ProfileToken>"
        )
        uri = _text(device.ask(MEDIA, "GetStreamUri", wanted), "Uri")
        width, height = (_number(_text(size, name)) for name in ("Width", "Height"))
        name = _shown(_text(profile, "Name")) or _shown(token)
        encoding = _shown(_text(size, "Encoding"))
        found.append(DeviceStream(name, device.at_host(uri), width, height, encoding))
    return sorted(found, key=lambda one: -one.width * one.height)


class Device:
    """A device that is asked by SOAP, at its own host alone."""

    def __init__(self, address: str, user: str, password: str, *, local: bool) -> None:
        try:
            habitus.check_address(address, local=local)
        except VideoError as error:
            raise InvalidInputError(str(error), parameter="device") from error
        self._user, self._password = user, password
        self._ahead = 0.0
        """Seconds that its clock is ahead: a digest of another time is refused."""
        self._services = {DEVICE: _split(address)}
        if self._services[DEVICE].scheme not in ("http", "https"):
            raise InvalidInputError("a device is asked by http or https", parameter="device")
        self._ahead = self._clock() - time.time()
        wanted = "<Category>Media</Category>"
        media = next(_named(self.ask(DEVICE, "GetCapabilities", wanted), "Media"), None)
        place = _text(media, "XAddr") if media is not None else ""
        self._services[MEDIA] = _split(self.at_host(place or address))

    def at_host(self, address: str) -> str:
        """Return an address that the device named, at the host that it was asked at."""
        own, there = self._services[DEVICE], _split(address)
        host = f"[{own.hostname}]" if ":" in str(own.hostname) else str(own.hostname)
        place = f"{host}:{there.port}" if there.port else host
        return there._replace(netloc=place).geturl()

    def ask(self, service: str, action: str, inside: str = "", *, known: bool = True) -> Any:
        """Return the answer to a question; raise with what the device says against it."""
        header = self._proof() if known and self._user else ""
        body = f'<{action} xmlns="{service}">{inside}</{action}>'
        raw = _post(self._services[service], ENVELOPE.format(header=header, body=body).encode())
        answer = _parsed(raw)
        if fault := next(_named(answer, "Fault"), None):
            said = _shown(_text(fault, "Text") or _text(fault, "faultstring"))
            raise InvalidInputError(
                f"the device refuses {action}: {said or 'it does not say why'}; check user and "
                "password",
                parameter="username",
            )
        return answer

    def _clock(self) -> float:
        """Return the device's time; this machine's where it does not say it."""
        try:
            answer = self.ask(DEVICE, "GetSystemDateAndTime", known=False)
            utc = next(_named(answer, "UTCDateTime"))
            names = ("Year", "Month", "Day", "Hour", "Minute", "Second")
            return datetime(*(_number(_text(utc, name)) for name in names), tzinfo=UTC).timestamp()  # type: ignore[misc, arg-type]
        except (StopIteration, ValueError):
            return time.time()

    def _proof(self) -> str:
        nonce = os.urandom(16)
        created = datetime.fromtimestamp(time.time() + self._ahead, UTC)
        text = created.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        digest = hashlib.sha1(nonce + text.encode() + self._password.encode())  # noqa: S324 - theirs
        return SECURITY.format(
            user=escape(self._user),
            digest=base64.b64encode(digest.digest()).decode(),
            nonce=base64.b64encode(nonce).decode(),
            created=text,
        )


def _post(address: SplitResult, body: bytes) -> bytes:
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(str(address.hostname), address.port, timeout=TIMEOUT)
    target = (address.path or "/") + (f"?{address.query}" if address.query else "")
    try:
        headers = {"Content-Type": "application/soap+xml; charset=utf-8"}
        connection.request("POST", quote(target, safe="/?&=%:;,+~"), body, headers)
        answer = connection.getresponse()
        raw = answer.read(MOST_BYTES)
    except (OSError, HTTPException, UnicodeError) as error:
        reason = str(error) or type(error).__name__
        raise InvalidInputError(
            f"{address.hostname} does not answer: {reason}", parameter="device"
        ) from error
    finally:
        connection.close()
    if answer.status in (401, 403):
        raise InvalidInputError(
            f"{address.hostname} refuses user and password ({answer.status})", parameter="username"
        )
    return raw


def _parsed(raw: bytes) -> Any:
    try:
        return fromstring(raw, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise InvalidInputError(
            "what answers is no camera that speaks ONVIF: give its stream's address",
            parameter="device",
        ) from None


def _named(element: Any, name: str) -> Iterator[Any]:
    """Return the elements of a name, of any namespace: devices differ in them."""
    return (one for one in element.iter() if str(one.tag).rpartition("}")[2] == name)


def _text(element: Any, name: str) -> str:
    found = next(_named(element, name), None)
    return "" if found is None else (found.text or "").strip()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _shown(text: str) -> str:
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:80]


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname:
        raise InvalidInputError("the device names an address without a host", parameter="device")
    return parts
