"""The live feed and the stream of the runs list."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from hansard_web.live import MOST_PENDING, LiveBatch, RunFeed
from tests.web.conftest import Served
from tests.web.html import Element, parse
from tests.web.makers import RunMaker


@pytest.fixture
def feed(runs: RunMaker) -> Iterator[RunFeed]:
    """A feed over the store."""
    feed = RunFeed(runs.folder)
    yield feed
    feed.close()


async def batches(
    stream: AsyncIterator[LiveBatch], until: Callable[[list[LiveBatch]], bool]
) -> list[LiveBatch]:
    """Return what a stream yields until there is enough of it."""
    seen: list[LiveBatch] = []
    async with asyncio.timeout(20):
        async for batch in stream:
            seen.append(batch)
            if until(seen):
                break
    return seen


def names(seen: list[LiveBatch]) -> set[str]:
    return {run.name for batch in seen for run in batch.runs}


def test_a_page_is_told_what_happened_before_and_after_it_came(
    feed: RunFeed, runs: RunMaker
) -> None:
    runs.run("before")

    async def follow() -> list[LiveBatch]:
        def enough(seen: list[LiveBatch]) -> bool:
            if names(seen) == {"before"} and len(seen) == 1:
                runs.run("after")
            return "after" in names(seen)

        return await batches(feed.follow(after=0), enough)

    seen = asyncio.run(follow())

    assert names(seen) == {"before", "after"}
    assert [batch.seq for batch in seen] == sorted(batch.seq for batch in seen)


def test_a_page_that_has_seen_everything_gets_only_what_is_new(
    feed: RunFeed, runs: RunMaker
) -> None:
    runs.run("before")

    async def follow() -> list[LiveBatch]:
        stream = feed.follow(after=1)
        first = asyncio.ensure_future(anext(stream))
        await asyncio.to_thread(runs.run, "after")
        async with asyncio.timeout(20):
            return [await first]

    assert names(asyncio.run(follow())) == {"after"}


def test_a_page_that_is_far_behind_is_told_to_load_afresh(feed: RunFeed, runs: RunMaker) -> None:
    with runs.store.batch():
        for number in range(MOST_PENDING + 5):
            runs.store.span("root", run=f"run {number}")

    seen = asyncio.run(batches(feed.follow(after=0), lambda seen: True))

    assert seen[0].is_resync
    assert seen[0].runs == ()


def test_every_page_is_told(feed: RunFeed, runs: RunMaker) -> None:
    async def follow() -> list[list[LiveBatch]]:
        streams = [feed.follow(after=0) for _ in range(3)]
        firsts = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.to_thread(runs.run, "one")
        async with asyncio.timeout(20):
            return [[await first] for first in firsts]

    assert [names(seen) for seen in asyncio.run(follow())] == [{"one"}] * 3


def with_late_poller(
    runs: RunMaker, monkeypatch: pytest.MonkeyPatch, before: Callable[[], object]
) -> tuple[LiveBatch, LiveBatch]:
    """Follow a feed that looks only when a run `after` came, after what was there before."""
    may_run = threading.Event()

    class Late(threading.Thread):
        def run(self) -> None:
            may_run.wait()
            super().run()

    monkeypatch.setattr("hansard_web.live.Thread", Late)
    feed = RunFeed(runs.folder)
    before()

    async def follow() -> tuple[LiveBatch, LiveBatch]:
        stream = feed.follow(after=0)
        async with asyncio.timeout(20):
            first = await anext(stream)
            await asyncio.to_thread(runs.run, "after")
            may_run.set()
            return first, await anext(stream)

    try:
        return asyncio.run(follow())
    finally:
        may_run.set()
        feed.close()


def test_a_page_is_told_though_the_poller_comes_late(
    runs: RunMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = with_late_poller(runs, monkeypatch, lambda: runs.run("before"))

    assert (names([before]), names([after])) == ({"before"}, {"after"})


def test_a_page_is_told_what_comes_after_a_flood_that_the_poller_sees_late(
    runs: RunMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flood() -> None:
        with runs.store.batch():
            for number in range(3 * MOST_PENDING):
                runs.store.span("root", run=f"run {number}")

    before, after = with_late_poller(runs, monkeypatch, flood)

    assert before.is_resync
    assert after.is_resync or names([after]) == {"after"}
    assert after.seq > before.seq


def test_closing_the_feed_ends_every_stream(runs: RunMaker) -> None:
    feed = RunFeed(runs.folder)

    async def follow() -> list[LiveBatch]:
        async def collect() -> list[LiveBatch]:
            return [batch async for batch in feed.follow(after=0)]

        collecting = asyncio.ensure_future(collect())
        await asyncio.to_thread(feed.close)
        async with asyncio.timeout(20):
            return await collecting

    assert asyncio.run(follow()) == []


# ---- the stream as a page reads it


@contextmanager
def stream(
    served: Served, query: str = "", last: str = "", of: str = "/live/runs"
) -> Iterator[Iterator[dict[str, str]]]:
    """Read the messages of a stream one by one."""
    asked = Request(f"{served.url}{of}?{query}", headers={"Last-Event-ID": last})
    with urlopen(asked, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _messages(line.decode().rstrip("\n") for line in answer)


def _messages(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    message: dict[str, list[str]] = {}
    until_s = time.monotonic() + 30
    for line in lines:
        # Comments keep the connection, so no read takes long.
        assert time.monotonic() < until_s, "no message came"
        if line.startswith(":"):
            continue
        if not line:
            if message:
                yield {name: "\n".join(values) for name, values in message.items()}
            message = {}
            continue
        name, _, value = line.partition(": ")
        message.setdefault(name, []).append(value)


def partials(message: dict[str, str]) -> list[Element]:
    return parse(message["data"]).all("hx-partial")


@pytest.mark.covers("UI-23")
def test_a_new_run_is_put_on_top_and_a_changed_one_in_its_place(
    served: Served, runs: RunMaker
) -> None:
    old = runs.run("old", duration_s=None)
    with stream(served, "after=1&newest=1") as messages:
        runs.run("new")
        new = next(messages)
        runs.run("old", trace=old)
        changed = next(messages)

    added = partials(new)[0]
    assert (added["hx-target"], added["hx-swap"], added["data-new"]) == ("#runs", "prepend", "1")
    assert added.one("a", class_="rowlink").text == "new"
    same = partials(changed)[0]
    assert (same["hx-target"], same["hx-swap"]) == (f"#run-{old}", "outerMorph")
    assert same.one(class_="status")["data-status"] == "ok"


def test_a_run_that_is_long_over_has_no_news_for_its_page(served: Served, runs: RunMaker) -> None:
    old = runs.run("old")
    with runs.store.batch():
        for number in range(3 * MOST_PENDING):
            runs.store.span("root", run=f"run {number}")
    with urlopen(f"{served.url}/runs/{old}", timeout=20) as page:
        live = parse(page.read().decode()).one(id="live")["hx-sse:connect"]
    path, _, query = live.partition("?")

    with stream(served, query, of=path) as messages:
        assert next(messages)["event"] == "run-marks"
        runs.run("old", trace=old)
        assert next(messages)["event"] == "run-change"  # it has ended: nothing says "new steps"


def test_a_stream_continues_where_it_broke_off(served: Served, runs: RunMaker) -> None:
    runs.run("one")
    with stream(served, "after=0&newest=0") as messages:
        place = next(messages)["id"]
    runs.run("two")

    with stream(served, "after=0&newest=0", last=place) as messages:
        resumed = partials(next(messages))[0]

    assert [link.text for link in resumed.all("a", class_="rowlink")] == ["two"]


def test_a_filtered_list_hears_of_a_run_when_it_comes_to_meet_the_filter(
    served: Served, runs: RunMaker
) -> None:
    run_id = runs.run("slow", duration_s=None)
    with stream(served, "status=error&after=1&newest=0") as messages:
        runs.run("fine")
        other = next(messages)
        runs.run("slow", trace=run_id, status=2)
        found = next(messages)

    assert partials(other)[0]["hx-swap"] == "outerMorph"
    assert partials(found)[0]["hx-swap"] == "prepend"
    assert partials(found)[0].one("tr")["id"] == f"run-{run_id}"


def test_new_runs_are_only_counted_where_the_top_is_not_their_place(
    served: Served, runs: RunMaker
) -> None:
    runs.run("one")
    with stream(served, "sort=-duration_ms&after=1&newest=1") as messages:
        runs.run("two")
        message = next(messages)

    assert (message["event"], message["data"]) == ("more", "1")


@pytest.mark.parametrize("last", ["x", "1", "-1-2", "9" * 40 + "-1", "1-2-3", ""])
def test_a_broken_place_begins_where_the_page_says(
    served: Served, runs: RunMaker, last: str
) -> None:
    runs.run("one")

    with stream(served, "after=0&newest=0", last=last) as messages:
        message = next(messages)

    assert partials(message)[0]["data-new"] == "1"
