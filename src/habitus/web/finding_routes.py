"""Finding a camera before it is added: devices of the network, their streams, a picture."""

from fastapi import APIRouter, Response

from habitus.site.probe import look
from habitus.web import administration, onvif
from habitus.web.answers import DeviceRequest, PictureRequest
from habitus.web.onvif import DeviceStream, FoundDevice
from habitus.web.rendering import JPEG
from habitus.web.security import Admin, ThisConsole
from habitus.web.store import write_audit

api = APIRouter(prefix="/api/finding", tags=["cameras"])


@api.post("/devices")
def find_devices(console: ThisConsole, actor: Admin) -> list[FoundDevice]:
    """Ask the network for cameras that speak ONVIF."""
    found = onvif.discover()
    with console.database.transaction() as session:
        write_audit(session, actor.name, "cameras looked for", f"{len(found)} found")
    return found


@api.post("/streams")
def find_streams(actor: Admin, wanted: DeviceRequest) -> list[DeviceStream]:
    """List the streams of a device, the largest first."""
    user, password = wanted.username, wanted.password
    return onvif.streams(wanted.device, user, password, local=wanted.local)


@api.post("/picture", response_class=Response, responses=JPEG)
def look_at_camera(actor: Admin, wanted: PictureRequest) -> Response:
    """Show a picture of a camera that is not added yet."""
    address = administration.with_user(wanted.address, wanted.username, wanted.password)
    seen = look(address, local=wanted.local)
    size = {"X-Size": f"{seen.width}x{seen.height}"}
    return Response(seen.jpeg, media_type="image/jpeg", headers=size)
