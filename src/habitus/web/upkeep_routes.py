"""Backup, restore and log: what keeps the console going, on its pages and by its API."""

import os
import secrets
import tempfile
import time
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from habitus.web import backup, uploads
from habitus.web.answers import HttpError
from habitus.web.rendering import on_page
from habitus.web.security import RESTORE, Actor, Admin, ThisConsole
from habitus.web.server import Console
from habitus.web.server_log import last_lines
from habitus.web.store import write_audit

pages = APIRouter()
api = APIRouter(tags=["console"])
BINARY = {"application/octet-stream": {"schema": {"format": "binary"}}}


@pages.post("/settings/backup", response_class=FileResponse)
@api.post("/api/backup", response_class=FileResponse)
def make_backup(console: ThisConsole, actor: Admin) -> FileResponse:
    """Make a backup of all but pictures, clips and footage; it holds the key of all passwords."""
    settings = console.settings
    descriptor, name = tempfile.mkstemp(suffix=".backup", dir=settings.data)
    os.close(descriptor)
    path = Path(name)
    try:
        backup.back_up(settings.data, path, database=settings.database)
        with console.database.transaction() as session:
            write_audit(session, actor.name, "backup made", f"{path.stat().st_size} bytes")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return FileResponse(
        path,
        media_type="application/zip",
        filename=time.strftime("habitus-%Y-%m-%d-%H%M.backup"),
        background=BackgroundTask(path.unlink, missing_ok=True),
    )


@api.post(
    RESTORE,
    status_code=202,
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def add_restore(request: Request, console: ThisConsole, actor: Admin) -> None:
    """Take a backup, as the body; it is put in place when the console is started next."""
    if not console.database.is_sqlite:
        raise HttpError(409, "a console with PostgreSQL is restored by its command")
    part = backup.waiting(console.settings).with_suffix(f".{secrets.token_hex(8)}.part")
    try:
        await uploads.write(part, request.stream(), await run_in_threadpool(uploads.room, console))
        await run_in_threadpool(_keep, console, actor, part)
    finally:
        part.unlink(missing_ok=True)


def _keep(console: Console, actor: Actor, part: Path) -> None:
    backup.check(part, console.settings)
    with console.database.transaction() as session:
        write_audit(session, actor.name, "restore asked for", f"{part.stat().st_size} bytes")
    part.replace(backup.waiting(console.settings))


@api.delete(RESTORE, status_code=204)
@on_page(pages, "/settings/backup/withdraw", "/settings/backup", "")
def withdraw_restore(console: ThisConsole, actor: Admin) -> None:
    """Do not put the backup in place that was given."""
    backup.waiting(console.settings).unlink(missing_ok=True)
    with console.database.transaction() as session:
        write_audit(session, actor.name, "restore withdrawn", "backup")


@api.get("/api/log")
def show_log(console: ThisConsole, actor: Admin) -> list[str]:
    """Show the last lines of the server's log, without secrets."""
    return last_lines(console.settings.data)
