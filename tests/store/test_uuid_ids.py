"""Ids that Hansard makes sort by the time they were made, and none comes twice."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from hansard_store.ids import new_id, short_id


@pytest.mark.covers("DM-24")
def test_a_hundred_thousand_ids_are_distinct_and_sort_as_they_were_made() -> None:
    made = [new_id() for _ in range(100_000)]

    assert made == sorted(set(made))


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = UUID(bytes=new_id())

    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert before_ms <= (made.int >> 80) <= time.time_ns() // 1_000_000 + 60_000


def test_threads_make_no_id_twice() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [one for part in pool.map(lambda _: [new_id() for _ in range(500)], range(8))
                for one in part]  # fmt: skip

    assert len(set(made)) == len(made)


def test_people_are_shown_the_end_of_an_id() -> None:
    assert short_id("0193e2a1c7b47d0f8a6b5c4d3e2f1a09") == "3e2f1a09"
