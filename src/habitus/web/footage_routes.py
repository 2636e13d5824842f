"""The last minutes of a camera, played in the page: ten minutes back, and now."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from habitus.web.answers import Moment, RecentFootage
from habitus.web.camera_routes import OneCamera
from habitus.web.rendering import VIDEO
from habitus.web.security import ThisConsole, Viewer

api = APIRouter(prefix="/api/cameras", tags=["cameras"])
LATEST = 1e11
"""A moment after all others."""


@api.get("/{camera}/recent")
def show_recent(console: ThisConsole, actor: Viewer, camera: OneCamera) -> RecentFootage:
    """Show from when to when there are pictures that can be played."""
    from habitus.site.recent_footage import recorded_spans  # PyAV, once somebody looks

    recent = console.settings.camera_folder(camera.id) / "recent"
    return RecentFootage(spans=recorded_spans(recent))


@api.get(
    "/{camera}/recent.mp4",
    response_class=Response,
    responses={
        **VIDEO,
        204: {"description": "There is nothing that a browser plays, or nothing follows yet."},
    },
)
def play_recent(
    console: ThisConsole,
    actor: Viewer,
    camera: OneCamera,
    start: Moment = LATEST,
    after: Annotated[str, Query(pattern=r"^(\d{15}-\d{1,9})?$")] = "",
) -> Response:
    """Play some seconds as fragmented MP4, as the camera sent them.

    They begin with the last key frame before `start`, or with the newest one; or follow the answer
    whose X-Last is given as `after`. X-Start and X-End are when its first frame and its last are
    shown; times in the file count from the epoch.
    """
    from habitus.site.recent_footage import stretch_after, stretch_at

    recent = console.settings.camera_folder(camera.id) / "recent"
    stretch = stretch_after(recent, after) if after else stretch_at(recent, start)
    if stretch is None:
        return Response(status_code=204)
    headers = {
        "X-Start": f"{stretch.start:.3f}",
        "X-End": f"{stretch.end:.3f}",
        "X-Last": stretch.last,
    }
    return Response(stretch.data, 200, headers, f'video/mp4; codecs="{stretch.codec}"')
