"""News for the open pages: whoever has something to say publishes it, from any thread."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from habitus.web.answers import PostedNotice
from habitus.web.server_log import LOGGER

# News that may wait for a page that does not take them; then its oldest are dropped.
ROOM = 200
# Seconds after which the same notice is news again.
REPEATED_AFTER = 600.0


class News(NamedTuple):
    """Something that pages show at once."""

    topic: str
    """One of:

    - event: event (its id), kind (started, ended or clip), alarm
    - camera: state, since, reason
    - picture: time; there is a new one
    - judged: time, normality, threshold, behaviour, expected
    - learning: occasion, stage, done, total, note; at last stage "ended" with model and summary
    - notice: text, time
    - review: event, verdict, actor
    """
    data: dict[str, Any]
    """Plain values; "camera" is the id of the camera that it is about."""


class Bulletin:
    """Passes news on to all who listen, and keeps the latest notices."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[asyncio.Queue[News], asyncio.AbstractEventLoop] = {}
        self._notices: dict[tuple[str | None, str], PostedNotice] = {}

    def post(self, text: str, camera: str | None = None) -> None:
        """Post a notice of one line, of a camera or of all; again at most every ten minutes."""
        now, key = time.time(), (camera, text)
        with self._lock:
            before = self._notices.pop(key, None)
            is_news = before is None or not 0 <= now - before.first < REPEATED_AFTER
            first, times = (before.first, before.times) if before and not is_news else (now, 0)
            self._notices[key] = PostedNotice(
                text=text, first=first, last=now, times=times + 1, camera=camera
            )
            while len(self._notices) > ROOM:
                del self._notices[next(iter(self._notices))]
        if is_news:
            LOGGER.info("%s%s", f"{camera}: " if camera else "", text)
            self.publish("notice", camera=camera, text=text, time=now)

    def notices(self) -> list[PostedNotice]:
        """Return the latest notices, the newest first."""
        with self._lock:
            return list(self._notices.values())[::-1]

    def dismiss(self) -> None:
        """Forget all notices."""
        with self._lock:
            self._notices.clear()

    def publish(self, topic: str, **data: Any) -> None:
        """Send news to all who listen now."""
        news = News(topic, data)
        with self._lock:
            listeners = list(self._listeners.items())
        for queue, loop in listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, queue, news)

    async def listen(self) -> AsyncIterator[News]:
        """Yield news as they come, until the iterator is closed."""
        queue: asyncio.Queue[News] = asyncio.Queue(ROOM)
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
        try:
            while True:
                yield await queue.get()
        finally:
            with self._lock:
                del self._listeners[queue]

    def __len__(self) -> int:
        return len(self._listeners)


def _put(queue: asyncio.Queue[News], news: News) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(news)
