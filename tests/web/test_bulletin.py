"""News for all who listen, and notices that are told once in a while."""

import asyncio

import pytest

from habitus.web.bulletin import REPEATED_AFTER, ROOM, Bulletin


def heard(bulletin: Bulletin, n_published: int, n_heard: int) -> list[int]:
    """The numbers that reach somebody who listens only after all were published."""

    async def listen() -> list[int]:
        news = bulletin.listen()
        first = asyncio.ensure_future(anext(news))
        await asyncio.sleep(0)  # it listens
        for number in range(n_published):
            bulletin.publish("judged", number=number)
        found = [(await first).data["number"]]
        found += [(await anext(news)).data["number"] for _ in range(n_heard - 1)]
        await news.aclose()
        return found

    return asyncio.run(listen())


def test_whoever_is_slow_hears_the_latest_news() -> None:
    bulletin = Bulletin()
    assert heard(bulletin, 3, 3) == [0, 1, 2]
    assert heard(bulletin, ROOM + 5, ROOM) == list(range(5, ROOM + 5))
    assert len(bulletin) == 0


def test_a_notice_is_told_again_after_a_while_or_when_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bulletin, now, told = Bulletin(), [1e9], list[float]()
    monkeypatch.setattr("habitus.web.bulletin.time.time", lambda: now[0])
    monkeypatch.setattr(bulletin, "publish", lambda topic, **data: told.append(data["time"]))
    for moment in (0, 1, REPEATED_AFTER - 1, REPEATED_AFTER, REPEATED_AFTER + 1, -5000, -4999):
        now[0] = 1e9 + moment
        bulletin.post("the disk is nearly full")
    assert [time - 1e9 for time in told] == [0, REPEATED_AFTER, -5000]
    (notice,) = bulletin.notices()
    assert (notice.first, notice.last, notice.times) == (1e9 - 5000, 1e9 - 4999, 2)
