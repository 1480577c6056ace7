"""Conversations: runs that share an id, listed by the newest run."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.errors import NotFoundError
from hansard_store.ingest.derived_rows import Usage
from hansard_store.runs.conversations import get_conversation, list_conversations
from hansard_store.runs.status import TokenSums
from tests.store.maker import StoreMaker, model_step
from tests.store.plans import QueryPlans


def talk(store: StoreMaker, run: str, conversation: str | None, *, at_s: float = 0) -> None:
    usage = Usage(10, 1, cost_usd_nano=5)
    made = model_step(
        usage,
        conversation_id=conversation,
        agent_name="planner",
        first_input=f"ask {run}",
        last_output=f"say {run}",
    )
    store.span(run, run=run, start_s=at_s, projection=made)


def pages(store: StoreMaker, limit: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = list_conversations(store.db, limit=limit, cursor=cursor)
        found += [item.conversation_id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_a_conversation_is_summed_over_its_runs(store: StoreMaker) -> None:
    talk(store, "second", "c", at_s=10)
    talk(store, "first", "c", at_s=5)
    talk(store, "other", "d")

    found = get_conversation(store.db, "c")

    assert (found.runs, found.model_calls, found.cost_usd_nano) == (2, 2, 10)
    assert found.tokens == TokenSums(input=20, output=2)
    assert found.agents == ("planner",)
    assert (found.first_input, found.last_output) == ("ask first", "say second")


def test_an_unknown_conversation_is_not_found(store: StoreMaker) -> None:
    talk(store, "a", "c")

    with pytest.raises(NotFoundError):
        get_conversation(store.db, "d")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=25), st.integers(1, 4))
def test_pages_of_conversations_hold_each_once_by_its_newest_run(
    tmp_path_factory: pytest.TempPathFactory, named: Sequence[str | None], limit: int
) -> None:
    store = StoreMaker(tmp_path_factory.mktemp("talks"))
    with store.batch():
        for number, conversation in enumerate(named):
            talk(store, f"r{number}", conversation)

    found = pages(store, limit)

    store.close()
    assert found == list(dict.fromkeys(name for name in reversed(named) if name is not None))


def test_no_list_of_conversations_scans_a_table(store: StoreMaker, plans: QueryPlans) -> None:
    for number in range(4):
        talk(store, f"r{number}", f"c{number % 3}")

    with plans.watch(store.db):
        pages(store, 1)

    assert plans.scans() == []
