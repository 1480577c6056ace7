"""A large request that is sent again while it is worked on, or after it was answered late."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.errors import RequestTooDense
from hansard_collector.pipeline.requests import Encoding, IngestRequest, RepeatedRequests, Signal
from hansard_store.database.connections import open_for_accountability
from tests.collector.ingesting import SENDER, Ingesting, span, traces

WAIT_S = 60


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path / "data")
    yield made
    made.close()


def request(body: bytes) -> IngestRequest:
    return IngestRequest(Signal.TRACES, Encoding.PROTOBUF, body, SENDER, time.time_ns())


def large(first: int = 1, count: int = 300) -> bytes:
    sent = [span(first + at, attributes={"text": "word " * 300}) for at in range(count)]
    body: bytes = traces(sent).SerializeToString()
    return body


def counts(ingesting: Ingesting) -> tuple[int, int, int]:
    ledger = ingesting.ledger()
    return ledger["requests"], ledger["stored"], ledger["duplicate"]


def test_one_that_is_worked_on_is_stored_once_and_answers_both(ingesting: Ingesting) -> None:
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")

    first = ingesting.pipeline.submit(request(large()))
    again = ingesting.pipeline.submit(request(large()))
    other = ingesting.pipeline.submit(request(large(1_000)))
    blocker.execute("ROLLBACK")
    answers = [one.result(WAIT_S) for one in (first, again, other)]

    assert [answer.accepted for answer in answers] == [300, 300, 300]
    assert counts(ingesting) == (2, 600, 0)
    until_s = time.monotonic() + WAIT_S  # given back just after the answer, by the same thread
    while ingesting.pipeline.queue_state().bytes and time.monotonic() < until_s:
        time.sleep(0.01)
    assert ingesting.pipeline.queue_state().bytes == 0


def test_one_that_was_answered_in_time_counts_as_duplicates(ingesting: Ingesting) -> None:
    for _ in range(2):
        ingesting.pipeline.submit(request(large())).result(WAIT_S)

    assert counts(ingesting) == (2, 300, 300)


def test_one_that_was_answered_late_is_answered_alike_at_once(ingesting: Ingesting) -> None:
    ingesting.pipeline._repeated = RepeatedRequests(late_s=0)
    first = ingesting.pipeline.submit(request(large())).result(WAIT_S)

    again = ingesting.pipeline.submit(request(large()))

    assert again.done()
    assert again.result() == first
    assert counts(ingesting) == (1, 300, 0)


def test_one_that_was_refused_late_is_refused_again_unread(ingesting: Ingesting) -> None:
    ingesting.pipeline._repeated = RepeatedRequests(late_s=0)
    dense = b"\x0a\x00" * 30_000_000
    with pytest.raises(RequestTooDense):
        ingesting.pipeline.submit(request(dense)).result(WAIT_S)

    assert isinstance(ingesting.pipeline.submit(request(dense)).exception(0), RequestTooDense)


def test_the_latest_are_known_and_no_more(ingesting: Ingesting) -> None:
    ingesting.pipeline._repeated = RepeatedRequests(late_s=0)
    bodies = [large(1_000 * number, 250) for number in range(1, 67)]
    answers: list[Any] = [ingesting.pipeline.submit(request(body)) for body in bodies]
    for answer in answers:
        answer.result(WAIT_S)

    assert not ingesting.pipeline.submit(request(bodies[0])).done()
    assert ingesting.pipeline.submit(request(bodies[-1])).done()
