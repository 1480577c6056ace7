"""Runs told step by step: start_run, step, record_tool_call, record_tool_result, end_run."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import context as otel_context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import INVALID_SPAN, get_current_span

import hansard
from hansard import semconv
from hansard.testing import Spans, capture
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader


def attribute(spans: Spans, name: str, key: str) -> Any:
    return (spans.one(name).attributes or {}).get(key)


# ---- a run


_SKETCH = """
import sys
import hansard

hansard.init(embedded=True, data=sys.argv[1])
run = hansard.start_run(agent_name="my-agent", domain="research", user_goal="Find out.")
with run.step("look", "tool_call"):
    hansard.record_tool_call("search", {"q": "author"}, call_id="c1")
    hansard.record_tool_result("search", ["Swift"], call_id="c1")
hansard.end_run(output="Jonathan Swift")
print(run.run_id, run.status)
"""


@pytest.mark.slow
@pytest.mark.covers("SD-01", "SD-04", "SD-05")
def test_the_sketch_of_the_session_api_is_in_the_store_of_its_process(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")

    ended = subprocess.run(
        [sys.executable, "-c", _SKETCH, str(data.path)], capture_output=True, text=True, check=True
    )

    run_id, status = ended.stdout.split()
    connection = open_reader(data)
    runs = connection.execute("SELECT lower(hex(trace_id)), name, status FROM run").fetchall()
    steps = connection.execute("SELECT name, role FROM span ORDER BY start_ns, id").fetchall()
    connection.close()
    assert status == "completed"
    assert runs == [(run_id, "invoke_agent my-agent", "ok")]
    assert steps == [
        ("invoke_agent my-agent", "agent"), ("look", "tool"), ("execute_tool search", "tool"),
    ]  # fmt: skip


def test_the_sketch_of_the_session_api_runs() -> None:
    with capture() as spans:
        run = hansard.start_run(
            agent_name="my-agent", domain="research", user_goal="Find out who wrote it."
        )
        with run.step("look", "tool_call"):
            hansard.record_tool_call("search", {"q": "author"}, call_id="c1")
            hansard.record_tool_result("search", ["Swift"], call_id="c1")
        hansard.end_run(output="Jonathan Swift")

    assert spans.text() == "invoke_agent my-agent\n  look\n    execute_tool search\n"
    root = spans.one("invoke_agent my-agent").attributes or {}
    assert root["hansard.run.domain"] == "research"
    assert root["hansard.run.goal"] == "Find out who wrote it."
    assert root["hansard.output"] == '"Jonathan Swift"'
    tool = spans.one("execute_tool search").attributes or {}
    assert tool["gen_ai.tool.call.arguments"] == '{"q":"author"}'
    assert tool["gen_ai.tool.call.result"] == '["Swift"]'
    assert run.status == "completed"
    assert run.run_id == f"{1:032x}"


def test_a_run_is_a_trace_of_its_own_linked_to_its_caller() -> None:
    with capture() as spans, hansard.span("handle request") as caller:
        with hansard.start_run("clerk") as run:
            pass
        assert get_current_span() is caller.otel

    request, clerk = spans.one("handle request"), spans.one("invoke_agent clerk")
    assert clerk.parent is None
    assert clerk.context is not None
    assert request.context is not None
    assert clerk.context.trace_id != request.context.trace_id
    assert run.run_id == f"{clerk.context.trace_id:032x}"
    [link] = clerk.links
    assert link.context.span_id == request.context.span_id
    assert link.attributes == {"hansard.link.type": "caller"}


def test_a_nested_run_is_a_child_and_shares_the_trace() -> None:
    with (
        capture() as spans,
        hansard.start_run("chief", conversation_id="c-1") as chief,
        hansard.start_run("helper", nest=True) as helper,
    ):
        assert hansard.current_run() is helper

    assert spans.text() == "invoke_agent chief\n  invoke_agent helper\n"
    assert chief.run_id == helper.run_id
    assert helper.conversation_id == "c-1"


def test_decorated_functions_nest_in_the_run() -> None:
    @hansard.tool
    def search(q: str) -> str:
        return q.upper()

    with capture() as spans, hansard.start_run("clerk") as run, run.step("turn", "task"):
        search("x")

    assert spans.text() == "invoke_agent clerk\n  turn\n    execute_tool search\n"


def test_a_run_says_who_asked_and_what_it_is_filed_under() -> None:
    with capture() as spans:
        hansard.start_run(
            "clerk",
            conversation_id="c-1",
            user_id="u-1",
            tags=["nightly", "paid"],
            metadata={"tier": "gold", "attempt": 2, "flags": {"dry": True}},
        ).end()

    told = spans.one("invoke_agent clerk").attributes or {}
    assert told["gen_ai.conversation.id"] == "c-1"
    assert told["user.id"] == "u-1"
    assert told["hansard.run.tags"] == ("nightly", "paid")
    assert told["hansard.run.metadata.tier"] == "gold"
    assert told["hansard.run.metadata.attempt"] == 2
    assert told["hansard.run.metadata.flags"] == '{"dry":true}'


def test_secrets_stay_out_of_everything_a_run_says() -> None:
    secret = "sk-ant-api03-" + "x9Kq2LmZ7pT4vB8nR3wY6cDf"
    with capture() as spans:
        run = hansard.start_run("clerk", secret, f"use {secret}", tags=[secret])
        run.step("one", input=secret, metadata={"k": secret}).end(output=secret)
        run.record_tool_call("t", {"key": secret}, call_id="1", description=secret)
        run.record_tool_result("t", secret, call_id="1", error=f"bad {secret}")
        run.end(error=ValueError(secret), output=secret)

    assert secret not in json.dumps(spans.tree())
    assert "‹redacted:" in spans.text("hansard.run.goal")


def test_metadata_only_tells_no_content() -> None:
    with capture(retention=RetentionMode.METADATA_ONLY) as spans:
        run = hansard.start_run(
            "clerk", "research", "the goal", metadata={"note": "the note", "n": 1}
        )
        run.record_tool_call("t", "the arguments", description="the description").end(
            output="the result", error="the error"
        )
        run.end(output="the answer", error=ValueError("the failure"))

    shown = json.dumps(spans.tree())
    for words in ("the goal", "the note", "arguments\":", "the description", "the result",
                  "the error", "the answer", "the failure"):  # fmt: skip
        assert words not in shown
    assert attribute(spans, "invoke_agent clerk", "hansard.run.metadata.n") == 1
    assert attribute(spans, "invoke_agent clerk", "hansard.run.domain") == "research"


# ---- how it ends


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (None, "completed", ""),
        (ValueError("no"), "failed", " [error]"),
        (asyncio.CancelledError(), "cancelled", " [cancelled]"),
        (KeyboardInterrupt(), "cancelled", " [cancelled]"),
        (SystemExit(0), "completed", ""),
        (SystemExit(3), "failed", " [error]"),
    ],
)
def test_what_leaves_the_block_is_how_the_run_ended(
    error: BaseException | None, status: str, shown: str
) -> None:
    caught: BaseException | None = None
    with capture() as spans:
        try:
            with hansard.start_run("clerk") as run, run.step("turn") as step:
                if error is not None:
                    raise error
        except BaseException as raised:
            caught = raised

    assert caught is error  # re-raised, the very same
    assert (run.status, step.status) == (status, status)
    assert spans.text() == f"invoke_agent clerk{shown}\n  turn{shown}\n"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"status": "completed"}, "completed"),
        ({"status": "failed"}, "failed"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "canceled"}, "cancelled"),
        ({"status": "OK"}, "completed"),
        ({"error": "out of stock"}, "failed"),
        ({"error": ValueError("x"), "status": "cancelled"}, "cancelled"),
        ({"status": "gone fishing"}, "completed"),
        ({"status": 7, "error": "seven"}, "failed"),
    ],
)
def test_a_run_ends_as_it_is_told(told: dict[str, Any], status: str) -> None:
    with capture() as spans:
        run = hansard.start_run("clerk")
        hansard.end_run(**told)

    assert run.status == status
    code = {"completed": "UNSET", "failed": "ERROR", "cancelled": "UNSET"}[status]
    assert spans.one("invoke_agent clerk").status.status_code.name == code


def test_the_first_end_holds() -> None:
    with capture() as spans:
        run = hansard.start_run("clerk")
        run.end(output="first")
        run.end(error="second")
        hansard.end_run(status="failed")

    assert run.status == "completed"
    assert spans.text("hansard.output") == 'invoke_agent clerk hansard.output="first"\n'


def test_what_is_still_open_ends_with_the_run_and_says_so() -> None:
    with capture() as spans:
        run = hansard.start_run("clerk")
        run.step("outer")
        run.step("inner")
        run.record_tool_call("search", call_id="1")
        run.end()
        after = get_current_span()

    assert after is INVALID_SPAN
    assert spans.text("hansard.unended", "hansard.tool.recorded_part") == (
        "invoke_agent clerk\n"
        "  outer hansard.unended=True\n"
        "    inner hansard.unended=True\n"
        "      execute_tool search hansard.tool.recorded_part=call hansard.unended=True\n"
    )


def test_a_run_that_the_program_forgot_is_closed_as_cancelled() -> None:
    def begin() -> None:
        hansard.start_run("clerk")

    with capture() as spans:
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
        gc.collect()

    shown = spans.text("hansard.unended")
    assert shown == "invoke_agent clerk [cancelled] hansard.unended=True\n"


_LEFT_OPEN = """
import hansard, hansard.testing, atexit, sys
held = hansard.testing.capture()
spans = held.__enter__()
atexit.register(lambda: print(spans.text("hansard.unended", "error.type"), end=""))
run = hansard.start_run("clerk")
{end}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "line"),
    [
        ("", "invoke_agent clerk [cancelled] hansard.unended=True"),
        (
            "raise ValueError",
            "invoke_agent clerk [error] error.type=ValueError hansard.unended",
        ),
        ("sys.exit(3)", "invoke_agent clerk [cancelled] hansard.unended=True"),
        ("run.end()", "invoke_agent clerk"),
    ],
)
def test_a_run_left_open_at_exit_is_closed_with_what_ended_the_program(end: str, line: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEFT_OPEN.format(end=end)],
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert ended.stdout.startswith(line), ended.stderr


# ---- across functions, tasks and threads


def test_a_run_may_end_in_another_thread_than_it_began_in() -> None:
    with capture() as spans:
        run = hansard.start_run("clerk")
        thread = threading.Thread(target=run.end)
        thread.start()
        thread.join()

        with hansard.start_run("next"):
            pass

    assert spans.text() == "invoke_agent clerk\ninvoke_agent next\n"
    assert spans.one("invoke_agent next").links == ()


def test_what_goes_on_after_a_run_that_ended_elsewhere_is_not_in_it() -> None:
    @hansard.tool
    def afterwards() -> None:
        pass

    with capture() as spans:
        run = hansard.start_run("clerk")
        run.step("turn")
        thread = threading.Thread(target=run.end)
        thread.start()
        thread.join()

        afterwards()
        with hansard.span("more"):
            pass

    assert spans.text() == "invoke_agent clerk\n  turn\nexecute_tool afterwards\nmore\n"


def test_steps_of_other_threads_belong_to_the_run() -> None:
    def work(name: str) -> None:
        with run.activate(), hansard.span(name):
            run.step("in " + name).end()

    with capture() as spans, hansard.start_run("clerk") as run:
        for name in ("a", "b"):
            thread = threading.Thread(target=work, args=[name])
            thread.start()
            thread.join()
        loose = threading.Thread(target=lambda: run.step("loose").end())
        loose.start()
        loose.join()

    assert spans.text() == ("invoke_agent clerk\n  a\n    in a\n  b\n    in b\n  loose\n")


@pytest.mark.parametrize("rounds", [1, 2])
def test_runs_and_steps_are_async_context_managers(rounds: int) -> None:
    async def turn(run: hansard.Run, name: str) -> None:
        async with run.step(name):
            await asyncio.sleep(0)
            hansard.record_tool_call("t", call_id=name)
            await asyncio.sleep(0)
            hansard.record_tool_result("t", name, call_id=name)

    async def main() -> None:
        async with hansard.start_run("clerk") as run, asyncio.TaskGroup() as group:
            group.create_task(turn(run, "a"))
            group.create_task(turn(run, "b"))

    with capture() as spans:
        for _ in range(rounds):
            asyncio.run(main())

    assert spans.text("gen_ai.tool.call.id") == rounds * (
        "invoke_agent clerk\n"
        "  a\n    execute_tool t gen_ai.tool.call.id=a\n"
        "  b\n    execute_tool t gen_ai.tool.call.id=b\n"
    )


def test_a_cancelled_task_leaves_a_cancelled_run() -> None:
    async def main() -> None:
        started = asyncio.Event()

        async def agent() -> None:
            async with hansard.start_run("clerk") as run, run.step("wait"):
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(agent())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with capture() as spans:
        asyncio.run(main())

    assert spans.text() == "invoke_agent clerk [cancelled]\n  wait [cancelled]\n"


def test_a_stream_that_is_given_up_leaves_a_cancelled_run_and_nothing_else() -> None:
    def stream() -> Generator[int, None, None]:
        with hansard.start_run("streaming"):
            yield from range(10)

    with capture() as spans:
        half = stream()
        assert next(half) == 0
        half.close()
        with hansard.span("after"):
            pass

    assert spans.text() == "invoke_agent streaming [cancelled]\nafter\n"


def test_an_async_stream_that_is_forgotten_does_too() -> None:
    async def stream() -> AsyncIterator[int]:
        async with hansard.start_run("streaming"):
            for number in range(10):
                yield number

    async def main() -> None:
        async for _ in stream():
            break
        gc.collect()
        await asyncio.sleep(0)  # the loop closes what was forgotten, in a task of its own
        await asyncio.sleep(0)
        with hansard.span("after"):
            pass

    with capture() as spans:
        asyncio.run(main())

    assert spans.text() == "invoke_agent streaming [cancelled]\nafter\n"


# ---- tools


def test_a_tool_step_lasts_from_its_call_to_its_result() -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        one = run.record_tool_call("search", {"q": 1}, call_id="1")
        two = run.record_tool_call("search", {"q": 2}, call_id="2")
        assert run.record_tool_result("search", "second", call_id="2") is two
        assert run.record_tool_result("search", "first", call_id="1") is one

    first, second = [span for span in spans if span.name == "execute_tool search"]
    assert (first.attributes or {})["gen_ai.tool.call.result"] == '"first"'
    assert (second.attributes or {})["gen_ai.tool.call.result"] == '"second"'
    assert first.end_time is not None
    assert second.end_time is not None
    assert first.start_time is not None
    assert first.start_time < second.end_time < first.end_time


def test_results_find_their_call_by_name_or_by_being_the_only_one() -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        run.record_tool_call("a", 1)
        run.record_tool_call("b", 2)
        run.record_tool_call("a", 3)
        run.record_tool_result("a", "of 1")
        run.record_tool_result("b", "of 2")
        run.record_tool_result(result="of 3")

    shown = [
        [(span.attributes or {}).get(key) for key in ("gen_ai.tool.call.arguments",
                                                      "gen_ai.tool.call.result")]
        for span in spans
    ]  # fmt: skip
    assert shown[1:] == [["1", '"of 1"'], ["2", '"of 2"'], ["3", '"of 3"']]


def test_a_result_without_a_call_is_a_step_of_its_own() -> None:
    with capture(fixed_times=False) as spans, hansard.start_run("clerk") as run:
        run.record_tool_result("alone", 1, call_id="x", duration_s=0.25)
        run.record_tool_result("whole", 1, arguments={"a": 1})
        run.record_tool_result()

    told = spans.text("hansard.tool.recorded_part", "gen_ai.tool.call.arguments")
    assert told == (
        "invoke_agent clerk\n"
        "  execute_tool alone hansard.tool.recorded_part=result\n"
        '  execute_tool whole gen_ai.tool.call.arguments={"a":1}\n'
        "  execute_tool hansard.tool.recorded_part=result\n"
    )
    alone = spans.one("execute_tool alone")
    assert alone.start_time is not None
    assert alone.end_time is not None
    assert 250 <= (alone.end_time - alone.start_time) / 1e6 < 2_000


def test_a_second_result_for_a_call_is_told_and_changes_nothing() -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        run.record_tool_call("search", call_id="1")
        run.record_tool_result("search", "first", call_id="1")
        run.record_tool_result("search", "second", call_id="1")
        with run.record_tool_call("by hand", call_id="2") as call:
            call.end(output="by itself")
        run.record_tool_result(call_id="2", result="late")

    root = spans.one("invoke_agent clerk")
    assert [(e.name, dict(e.attributes or {})) for e in root.events] == [
        ("hansard.tool.duplicate_result", {"gen_ai.tool.call.id": "1"}),
        ("hansard.tool.duplicate_result", {"gen_ai.tool.call.id": "2"}),
    ]
    assert len(spans) == 3
    assert attribute(spans, "execute_tool search", "gen_ai.tool.call.result") == '"first"'


def test_calls_that_share_an_id_are_answered_in_order() -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        run.record_tool_call("t", 1, call_id="call_0")
        run.record_tool_call("t", 2, call_id="call_0")
        run.record_tool_result("t", "one", call_id="call_0")
        run.record_tool_result("t", "two", call_id="call_0")

    results = [(span.attributes or {}).get("gen_ai.tool.call.result") for span in spans]
    assert results[1:] == ['"one"', '"two"']


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"error": "not found"}, " [error]"),
        ({"error": KeyError("id")}, " [error]"),
        ({"status": "failed"}, " [error]"),
        ({"status": "cancelled"}, " [cancelled]"),
    ],
)
def test_a_tool_may_fail(told: dict[str, Any], shown: str) -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        run.record_tool_call("search", call_id="1")
        run.record_tool_result("search", call_id="1", **told)

    assert spans.text() == f"invoke_agent clerk\n  execute_tool search{shown}\n"


def test_a_tool_call_as_a_block_is_the_parent_of_what_the_tool_records() -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        call = run.record_tool_call("search", call_id="1")
        with pytest.raises(KeyError), call, hansard.span("database"):
            raise KeyError("id")

    assert spans.text() == (
        "invoke_agent clerk\n  execute_tool search [error]\n    database [error]\n"
    )


@pytest.mark.covers("SD-04")
def test_tools_can_be_told_where_there_is_no_run() -> None:
    @hansard.agent
    def clerk() -> None:
        hansard.record_tool_call("search", {"q": 1}, call_id="1")
        hansard.record_tool_result("search", "found", call_id="1")

    with capture() as spans:
        clerk()
        hansard.end_run()

    assert spans.text("gen_ai.tool.call.result") == (
        'invoke_agent clerk\n  execute_tool search gen_ai.tool.call.result="found"\n'
    )


_IDS = st.none() | st.sampled_from(["a", "b"])
_NAMES = st.sampled_from(["s", "t"])
_TOLD = st.lists(
    st.tuples(st.just("call"), _NAMES, _IDS)
    | st.tuples(st.just("result"), st.none() | _NAMES, _IDS)
)


@given(_TOLD)
def test_whatever_is_told_every_step_ends_once_and_every_result_is_kept(
    told: list[tuple[str, str | None, str | None]],
) -> None:
    with capture() as spans, hansard.start_run("clerk") as run:
        for number, (what, name, call_id) in enumerate(told):
            if what == "call":
                run.record_tool_call(name or "", number, call_id=call_id)
            else:
                run.record_tool_result(name, number, call_id=call_id)

    root, *steps = spans
    assert all(span.end_time is not None for span in spans)
    assert all(span.parent is not None and span.parent == root.context for span in steps)
    kept = [s.attributes["gen_ai.tool.call.result"] for s in steps
            if s.attributes and "gen_ai.tool.call.result" in s.attributes]  # fmt: skip
    results = sum(what == "result" for what, _, _ in told)
    assert len(set(kept)) == len(kept) == results - len(root.events)
    assert sum(what == "call" for what, _, _ in told) <= len(steps)


# ---- never in the way


@pytest.mark.covers("SD-01", "SD-05")
def test_without_init_the_same_code_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    before = otel_context.get_current()

    with hansard.start_run("clerk", "research", "goal", conversation_id="c") as run:
        with run.step("turn", input=1) as step:
            call = run.record_tool_call("t", call_id="1")
            hansard.record_tool_result("t", 1, call_id="1")
        assert hansard.current_run() is None
    hansard.end_run()

    assert (run.run_id, run.step_id, step.step_id, call.step_id) == (None, None, None, None)
    assert (run.status, step.status) == ("completed", "completed")
    assert not run.span.is_recording()
    assert otel_context.get_current() is before
    assert not caplog.records


def test_a_run_that_is_not_sampled_has_ids_and_no_spans() -> None:
    with capture(sampler=ALWAYS_OFF) as spans, hansard.start_run("clerk", "d", "goal") as run:
        run.step("turn", input={"x": 1}).end(output=2)
        run.record_tool_result("t", 1)

    assert len(spans) == 0
    assert run.run_id == f"{1:032x}"
    assert run.status == "completed"


class Hostile:
    """Everything about it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError("str")

    __repr__ = __str__


class Fatal:
    """Its text raises what `except Exception` lets through."""

    def __str__(self) -> str:
        raise GeneratorExit

    __repr__ = __str__


_ODD: dict[str, Callable[[], Any]] = {
    "hostile": Hostile,
    "fatal": Fatal,
    "object": object,
    "number": lambda: 7,
    "bytes": lambda: b"bytes",
    "list": lambda: ["a"],
    "dict": lambda: {"a": 1},
    "surrogate": lambda: "\ud800 lone",
    "long": lambda: "x" * 100_000,
    "nan": lambda: float("nan"),
}


@pytest.mark.parametrize("kind", _ODD)
def test_whatever_is_passed_nothing_is_raised_and_the_steps_are_recorded(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd = _ODD[kind]()
    caplog.set_level(logging.WARNING)
    with capture() as spans:
        run = hansard.start_run(
            odd, odd, odd, conversation_id=odd, user_id=odd, tags=odd, metadata=odd
        )
        run.step(odd, odd, input=odd, metadata={"a": odd, "k": 1}).end(
            output=odd, error=odd, status=odd
        )
        run.record_tool_call(odd, odd, call_id=odd, type=odd, description=odd)
        run.record_tool_result(odd, odd, call_id=odd, status=odd, error=odd)
        run.record_tool_result(odd, odd, arguments=odd, duration_s=odd)
        run.end(output=odd, error=odd, status=odd)
    list(map(ReadableSpan.to_json, spans))

    assert len(spans) == 4
    assert all(span.end_time is not None for span in spans)
    kinds = [record.message.split(";")[0].split(":")[0] for record in caplog.records]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("kind", _ODD)
def test_what_is_recorded_of_anything_can_be_sent(kind: str) -> None:
    odd = _ODD[kind]()
    with capture() as spans, hansard.start_run(odd, odd, odd, tags=[odd], metadata={"a": odd}) as r:
        r.record_tool_result(odd, odd, call_id=odd)

    assert encode_spans(list(spans)).SerializeToString()


def test_large_content_is_kept_by_reference() -> None:
    goal = "x" * 5_000
    with capture() as spans:
        hansard.start_run("clerk", user_goal=goal).end()

    assert semconv.RUN_GOAL not in (spans.one("invoke_agent clerk").attributes or {})
    assert spans.content("invoke_agent clerk", semconv.RUN_GOAL) == goal
