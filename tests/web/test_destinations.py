"""Nothing is sent to the local link, by any channel and however its address is written."""

from typing import Any

import pytest

from habitus import InvalidInputError
from habitus.web import channels
from habitus.web.channels import DeliveryError, destinations
from habitus.web.database import Channel
from habitus.web.server import Console
from reference.streams import free_port
from reference.telling import Receiver, receiver


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("webhook", {"url": "http://169.254.169.254/latest/meta-data/"}),
        ("webhook", {"url": "http://[fe80::1]/"}),
        ("webhook", {"url": "http://[::ffff:169.254.169.254]/"}),
        ("webhook", {"url": "http://0xA9FEA9FE/"}),
        ("mqtt", {"host": "169.254.169.254"}),
        ("mqtt", {"host": "fe80::1"}),
        ("mqtt", {"host": "2852039166"}),
        ("apprise", {"url": "json://169.254.169.254/latest/"}),
        ("apprise", {"url": "mailto://user:pass@example.org?smtp=169.254.169.254"}),
    ],
)
def test_addresses_of_the_local_link_are_refused(kind: str, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="local link") as told:
        channels.check(kind, settings)
    assert told.value.parameter in ("url", "host")


def test_names_that_lead_to_the_local_link_are_refused(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a real connection, the peer is taken for one that is refused.
    monkeypatch.setattr(destinations, "_is_link_local", lambda address: address == "127.0.0.1")

    def send(kind: str, settings: dict[str, Any]) -> None:
        sealed = console.vault.seal(settings)
        channel = Channel(id=1, kind=kind, secret_settings=sealed, cameras=[])
        with pytest.raises(DeliveryError, match=r"local link \(127.0.0.1\)"):
            channels.send_test(console, channel)

    with receiver() as hook:
        assert isinstance(hook, Receiver)
        send("webhook", {"url": hook.url.replace("127.0.0.1", "localhost")})
        send("apprise", {"url": hook.url.replace("http://127.0.0.1", "json://localhost")})
        assert hook.posted == []
    mail = {"from": "a@example.org", "to": "b@example.org"}
    send("mail", {"host": "localhost", "port": free_port(), **mail})
    send("mqtt", {"host": "localhost", "port": free_port()})
