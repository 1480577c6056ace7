"""Reading what was said: lists of messages share their beginnings, bodies come when asked for."""

from __future__ import annotations

import hashlib

import pytest

from hansard_compiler.calls import Message
from hansard_store.content.messages import (
    find_text,
    first_carriers,
    list_ancestry,
    list_calls,
    list_earlier_runs,
    list_tool_events,
    read_chain,
    read_chains,
    read_messages,
    read_nodes,
)
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.derived_rows import SpanProjection, ToolProjection
from hansard_store.runs.details import (
    find_steps,
    list_event_times,
    list_events,
    list_log_lines,
    phrase_of,
    step_kinds,
)
from hansard_store.steps.flags import SpanFlag
from tests.store.maker import NOW, SECOND, StoreMaker, call, message, span_id, trace_id
from tests.store.plans import QueryPlans

HELLO = [message("system", "Be brief."), message("user", "hello")]


def talk(
    store: StoreMaker,
    name: str,
    said: list[Message],
    answer: str,
    *,
    run: str = "run",
    at: float = 0,
) -> int:
    """Store a model call and return its span.id."""
    spoken = call(input=said, output=[message("assistant", answer)])
    made = SpanProjection(role="llm", dialect="gen_ai", call=spoken, conversation_id="c-1")
    return store.span(name, "agent", run=run, start_s=at, role="llm", projection=made)


def run_number(store: StoreMaker, run: str = "run") -> int:
    number: int = store.db.execute("SELECT id FROM run WHERE trace_id = ?", (trace_id(run),)).get
    return number


def test_calls_come_in_the_order_of_their_start_with_their_lists(store: StoreMaker) -> None:
    later = talk(store, "second", [*HELLO, message("user", "again")], "hi again", at=2)
    first = talk(store, "first", HELLO, "hi", at=1)

    calls = list_calls(store.db, run_number(store))

    assert [one.span for one in calls] == [first, later]
    texts = [
        [read_messages(store.db, [ref.text])[ref.text].text for ref in read_chain(store.db, node)]
        for one in calls
        for node in (one.input_prefix, one.output_prefix)
    ]
    assert texts == [["Be brief.", "hello"], ["hi"], ["Be brief.", "hello", "again"], ["hi again"]]
    assert calls[0].step_id == f"{trace_id('run').hex()}-{span_id('first').hex()}"


def test_lists_that_begin_alike_share_their_nodes(store: StoreMaker) -> None:
    for turn in range(5):
        more = [message("user", f"turn {number}") for number in range(turn)]
        talk(store, f"call {turn}", [*HELLO, *more], "ok", at=turn)
    leaves = [one.input_prefix or 0 for one in list_calls(store.db, run_number(store))]

    nodes = read_nodes(store.db, leaves)
    chains = read_chains(store.db, [*leaves, None])

    assert len(nodes) == 6
    assert [len(chains[leaf]) for leaf in leaves] == [2, 3, 4, 5, 6]
    assert all(chains[leaf] == read_chain(store.db, leaf) for leaf in leaves)
    assert read_chain(store.db, None) == []


def test_a_body_that_is_missing_is_corruption_not_silence(store: StoreMaker) -> None:
    with pytest.raises(StoreCorruptError, match="not stored"):
        read_messages(store.db, [4711])
    with pytest.raises(StoreCorruptError, match="node 4711"):
        read_chain(store.db, 4711)


def test_a_message_is_found_by_its_hash(store: StoreMaker) -> None:
    talk(store, "first", HELLO, "hi")

    assert find_text(store.db, HELLO[1].hash.hex()) == HELLO[1]
    assert find_text(store.db, "00" * 32) is None
    assert find_text(store.db, "../../etc/passwd") is None


def test_tool_calls_name_who_asked_and_who_ran(store: StoreMaker) -> None:
    asked = SpanProjection(
        role="llm",
        dialect="x",
        requested=(ToolProjection("c1", "search"), ToolProjection("c2", "x")),
    )
    ran = SpanProjection(role="tool", dialect="x", ran=ToolProjection("c1", "search"))
    store.span("chat", start_s=0, projection=asked)
    store.span("tool", start_s=1, duration_s=2, status=2, projection=ran)

    events = list_tool_events(store.db, run_number(store))

    assert set(events) == {"c1", "c2"}
    assert events["c1"].asked_by is not None
    assert events["c1"].asked_by.name == "chat"
    assert events["c1"].ran is not None
    assert (events["c1"].ran.link.name, events["c1"].ran.is_error) == ("tool", True)
    assert events["c2"].ran is None


def test_the_first_carrier_of_a_text_is_told_by_its_hash(store: StoreMaker) -> None:
    store.span("tool", role="tool", texts=[("tool_result", "6 hits")])
    digest = hashlib.sha256(b"tool_result\0006 hits").digest()

    found = first_carriers(store.db, [digest, b"\0" * 32])

    assert list(found) == [digest]
    assert (found[digest].link.name, found[digest].role) == ("tool", "tool")


def test_earlier_runs_of_a_conversation_come_the_nearest_first(store: StoreMaker) -> None:
    for at, run in enumerate(("one", "two", "three", "four")):
        talk(store, "call", HELLO, "hi", run=run, at=at * 10)

    found = list_earlier_runs(
        store.db,
        run=run_number(store, "three"),
        conversation_id="c-1",
        before_ns=NOW - 3600 * SECOND + 20 * SECOND,
    )

    assert found == [run_number(store, "two"), run_number(store, "one")]


def test_steps_of_a_run_are_found_by_name_facts_and_words(store: StoreMaker) -> None:
    by_name = store.span("apply_PATCH")
    by_words = talk(store, "chat", [message("user", "round half up, please")], "done")
    store.span("other", run="elsewhere", texts=[("output", "round half up")])

    run = trace_id("run")

    assert find_steps(store.db, run, "patch") == {by_name}
    assert find_steps(store.db, run, "half u") == {by_words}
    assert find_steps(store.db, run, "half please") == set()
    assert find_steps(store.db, run, '"') == set()
    assert find_steps(store.db, run, "%") == set()


@pytest.mark.parametrize(
    ("text", "phrase"),
    [("half up", '"half up" *'), ('say "hi"', '"say hi" *'), ("--", None), ("", None)],
)
def test_what_is_looked_for_is_a_phrase_and_never_a_query(text: str, phrase: str | None) -> None:
    assert phrase_of(text) == phrase


def test_logs_and_kinds_of_a_run_are_listed(store: StoreMaker) -> None:
    number = store.span("tool", role="tool")
    store.log("second", span="tool", at_s=2)
    store.log("first", span="tool", at_s=1)

    assert [line.body_text for line in list_log_lines(store.db, trace_id("run"))] == [
        "first",
        "second",
    ]
    assert step_kinds(store.db, trace_id("run")) == {number: ("tool", "tool")}


def test_no_read_of_a_conversation_scans_a_table(store: StoreMaker, plans: QueryPlans) -> None:
    span = talk(store, "first", HELLO, "hi")
    run = run_number(store)

    with plans.watch(store.db):
        [one] = list_calls(store.db, run)
        read_chain(store.db, one.input_prefix)
        read_nodes(store.db, [one.input_prefix or 0])
        read_messages(store.db, [ref.text for ref in read_chain(store.db, one.output_prefix)])
        list_tool_events(store.db, run)
        list_ancestry(store.db, run)
        list_earlier_runs(store.db, run=run, conversation_id="c-1", before_ns=NOW)
        first_carriers(store.db, [b"\0"])
        find_text(store.db, "00")
        step_kinds(store.db, trace_id("run"))
        find_steps(store.db, trace_id("run"), "hello")
        list_log_lines(store.db, trace_id("run"))
        list_event_times(store.db, [span], limit=9)
        list(list_events(store.db, [span]))

    assert plans.lines
    assert plans.scans() == []
    assert not one.flags & SpanFlag.DUPLICATE
