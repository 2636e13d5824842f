"""E-mail and the many services that Apprise knows, by one address each."""

import asyncio
from abc import abstractmethod
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any

from habitus.errors import InvalidInputError
from habitus.web.channels.destinations import check_destination
from habitus.web.channels.notification import DeliveryError, Notification, Sender
from habitus.web.database import Channel

if TYPE_CHECKING:
    from apprise import Apprise

    from habitus.web.server import Console

TIMEOUT = 60.0
"""Seconds that a service has to take a message."""


def shown(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the name of the service, and its address without secrets."""
    url = settings.get("url")
    services = _service(url if isinstance(url, str) else "")
    _check_hosts(services)
    service: Any = services[0]
    address = service.url(privacy=True).partition("?")[0]
    return {"service": str(service.service_name), "url": address}


def _service(url: str) -> "Apprise":
    # Apprise and its plugins take a third of a second and 25 MB: only who sends by it waits.
    from apprise import Apprise, AppriseAsset

    service = Apprise(asset=AppriseAsset(app_id="habitus", app_desc="habitus", app_url=""))
    if not url.strip() or not service.add(url.strip()) or len(service) != 1:
        raise InvalidInputError(
            "not an address that Apprise knows, such as mailto://user:password@example.org; this "
            "machine may also lack a package that the service needs",
            parameter="url",
        )
    return service


def _check_hosts(service: "Apprise", *, look_up: bool = False) -> None:
    """Raise if the address of a service leads where nothing is sent."""
    for name in ("host", "smtp_host"):
        if isinstance(host := getattr(service[0], name, None), str) and host:
            check_destination(host, "url", look_up=look_up)


class ThreadSender(Sender):
    """Sends in a thread of its own, which may wait.

    One that takes too long is a failure, but it may still succeed: its message is not sent again
    before it ended.
    """

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._under_way: tuple[str, Future[str]] | None = None

    @abstractmethod
    def notify(self, notification: Notification) -> str:
        """Return why it could not be sent; nothing if it was."""

    async def send(self, notification: Notification) -> None:
        """Return once the receiver took it."""
        if self._under_way is None or self._under_way[0] != notification.key:
            self._under_way = (notification.key, _in_thread(self.notify, notification))
        attempt = asyncio.wrap_future(self._under_way[1])
        done, _ = await asyncio.wait({attempt}, timeout=TIMEOUT)
        if not done:
            raise DeliveryError(f"no answer within {TIMEOUT:g} s")
        self._under_way = None
        if fault := attempt.result():
            raise DeliveryError(fault)


class ServiceSender(ThreadSender):
    """Sends by one service."""

    def __init__(self, console: "Console", channel: Channel) -> None:
        super().__init__(console)
        self._service = _service(console.vault.open(channel.secret_settings)["url"])

    def notify(self, notification: Notification) -> str:
        """Return why it could not be sent; nothing if it was."""
        try:
            _check_hosts(self._service, look_up=True)
        except InvalidInputError as error:
            return str(error)
        settings = self._console.settings
        picture = notification.picture(settings)
        result = self._service.notify(
            title=notification.title(),
            body=notification.text(settings),
            body_format="text",
            attach=str(picture) if picture else None,
        )
        if result:
            return ""
        faults = [entry.message for entry in result.logs() if entry.level in ("WARNING", "ERROR")]
        return faults[-1] if faults else "the service did not take the message"


def _in_thread(function: Any, *arguments: Any) -> "Future[str]":
    """Run a function in a thread that does not keep the process from ending."""
    future: Future[str] = Future()

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:  # it is raised again where the result is asked for
            future.set_exception(error)

    Thread(target=run, daemon=True, name="sender").start()
    return future
