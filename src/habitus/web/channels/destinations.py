"""Where nothing is sent: the local link, where clouds keep a machine's secrets.

Every channel asks here, by the host that it is given and again by where that leads.
"""

import ipaddress
import socket
from typing import Any

from habitus.errors import InvalidInputError


def check_destination(host: str, parameter: str, *, look_up: bool = False) -> None:
    """Raise if a host is an address of the local link, however it is written.

    A name is looked up only if asked for, as before something is sent; one that is not known now
    is let through, as nothing can be sent to it.

    >>> check_destination("mqtt.example.org", "host")
    >>> check_destination("0xA9FEA9FE", "host")
    Traceback (most recent call last):
    habitus.errors.InvalidInputError: nothing is sent to an address of the local link \
(169.254.169.254): give one of a machine
    """
    try:
        numeric = 0 if look_up else socket.AI_NUMERICHOST
        places = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM, flags=numeric)
    except (OSError, UnicodeError):
        return
    for *_, (address, *_) in places:
        if _is_link_local(str(address)):
            raise InvalidInputError(
                f"nothing is sent to an address of the local link ({address}): give one of a "
                "machine",
                parameter=parameter,
            )


def checked_host(host: object, of: str) -> str:
    """Return the name or the address of a server; raise unless it is one to send to."""
    if not isinstance(host, str) or not host or any(letter in host for letter in " /@"):
        raise InvalidInputError(
            f"host of a {of} must be a name or an address, such as {of.split()[0]}.example.org",
            parameter="host",
        )
    check_destination(host, "host")
    return host


def is_on(settings: dict[str, Any], name: str) -> bool:
    """Return whether a setting is switched on, as by a form, which says yes or no."""
    return settings.get(name, "no") not in (None, False, "", "no")


def checked_port(port: object, of: str) -> int:
    """Return a port, which may be a text of a form; raise if there is none of that number."""
    port = int(port) if isinstance(port, str) and port.isdecimal() else port
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
        raise InvalidInputError(
            f"port of a {of} must be from 1 to 65535, found {port!r}", parameter="port"
        )
    return port


def _is_link_local(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_link_local
