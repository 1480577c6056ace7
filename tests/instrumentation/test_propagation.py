"""Context over HTTP headers, the environment, threads, pools and processes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import os
import pickle
import threading
from collections.abc import Callable
from email import message_from_string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.trace import get_current_span

import hansard
from hansard._config.settings import load_settings
from hansard._runtime import recorder as _state
from hansard._tracing import propagation
from hansard.testing import capture

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


def current_ids() -> tuple[str, str]:
    context = get_current_span().get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


# ---- HTTP


def test_headers_name_the_span_and_the_run() -> None:
    with capture(), hansard.start_run("clerk", conversation_id="c 1") as run:
        headers = hansard.inject({"accept": "text/plain"})

    assert headers["accept"] == "text/plain"
    assert headers["traceparent"] == f"00-{run.run_id}-{1:016x}-01"
    assert set(headers["baggage"].split(",")) == {
        f"hansard.run.id={run.run_id}",
        "gen_ai.conversation.id=c+1",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": PARENT},
        {"TraceParent": PARENT},
        [("Traceparent", PARENT)],
        [(b"traceparent", PARENT.encode())],
        {b"TRACEPARENT": PARENT.encode()},
        message_from_string(f"Traceparent: {PARENT}\n\n"),
    ],
)
def test_a_trace_goes_on_from_headers_of_any_kind(headers: Any) -> None:
    before = otel_context.get_current()
    with capture() as spans, hansard.extract(headers), hansard.span("answer"):
        pass

    parent = spans.one("answer").parent
    assert parent is not None
    assert (f"{parent.trace_id:032x}", f"{parent.span_id:016x}") == (TRACE, SPAN)
    assert otel_context.get_current() is before


@pytest.mark.parametrize(
    "headers", [{}, [], {"traceparent": "nonsense"}, {"traceparent": f"00-{'0' * 32}-{SPAN}-01"}]
)
def test_headers_that_name_no_trace_change_nothing(headers: Any) -> None:
    with capture() as spans, hansard.span("around"), hansard.extract(headers), hansard.span("in"):
        pass

    assert spans.text() == "around\n  in\n"


@given(st.dictionaries(st.text() | st.binary(), st.text() | st.binary() | st.integers()))
def test_no_headers_can_raise(headers: dict[Any, Any]) -> None:
    with hansard.extract(headers):
        assert hansard.inject() is not None


@pytest.mark.parametrize("headers", [None, 7, ["abc"], {"traceparent": object()}])
def test_what_are_no_headers_at_all_changes_nothing(headers: Any) -> None:
    with capture() as spans, hansard.span("around"), hansard.extract(headers), hansard.span("in"):
        pass

    assert spans.text() == "around\n  in\n"


def test_the_conversation_comes_along_to_every_span_of_whoever_makes_it() -> None:
    with capture() as spans:
        with hansard.start_run("clerk", conversation_id="c-1"):
            headers = hansard.inject()
        with hansard.extract(headers), hansard.span("far away"):
            assert spans.provider is not None
            spans.provider.get_tracer("someone else").start_span("near it").end()
            own = {"gen_ai.conversation.id": "of its own"}
            spans.provider.get_tracer("someone else").start_span("apart", attributes=own).end()

    shown = spans.text("gen_ai.conversation.id")
    assert shown == (
        "invoke_agent clerk gen_ai.conversation.id=c-1\n"
        "  far away gen_ai.conversation.id=c-1\n"
        "    near it gen_ai.conversation.id=c-1\n"
        "    apart gen_ai.conversation.id=of its own\n"
    )


# ---- environment


def test_a_child_process_is_told_by_its_environment() -> None:
    with capture(), hansard.start_run("clerk", conversation_id="c-1") as run:
        told = hansard.child_environment({"PATH": "/bin", "TRACESTATE": "stale=1"})

    assert told["PATH"] == "/bin"
    assert told["TRACEPARENT"] == f"00-{run.run_id}-{1:016x}-01"
    assert "gen_ai.conversation.id=c-1" in told["BAGGAGE"]
    assert "TRACESTATE" not in told
    assert told["HANSARD_CONTINUE_TRACE"] == "true"


def test_the_environment_is_passed_on_as_it_is_where_nothing_is_recorded() -> None:
    given = {"TRACEPARENT": PARENT, "A": "b"}

    assert hansard.child_environment(given) == given
    assert hansard.child_environment() == dict(os.environ)


def test_a_trace_goes_on_from_the_environment() -> None:
    def child() -> None:
        propagation.continue_environment({"TRACEPARENT": PARENT, "BAGGAGE": "k=v", "PATH": "/"})
        found.append((current_ids(), baggage.get_baggage("k")))

    found: list[Any] = []
    contextvars.copy_context().run(child)

    assert found == [((TRACE, SPAN), "v")]


# ---- threads and pools


def record(name: str) -> str:
    with hansard.span(name):
        return name


def test_a_thread_records_where_it_was_started() -> None:
    with capture() as spans, hansard.span("around"):
        thread = threading.Thread(target=hansard.wrap_with_context(record), args=["in thread"])
        thread.start()
        thread.join()

    assert spans.text() == "around\n  in thread\n"


def test_pools_record_where_their_calls_were_submitted() -> None:
    with capture() as spans, concurrent.futures.ThreadPoolExecutor(2) as pool:
        bound = hansard.wrap_executor(pool)
        with hansard.span("first"):
            pool.submit(hansard.wrap_with_context(record), "submitted").result()
        with hansard.span("second"):
            assert list(bound.map(record, ["a", "b"], timeout=10)) == ["a", "b"]
        with hansard.span("third"):
            assert bound.submit(record, "by the bound one").result() == "by the bound one"
        pool.submit(record, "unbound").result()

    roots = {node["name"]: node for node in spans.tree(attributes=())}
    children = {
        name: sorted(child["name"] for child in node.get("children", []))
        for name, node in roots.items()
    }
    assert children == {
        "first": ["submitted"], "second": ["a", "b"], "third": ["by the bound one"], "unbound": [],
    }  # fmt: skip


def test_a_bound_pool_is_shut_down_as_the_pool_itself() -> None:
    pool = concurrent.futures.ThreadPoolExecutor(1)
    with hansard.wrap_executor(pool):
        pass

    with pytest.raises(RuntimeError):
        pool.submit(record, "late")


def test_a_bound_function_may_run_many_times_at_once_and_leaves_no_trace() -> None:
    with capture() as spans:
        with hansard.span("around"):
            bound = hansard.wrap_with_context(record)
        threads = [threading.Thread(target=bound, args=[str(n)]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bound("here")
        record("outside")

    around, outside = spans.tree(attributes=())
    assert sorted(child["name"] for child in around["children"]) == [*map(str, range(8)), "here"]
    assert outside == {"name": "outside"}


def test_asyncio_carries_it_and_a_bound_coroutine_function_too() -> None:
    async def work(name: str) -> str:
        await asyncio.sleep(0)
        return record(name)

    async def main() -> list[str]:
        with hansard.span("around"):
            bound = hansard.wrap_with_context(work)
            in_task = asyncio.create_task(work("task"))
            in_thread = asyncio.to_thread(record, "to_thread")
            names = [await in_task, await in_thread]
        return [*names, await bound("bound")]

    with capture() as spans:
        assert asyncio.run(main()) == ["task", "to_thread", "bound"]

    assert spans.text() == "around\n  task\n  to_thread\n  bound\n"


def test_the_current_run_comes_along() -> None:
    def look() -> None:
        found.append(hansard.current_run())

    found: list[hansard.Run | None] = []
    with capture(), hansard.start_run("clerk") as run:
        thread = threading.Thread(target=hansard.wrap_with_context(look))
        thread.start()
        thread.join()

    assert found == [run]


@pytest.mark.parametrize("function", [record, hansard.tool(record)])
def test_a_bound_function_is_what_it_was(function: Callable[..., Any]) -> None:
    bound = hansard.wrap_with_context(function)

    assert inspect.signature(bound) == inspect.signature(function)
    assert bound.__name__ == "record"
    assert bound.__wrapped__ is function  # type: ignore[attr-defined] # set by functools


def test_a_bound_function_crosses_to_another_process_with_its_place() -> None:
    with capture() as spans, hansard.start_run("clerk", conversation_id="c-1"):
        sent = pickle.dumps(hansard.wrap_with_context(record))
    with capture() as there:
        pickle.loads(sent)("over there")

    parent = there.one("over there").parent
    assert parent is not None
    sender = spans.one("invoke_agent clerk").context
    assert sender is not None
    assert (parent.trace_id, parent.span_id) == (sender.trace_id, sender.span_id)
    assert parent.is_remote
    assert there.text("gen_ai.conversation.id") == "over there gen_ai.conversation.id=c-1\n"


def test_exceptions_pass_through_a_bound_function() -> None:
    def fail() -> None:
        raise KeyError("mine")

    before = otel_context.get_current()
    with pytest.raises(KeyError, match="mine"):
        hansard.wrap_with_context(fail)()

    assert otel_context.get_current() is before


# ---- workers


def test_a_worker_starts_as_this_process_did_and_where_it_is() -> None:
    with capture(), hansard.start_run("clerk") as run:
        recorder = _state.active()
        assert recorder is not None
        arguments = {"endpoint": "http://127.0.0.1:1/v1/traces", "service_name": "mine"}
        recorder.settings = load_settings(arguments, {"HANSARD_EXPORT_DELAY_MS": "7"})
        start: Any = pickle.loads(pickle.dumps(hansard.worker_initializer(service_name="theirs")))

    options, headers, instrumented = start.args
    assert instrumented == []
    assert options == {"endpoint": "http://127.0.0.1:1/v1/traces", "service_name": "theirs"}
    assert headers["traceparent"] == f"00-{run.run_id}-{1:016x}-01"


def test_workers_of_a_process_that_does_not_record_do_not_either() -> None:
    start = pickle.loads(pickle.dumps(hansard.worker_initializer(service_name="mine")))

    start()

    assert _state.active() is None
