"""News for the open pages: whoever has something to say publishes it, from any thread."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

# News that may wait for a page that does not take them; then its oldest are dropped.
ROOM = 200


class News(NamedTuple):
    """Something that pages show at once."""

    topic: str
    """event, camera, picture, learning, notice or review."""
    data: dict[str, Any]
    """Plain values; "camera" is the id of the camera that it is about."""


class Bulletin:
    """Passes news on to all who listen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[asyncio.Queue[News], asyncio.AbstractEventLoop] = {}

    def publish(self, topic: str, **data: Any) -> None:
        """Tell all who listen now."""
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
