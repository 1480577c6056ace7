"""What counts: the same totals in whatever order spans come, each model and tool call once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from hansard_compiler.calls import Message, ToolCallPart
from hansard_store.ingest.derived_rows import SpanProjection, ToolProjection, Usage
from hansard_store.steps.flags import SpanFlag
from tests.store.maker import StoreMaker, call

TOTALS = """
SELECT span_count, step_count, open_count, error_count, model_calls, tool_calls, tokens_input,
  tokens_output, cost_usd_nano, name, status, started_ns, ended_ns
FROM run
"""
# Who is a duplicate, which calls and sums are counted, in words that do not depend on span.id.
VERDICTS = """
SELECT span.name, span.flags & 1, call.counted, usage_sum.counted
FROM span LEFT JOIN call ON call.span = span.id LEFT JOIN usage_sum ON usage_sum.span = span.id
ORDER BY span.name
"""


@dataclass(frozen=True)
class Step:
    """One span of a generated tree."""

    name: str
    parent: str | None
    start_s: int
    projection: SpanProjection
    status: int = 0
    scope: str = ""


def llm(
    tokens: tuple[int, int] | None = None,
    *,
    response_id: str | None = None,
    output: bool = True,
    asks: Sequence[str] = (),
    declared: bool = False,
) -> SpanProjection:
    usage = Usage(*tokens, cost_usd_nano=tokens[0]) if tokens else Usage()
    made = call(usage=usage)
    made = made._replace(response_id=response_id, is_candidate=output or tokens is not None)
    if asks:
        parts = tuple(ToolCallPart(ask, "f", {}) for ask in asks)
        made = made._replace(output=(Message("assistant", parts),))
    return SpanProjection(
        role="llm",
        dialect="test",
        usage=usage,
        flags=SpanFlag.DUPLICATE if declared else 0,
        call=made,
        requested=tuple(ToolProjection(ask, "f") for ask in asks),
    )


def tool(name: str, call_id: str | None = None) -> SpanProjection:
    return SpanProjection(
        role="tool", dialect="test", tool_name=name, ran=ToolProjection(call_id, name)
    )


def total(tokens: int) -> SpanProjection:
    usage = Usage(tokens, tokens, cost_usd_nano=tokens)
    return SpanProjection(role="agent", dialect="test", usage=usage, usage_sum=usage)


PLAIN = SpanProjection(role="chain", dialect="test")


def results(steps: Sequence[Step], *, batches: int = 1, times: int = 1) -> tuple[Any, Any]:
    """Store steps in their order, in some transactions, and return totals and verdicts."""
    with tempfile.TemporaryDirectory() as path:
        store = StoreMaker(Path(path))
        for _ in range(times):
            size = -(-len(steps) // batches) or 1
            for at in range(0, len(steps), size):
                with store.batch():
                    for step in steps[at : at + size]:
                        add(store, step)
        found = store.db.execute(TOTALS).fetchall(), store.db.execute(VERDICTS).fetchall()
        store.close()
        return found


def add(store: StoreMaker, step: Step) -> int:
    return store.span(
        step.name,
        step.parent,
        start_s=step.start_s,
        status=step.status,
        scope_name=step.scope,
        projection=step.projection,
    )


@st.composite
def forests(draw: st.DrawFn) -> list[Step]:
    """Trees of calls, wrappers, sums, tools and plain steps; parents may be missing."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 8))):
        parent = draw(st.sampled_from([None, "gone", *(step.name for step in steps)]))
        kind = draw(st.sampled_from(["plain", "plain", "llm", "llm", "sum", "tool"]))
        steps.append(
            Step(
                f"s{number}",
                parent,
                number,
                draw(_PROJECTIONS[kind]),
                status=draw(st.sampled_from([0, 0, 2])),
            )
        )
    return steps


_TOKENS = st.sampled_from([None, (10, 5), (20, 7)])
_PROJECTIONS = {
    "plain": st.just(PLAIN),
    "llm": st.builds(
        llm,
        _TOKENS,
        response_id=st.sampled_from([None, "r1", "r2"]),
        output=st.booleans(),
        asks=st.sampled_from([(), ("c1",), ("c1", "c2"), ("c3",)]),
        declared=st.sampled_from([False, False, True]),
    ),
    "sum": st.builds(total, st.sampled_from([10, 30])),
    # A dialect either tells call ids or does not: f with them, g without.
    "tool": st.one_of(
        st.builds(tool, st.just("f"), st.sampled_from(["c1", "c2", "c3"])),
        st.builds(tool, st.just("g")),
    ),
}


@given(forests(), st.randoms(use_true_random=False), st.integers(1, 4))
@example(  # what joins a call and its repetition comes last
    [Step("a", None, 0, llm((10, 5))), Step("m", "a", 1, PLAIN), Step("b", "m", 2, llm((10, 5)))],
    None,
    1,
)
@example(  # the middle one tells no tokens: neither neighbour may be counted beside the other
    [Step("a", None, 0, llm((10, 5))), Step("m", "a", 1, llm()), Step("b", "m", 2, llm((10, 5)))],
    None,
    1,
)
def test_any_order_of_arrival_gives_the_same_totals(
    steps: list[Step], random: Any, batches: int
) -> None:
    shuffled = list(reversed(steps))
    if random is not None:
        random.shuffle(shuffled)
    else:
        shuffled = [steps[0], steps[2], steps[1]]

    assert results(shuffled, batches=batches) == results(steps)


@given(forests())
def test_sending_everything_twice_changes_no_total(steps: list[Step]) -> None:
    assert results(steps, times=2) == results(steps)


@given(forests())
def test_totals_are_the_sums_of_what_is_counted(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as path:
        store = StoreMaker(Path(path))
        for step in steps:
            add(store, step)
        counted = store.db.execute(
            """SELECT coalesce(sum(tokens_input), 0) FROM (
                 SELECT tokens_input FROM call WHERE counted = 1
                 UNION ALL SELECT tokens_input FROM usage_sum WHERE counted = 1)"""
        ).get
        run = store.db.execute(
            "SELECT coalesce(tokens_input, 0), model_calls, tool_calls, step_count FROM run"
        ).get
        calls = store.db.execute("SELECT count(*) FROM call WHERE counted = 1").get
        tools = store.db.execute("SELECT count(*) FROM tool_event").get
        shown = store.db.execute("SELECT count(*) FROM span WHERE flags & 5 = 0").get
        store.close()

    assert run == (counted, calls, tools, shown)


def model_calls(*steps: Step) -> tuple[int, int | None]:
    ((*_, calls, _, tokens, _, _, _, _, _, _),), _ = results(steps)
    return calls, tokens


def test_a_call_and_its_wrapper_are_one_call() -> None:
    assert model_calls(
        Step("outer", None, 0, llm((10, 5))), Step("inner", "outer", 1, llm((12, 5)))
    ) == (1, 10)


def test_a_wrapper_without_numbers_leaves_the_call_to_the_one_that_has_them() -> None:
    assert model_calls(Step("outer", None, 0, llm()), Step("inner", "outer", 1, llm((10, 5)))) == (
        1,
        10,
    )


def test_a_call_that_sums_up_the_calls_below_it_is_none() -> None:
    assert model_calls(
        Step("outer", None, 0, llm((30, 12))),
        Step("one", "outer", 1, llm((10, 5))),
        Step("two", "outer", 2, llm((20, 7))),
    ) == (2, 30)


def test_two_calls_of_different_responses_are_two_calls() -> None:
    assert model_calls(
        Step("outer", None, 0, llm((10, 5), response_id="r1")),
        Step("inner", "outer", 1, llm(response_id="r2")),
    ) == (2, 10)


def test_calls_side_by_side_with_one_response_at_one_time_are_one() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("one", "root", 1, llm((10, 5), response_id="r")),
        Step("two", "root", 1, llm((10, 5), response_id="r")),
        Step("later", "root", 9, llm((10, 5), response_id="r")),
    ) == (2, 20)


def test_calls_that_two_instrumentations_began_side_by_side_are_one() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("wrapper", "root", 1, llm((10, 5)), scope="instrumentor"),
        Step("own", "root", 1, llm((10, 5), response_id="r"), scope="sdk"),
    ) == (1, 10)


def test_of_an_instrumentor_and_our_own_span_side_by_side_ours_is_the_call() -> None:
    own = llm((10, 5), response_id="r")._replace(dialect="hansard")
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("wrapper", "root", 1, llm((4, 5)), scope="instrumentor"),
        Step("own", "root", 1, own, scope="hansard"),
    ) == (1, 10)


def test_parallel_calls_of_our_own_are_as_many_though_the_model_numbers_them_alike() -> None:
    own = llm((10, 5), response_id="r")._replace(dialect="hansard")
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("one", "root", 1, own, scope="hansard"),
        Step("two", "root", 1, own, scope="hansard"),
    ) == (2, 20)


def test_one_response_told_by_two_instrumentations_is_one_call_however_they_count() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("wrapper", "root", 1, llm((10, 6), response_id="r"), scope="instrumentor"),
        Step("own", "root", 1, llm((4, 5), response_id="r"), scope="sdk"),
    ) == (1, 10)


def test_a_wrapper_and_a_client_side_by_side_may_count_the_cached_differently() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("wrapper", "root", 1, llm((4, 5)), scope="instrumentor"),
        Step("own", "root", 1, llm((10, 5), response_id="r"), scope="sdk"),
        Step("other", "root", 1, llm((10, 9), response_id="s"), scope="sdk"),
    ) == (2, 14)


def test_one_response_told_by_two_instrumentations_one_after_the_other_is_two_calls() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("one", "root", 1, llm((10, 6), response_id="r"), scope="instrumentor"),
        Step("two", "root", 9, llm((4, 5), response_id="r"), scope="sdk"),
    ) == (2, 14)


def test_parallel_calls_of_one_instrumentation_are_as_many() -> None:
    assert model_calls(
        Step("root", None, 0, PLAIN),
        Step("one", "root", 1, llm((10, 5)), scope="instrumentor"),
        Step("two", "root", 1, llm((10, 5)), scope="instrumentor"),
    ) == (2, 20)


def test_a_repetition_that_a_dialect_declares_never_silences_the_call() -> None:
    assert model_calls(
        Step("outer", None, 0, llm((10, 5), declared=True)),
        Step("inner", "outer", 1, llm((10, 5))),
    ) == (1, 10)


def test_a_span_that_only_prepares_a_call_is_neither_counted_nor_a_duplicate() -> None:
    steps = [
        Step("outer", None, 0, llm(output=False)),
        Step("inner", "outer", 1, llm((10, 5))),
    ]

    (totals,), verdicts = results(steps)

    assert totals[4] == 1
    assert verdicts == [("inner", 0, 1, None), ("outer", 0, 0, None)]


def test_a_span_that_is_its_own_parent_keeps_its_tokens() -> None:
    assert model_calls(Step("self", "self", 0, llm((10, 5)))) == (1, 10)


def test_a_sum_counts_only_while_nothing_below_tells_tokens() -> None:
    agent, plain = Step("agent", None, 0, total(30)), Step("plain", "agent", 1, PLAIN)
    inner = Step("inner", "plain", 2, llm((10, 5)))

    assert model_calls(agent, plain) == (0, 30)
    assert model_calls(agent, inner, plain) == (1, 10)


def tool_calls(*steps: Step) -> int:
    (totals,), _ = results(steps)
    return int(totals[5])


def test_a_tool_call_as_requested_and_as_ran_is_one() -> None:
    asked = Step("asked", "root", 1, llm((1, 1), asks=["c1", "c2"]))
    ran = Step("ran", "root", 2, tool("f", "c1"))

    assert tool_calls(asked, ran) == tool_calls(ran, asked) == 2


def test_the_two_ends_of_a_tool_are_one_run_and_the_outer_one_is_the_step() -> None:
    steps = [
        Step("asked", "root", 0, llm((1, 1), asks=["c1"])),
        Step("outer", "root", 1, tool("f", "c1")),
        Step("inner", "outer", 2, tool("f")),
    ]

    for order in (steps, steps[::-1]):
        (totals,), verdicts = results(order)
        assert totals[5] == 1
        assert [name for name, duplicate, *_ in verdicts if duplicate] == ["inner"]


def test_a_tool_that_runs_itself_again_has_run_twice() -> None:
    outer = Step("outer", None, 0, tool("f", "c1"))
    inner = Step("inner", "outer", 1, tool("f", "c2"))

    assert tool_calls(outer, inner) == tool_calls(inner, outer) == 2


def test_what_nobody_counts_any_more_is_unknown_and_not_zero() -> None:
    agent = Step("agent", None, 0, total(30))
    declared = Step("call", "agent", 1, llm((10, 5), declared=True))

    assert model_calls(agent, declared) == (0, None)
