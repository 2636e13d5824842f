"""Pictures and clips, as files that a browser may ask for in parts."""

from pathlib import Path
from typing import Any

from fastapi.responses import FileResponse

from habitus.web.http_errors import NotFoundError

JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {}}}}
VIDEO: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/mp4": {}}},
    206: {"description": "A part, as Range asks for it.", "content": {"video/mp4": {}}},
}
# Seconds that a browser keeps what will not change.
KEPT = 3600


def file_answer(path: Path, media: str, what: str, *, lasting: bool = False) -> FileResponse:
    """Return a file.

    Parameters
    ----------
    path
        The file.
    media
        Its media type.
    what
        Its name for a person.
    lasting
        Whether it will not change, so that a browser may keep it.

    Raises
    ------
    NotFoundError
        If it is not there, or not any more.
    """
    if ".." in path.parts or not path.is_file():
        raise NotFoundError(f"the {what} is not there, or not any more")
    headers = {"Cache-Control": f"private, max-age={KEPT}"} if lasting else {}
    return FileResponse(path, media_type=media, headers=headers)
