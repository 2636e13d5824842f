"""The console on a phone or desk: what installs it there, and notifications of its browser."""

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import FileResponse
from pydantic import Field

from habitus.web import administration
from habitus.web.answers import ChannelDetails, Name, RequestBody, ResponseBody
from habitus.web.channels import push
from habitus.web.security import Everyone, ThisConsole, Viewer

pages = APIRouter()
api = APIRouter(prefix="/api/push", tags=["channels"])
STATIC = Path(__file__).parent / "static"


class ServerKey(ResponseBody):
    """What a browser subscribes with."""

    key: str = Field(description="applicationServerKey of the browser's subscription.")


class SubscribedBrowser(RequestBody):
    """A browser, by the address that its push service gave it."""

    endpoint: Annotated[str, Field(max_length=2000)]


class NewBrowser(SubscribedBrowser):
    """A browser that is to be sent notifications, as its subscription has it."""

    p256dh: Annotated[str, Field(max_length=200)]
    auth: Annotated[str, Field(max_length=100)]
    name: Name = Field(examples=["Firefox on Android"])


@pages.get("/manifest.webmanifest")
def show_manifest(actor: Everyone) -> FileResponse:
    """Show what a phone installs the console by."""
    return FileResponse(STATIC / "manifest.webmanifest", media_type="application/manifest+json")


@pages.get("/worker.js")
def show_worker(actor: Everyone) -> FileResponse:
    """Show what runs in a browser while no page is open; all pages are below its address."""
    headers = {"Cache-Control": "no-cache"}
    return FileResponse(STATIC / "worker.js", media_type="text/javascript", headers=headers)


@api.get("")
def show_key(console: ThisConsole, actor: Viewer) -> ServerKey:
    """Show what a browser subscribes with."""
    return ServerKey(key=push.public_key(console))


@api.post("", response_model=ChannelDetails, status_code=201)
def subscribe(console: ThisConsole, actor: Viewer, device: NewBrowser) -> object:
    """Send a browser notifications from now on; it is sent a test message first."""
    return administration.add_device(console, actor, **device.model_dump())


@api.delete("", status_code=204)
def unsubscribe(console: ThisConsole, actor: Viewer, device: SubscribedBrowser) -> None:
    """Send a browser no notifications any more."""
    administration.remove_device(console, actor.name, device.endpoint)
