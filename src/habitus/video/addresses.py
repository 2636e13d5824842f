"""Which addresses may be opened for somebody else: other machines' streams alone.

An address that somebody gives on a page is opened by the server: without a check it could read
files of the server, and speak to services that only the server reaches.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from habitus.errors import InvalidInputError, VideoError

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "srt")
"""Kinds of addresses that are opened on other machines."""
LOCAL_SCHEMES = ("file", "ftp", "rtp", "tcp", "tls", "udp")
"""Kinds that an admin has to allow."""
LONGEST = 2000
"""Characters of an address, at most."""

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# Networks whose addresses hold one of IPv4 in their last four bytes: mapped, compatible, NAT64.
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::/96", "64:ff9b::/96")))


def check_address(address: str, *, local: bool = False) -> None:
    """Raise unless a stream may be opened; to be called each time before it is.

    Parameters
    ----------
    address
        Where the video comes from, with credentials.
    local
        Whether an admin allowed files and services of this machine, and streams that are sent to
        it (udp, rtp).

    Raises
    ------
    InvalidInputError
        If it may not be opened. Nothing of the address but its host is shown.
    VideoError
        If its host is not known now, so that nobody can say.

    Examples
    --------
    >>> check_address("rtsp://me:secret@127.0.0.1/1")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: 127.0.0.1 is this machine: an admin may allow local \
addresses for this camera
    >>> check_address("/etc/passwd")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: an address must start with rtsp://, rtsps://, http://, \
https://, rtmp://, rtmps://, srt://: an admin may allow local files for this camera
    """
    _check_text(address)
    scheme, separator, _ = address.partition("://")
    if local:
        if separator and scheme.lower() not in (*SCHEMES, *LOCAL_SCHEMES):
            raise _refused(f"addresses of the kind {scheme[:20]} are not opened")
        return
    if scheme.lower() not in SCHEMES or not separator:
        allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise _refused(
            f"an address must start with {allowed}: an admin may allow local files for this camera"
        )
    host = _host(address)
    for found in _resolved(host):
        reason = _reason_against(found)
        if reason is not None:
            raise _refused(
                f"{host} is {reason}: an admin may allow local addresses for this camera"
            )


def _check_text(address: str) -> None:
    """Raise if two programs could understand an address differently, or nobody can."""
    if not address or len(address) > LONGEST:
        raise _refused(f"an address has 1 to {LONGEST} characters, found {len(address)}")
    if any(char <= " " or char == "\x7f" for char in address) and "://" in address:
        raise _refused("an address has no spaces: write %20")
    if not address.isprintable():
        raise _refused("an address has only characters that can be shown")


def _host(address: str) -> str:
    try:
        host = urlsplit(address).hostname
        urlsplit(address).port  # noqa: B018 - raises where there can be none
    except ValueError:
        host = None
    if not host:
        raise _refused(
            "the host in the address cannot be understood: / ? # and @ in a user or password are "
            "written as %2F %3F %23 and %40"
        )
    return host


def _resolved(host: str) -> list[IPAddress]:
    """Return all addresses of a host."""
    if f".{host.rstrip('.')}".endswith(".localhost"):  # whatever the resolver says
        return [ipaddress.IPv4Address(0x7F000001)]
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise VideoError(f"{host}: the host is not known") from error
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _reason_against(address: IPAddress) -> str | None:
    """Return why an address is not one of another machine; None if it is one."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_unspecified or address.is_loopback:
            return "this machine"
        if any(address in network for network in _EMBEDDING):
            return _reason_against(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.sixtofour is not None:
            return _reason_against(address.sixtofour)
        if address.teredo is not None:
            return _reason_against(address.teredo[1])
    if address.is_loopback or address.is_unspecified or _is_own(address):
        return "this machine"
    if address.is_link_local:
        return "an address of the link, where services of this machine's host are"
    if address.is_multicast:
        return "an address of many machines"
    if isinstance(address, ipaddress.IPv4Address) and (
        address.is_reserved or not int(address) >> 24
    ):
        return "not an address of a machine"
    return None


def _is_own(address: IPAddress) -> bool:
    """Return whether an address is one of this machine: only then can it be bound to."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as own:
            own.bind((str(address), 0))
    except OSError:
        return False
    return True


def _refused(reason: str) -> InvalidInputError:
    return InvalidInputError(reason, parameter="address")
