"""What a call of a model tells: attributes, exact bytes, a recipe; and how it may end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import hansard
from hansard import CompiledStep, Run
from hansard._runtime.recorder import active
from hansard.testing import capture
from hansard_compiler.calls import Message, TextPart
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.base import RenderInput
from hansard_compiler.providers.recipe import Recipe
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.instrumentation.clients.provider import (
    STREAMS,
    Provider,
    Reply,
    json_reply,
    providing,
    stream_reply,
)
from tests.instrumentation.compiling.desk import (
    ITEMS,
    MODEL,
    attributes,
    options,
    running,
    scripted,
)

KEY = "test-key-1"
MODELS = {
    "openai": "gpt-6-luna",
    "anthropic": "claude-haiku-5-5",
    "openai_compatible": "qwen-3",
}
by_provider = pytest.mark.parametrize("name", MODELS)


@pytest.fixture
def server() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.fixture
def adapters(server: Provider) -> Iterator[dict[str, Adapter]]:
    made = {name: real(name, server) for name in MODELS}
    yield made
    for adapter in made.values():
        adapter.close()


def real(name: str, server: Provider, *, max_retries: int = 0) -> Adapter:
    """Return an adapter that sends with the official package to the server on this machine."""
    base = server.address + ("" if name == "anthropic" else "/v1")
    connection = Connection(api_key=KEY, base_url=base, max_retries=max_retries, timeout_s=5)
    return adapter_for(name, AdapterSettings(connection))


def compiled_for(name: str, run: Run, adapters: dict[str, Adapter]) -> CompiledStep:
    return run.compile_step(ITEMS, **options(provider=adapters[name], model=MODELS[name]))


def call_name(name: str) -> str:
    return f"chat {MODELS[name]}"


@pytest.mark.covers("SD-03", "RC-07", "RC-08", "PA-08", "PA-09")
@by_provider
def test_a_call_is_one_span_with_the_bytes_that_went_over_the_wire(
    name: str, server: Provider, adapters: dict[str, Adapter]
) -> None:
    with running() as (spans, run), run.step("answer"):
        compiled = compiled_for(name, run, adapters)
        answer = run.call_model(compiled, max_output_tokens=50)

    assert answer.text == "Grüße!"
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("get", {"k": 1})]
    [received] = server.received
    told = attributes(spans, call_name(name))
    assert spans.payloads[told["hansard.request.ref"]] == received.body
    assert json.loads(spans.payloads[told["hansard.response.ref"]]) == answer.raw.response
    assert told["hansard.compilation.id"] == compiled.id
    assert told["hansard.compilation.stable_prefix_hash"] == compiled.stable_prefix_hash
    assert told["gen_ai.usage.input_tokens"] == answer.tokens.input == 100
    assert told["gen_ai.usage.output_tokens"] == 20
    assert told["gen_ai.usage.cache_read.input_tokens"] == 64
    assert told["gen_ai.request.max_tokens"] == 50
    assert told["gen_ai.provider.name"] == name
    assert told["gen_ai.response.id"] == answer.raw.call.response_id
    assert told["server.address"] == "127.0.0.1"
    assert told["hansard.tokens.estimated"] == answer.estimated_input_tokens
    assert spans.text() == (
        f"invoke_agent clerk\n  answer\n    hansard.compile\n    {call_name(name)}\n"
    )


@by_provider
def test_a_streamed_call_tells_its_first_chunk_and_keeps_the_stream(
    name: str, adapters: dict[str, Adapter]
) -> None:
    events: list[Any] = []

    with running(fixed_times=False) as (spans, run):
        compiled = compiled_for(name, run, adapters)
        answer = run.call_model(compiled, stream=True, on_event=events.append)

    told = attributes(spans, call_name(name))
    assert events
    assert told["gen_ai.request.stream"] is True
    assert 0 < told["gen_ai.response.time_to_first_chunk"] < 5
    assert spans.payloads[told["hansard.response.ref"]] == answer.raw.exchange.response
    assert spans.payloads[told["hansard.response.ref"]].startswith((b"event: ", b"data: "))


@pytest.mark.covers("RC-18", "RC-13")
@by_provider
def test_the_recipe_is_enough_to_send_the_same_bytes_again(
    name: str, server: Provider, adapters: dict[str, Adapter]
) -> None:
    with running() as (spans, run):
        compiled = compiled_for(name, run, adapters)
        answer = run.call_model(compiled, max_output_tokens=50, extra={"metadata": {"a": "b"}})

    recipe = Recipe.model_validate_json(spans.payloads[answer.recorded.recipe_ref])
    assert recipe.request.is_exact
    assert recipe.request.address == f"{server.address}{server.received[0].path}"
    assert recipe.request.headers["content-type"] == "application/json"
    assert recipe.adapter.client_version
    assert (recipe.provider, recipe.model) == (name, MODELS[name])
    assert recipe.sampling == {"max_output_tokens": 50}
    assert recipe.parameters == {"extra": {"metadata": {"a": "b"}}}
    assert recipe.response_ref == answer.recorded.response_ref
    assert recipe.compilation is not None
    assert recipe.compilation.hash == compiled.hash
    assert recipe.compilation.request_ref in spans.payloads
    assert KEY not in recipe.model_dump_json()

    adapters[recipe.provider].resend(spans.payloads[recipe.request.ref])

    assert server.received[1].body == server.received[0].body


def test_the_answer_goes_on_as_an_input_of_the_next_compile() -> None:
    model = scripted(call=[{"name": "find", "arguments": {"id": 7}}])

    with running() as (_, run):
        first = run.call_model(run.compile_step(ITEMS, **options(provider=model)))
        [call] = first.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "in the post"}
        second = run.compile_step([*ITEMS, first.message, result], **options(provider=model))

    parts = [part for message in second.messages for part in message["parts"]]
    assert [part["type"] for part in parts][-2:] == ["tool_call", "tool_result"]


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.covers("PA-22", "RC-12")
def test_a_failure_is_raised_as_it_is_and_the_span_says_when_to_try_again(
    server: Provider, adapters: dict[str, Adapter]
) -> None:
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    server.replies.append(json_reply(body, status=429, retry_after="7", request_id="req_9"))

    with running() as (spans, run):
        compiled = compiled_for("anthropic", run, adapters)
        with pytest.raises(failures.RateLimited) as raised:
            run.call_model(compiled)

    assert raised.value.retry_after_s == 7
    told = attributes(spans, call_name("anthropic"))
    assert spans.one(call_name("anthropic")).status.status_code.name == "ERROR"
    assert told["error.type"].endswith("RateLimited")
    assert told["hansard.error.code"] == "rate_limited"
    assert told["hansard.error.retryable"] is True
    assert told["hansard.error.retry_after_s"] == 7
    assert told["http.response.status_code"] == 429
    assert told["http.response.header.request-id"] == ("req_9",)
    assert told["hansard.tokens.estimated"] > 0
    assert json.loads(spans.payloads[told["hansard.response.ref"]]) == body
    assert spans.payloads[told["hansard.request.ref"]] == server.received[0].body


def test_tries_that_the_client_makes_again_are_events_of_one_span(server: Provider) -> None:
    server.replies.append(Reply([b"{}"], status=500, headers={"retry-after-ms": "1"}))
    adapter = real("openai", server, max_retries=2)

    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, **options(provider=adapter, model=MODELS["openai"]))
        run.call_model(compiled)
    adapter.close()

    span = spans.one(call_name("openai"))
    [event] = span.events
    assert event.name == "hansard.attempt"
    assert (event.attributes or {})["http.response.status_code"] == 500
    assert (span.attributes or {})["http.request.resend_count"] == 1


@pytest.mark.parametrize(
    ("more", "error"),
    [({"max_input_tokens": 3}, failures.OverLimit), ({"seed": 1}, failures.NotRenderable)],
)
def test_what_is_refused_before_sending_has_no_request(
    more: Any, error: type[Exception], server: Provider, adapters: dict[str, Adapter]
) -> None:
    server.replies.append(json_reply({"input_tokens": 99}))

    with running() as (spans, run):
        compiled = compiled_for("anthropic", run, adapters)
        with pytest.raises(error):
            run.call_model(compiled, **more)

    told = attributes(spans, call_name("anthropic"))
    assert told["hansard.error.code"] == getattr(error, "code", "")
    assert "hansard.request.ref" not in told


def test_a_count_that_the_provider_was_asked_for_is_an_event(adapters: dict[str, Adapter]) -> None:
    with running() as (spans, run):
        compiled = compiled_for("anthropic", run, adapters)
        run.call_model(compiled, max_input_tokens=5_000)

    [event] = spans.one(call_name("anthropic")).events
    assert event.name == "hansard.token_count"
    assert (event.attributes or {})["url.path"] == "/v1/messages/count_tokens"


def test_an_answer_cut_at_the_limit_is_given_and_named() -> None:
    with running() as (spans, run):
        model = scripted(say="In the", finish="length")
        answer = run.call_model(run.compile_step(ITEMS, **options(provider=model)))

    assert answer.text == "In the"
    assert answer.shortfall is not None
    assert (
        attributes(spans, f"chat {MODEL}")["hansard.call.incomplete_reason"] == "response_truncated"
    )


def test_there_is_no_call_without_a_provider() -> None:
    given = RenderInput(model=MODEL, messages=(Message("user", (TextPart("hi"),)),))

    with pytest.raises(ConfigError, match="needs a provider"):
        hansard.call_model(given)
    with pytest.raises(TypeError, match="has its own seed"):
        hansard.call_model(given, provider=scripted(), seed=7)
    assert hansard.call_model(given, provider=scripted()).text == "In the post."


# --- streams and tasks that are left ------------------------------------------------------------


class _Enough(Exception):
    pass


def test_what_on_event_raises_closes_the_stream_and_comes_through(
    server: Provider, adapters: dict[str, Adapter]
) -> None:
    gate = threading.Event()
    server.replies.append(stream_reply(*STREAMS["/v1/messages"], gate=gate))

    def stop(event: Any) -> None:
        raise _Enough

    with running() as (spans, run):
        compiled = compiled_for("anthropic", run, adapters)
        with pytest.raises(_Enough):
            run.call_model(compiled, stream=True, on_event=stop)
    gate.set()

    told = attributes(spans, call_name("anthropic"))
    assert told["error.type"].endswith("_Enough")
    kept = spans.payloads[told["hansard.response.ref"]]
    assert b"message_start" in kept
    assert b"message_stop" not in kept


def test_an_interrupt_in_a_stream_is_a_cancellation(adapters: dict[str, Adapter]) -> None:
    def stop(event: Any) -> None:
        raise KeyboardInterrupt

    with capture() as spans:
        compiled = hansard.compile_step(
            inputs=ITEMS, **options(provider=adapters["openai"], model=MODELS["openai"])
        )
        with pytest.raises(KeyboardInterrupt):
            hansard.call_model(compiled, stream=True, on_event=stop)

    assert attributes(spans, call_name("openai"))["hansard.cancelled"] is True


def test_on_event_runs_outside_of_the_call() -> None:
    with running() as (spans, run), run.step("answer"):
        compiled = run.compile_step(ITEMS, **options())

        @hansard.trace
        def show(event: Any) -> None: ...

        run.call_model(compiled, stream=True, on_event=show)

    steps = [line for line in spans.text().splitlines() if "show" in line]
    assert steps
    assert {len(line) - len(line.lstrip()) for line in steps} == {4}  # below the step, beside it


def test_an_awaited_call_does_not_hold_up_the_loop(
    server: Provider, adapters: dict[str, Adapter]
) -> None:
    gate = threading.Event()
    server.replies.append(stream_reply(*STREAMS["/v1/messages"], gate=gate))

    async def turn() -> Any:
        async with hansard.start_run("clerk") as run:
            compiled = compiled_for("anthropic", run, adapters)
            call = asyncio.ensure_future(run.acall_model(compiled, stream=True))
            await asyncio.sleep(0)
            gate.set()  # only a free loop comes here before the answer is whole
            return await call

    with capture() as spans:
        answer = asyncio.run(turn())

    assert answer.text == "Grüße!"
    assert spans.text() == (f"invoke_agent clerk\n  hansard.compile\n  {call_name('anthropic')}\n")


def test_an_awaited_failure_is_raised_where_it_is_awaited() -> None:
    async def turn() -> None:
        compiled = hansard.compile_step(
            inputs=ITEMS, **options(provider=scripted(fail="overloaded"))
        )
        await hansard.acall_model(compiled)

    with capture() as spans, pytest.raises(failures.Overloaded):
        asyncio.run(turn())

    assert attributes(spans, f"chat {MODEL}")["hansard.error.code"] == "overloaded"


def test_stop_iteration_from_on_event_does_not_hang_the_task() -> None:
    def stop(event: Any) -> None:
        raise StopIteration

    async def turn() -> None:
        compiled = hansard.compile_step(inputs=ITEMS, **options())
        await hansard.acall_model(compiled, stream=True, on_event=stop)

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(turn())


def test_a_cancelled_task_leaves_at_once_and_its_stream_is_closed(
    server: Provider, adapters: dict[str, Adapter]
) -> None:
    gate, seen = threading.Event(), threading.Event()
    server.replies.append(stream_reply(*STREAMS["/v1/messages"], gate=gate))
    told_after: list[Any] = []

    def on_event(event: Any) -> None:
        told_after.append(event)
        seen.set()

    async def turn() -> None:
        async with hansard.start_run("clerk") as run:
            compiled = compiled_for("anthropic", run, adapters)
            call = asyncio.ensure_future(run.acall_model(compiled, stream=True, on_event=on_event))
            await asyncio.to_thread(seen.wait, 10)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    with capture() as spans:
        asyncio.run(turn())
        text = spans.text()
        gate.set()
        for thread in threading.enumerate():
            if thread.name == "hansard-gate":
                thread.join(10)

    assert f"{call_name('anthropic')} [cancelled]" in text
    assert len(told_after) == 1
    told = attributes(spans, call_name("anthropic"))
    assert spans.payloads[told["hansard.request.ref"]] == server.received[0].body


# --- nobody tells a call twice ------------------------------------------------------------------


@pytest.mark.parametrize("package", ["openinference", "genai"])
def test_instrumentors_that_are_on_as_well_add_no_second_span(
    package: str, adapters: dict[str, Adapter]
) -> None:
    with running() as (spans, run):
        instrumentor = _instrumentor(package)
        instrumentor.instrument(tracer_provider=spans.provider)
        try:
            compiled = compiled_for("openai", run, adapters)
            run.call_model(compiled)
        finally:
            instrumentor.uninstrument()

    assert spans.text() == f"invoke_agent clerk\n  hansard.compile\n  {call_name('openai')}\n"


def _instrumentor(package: str) -> Any:
    if package == "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor

        return OpenAIInstrumentor()
    from hansard._clients.instrument import installed

    [found] = [one for one in installed()["openai"] if "genai" in one.package]
    return found.entry.load()()


def test_a_client_that_is_recorded_is_quiet_inside_a_call(
    server: Provider, adapters: dict[str, Adapter]
) -> None:
    adapter = adapters["anthropic"]
    package, client = adapter._wire._ready()  # type: ignore[attr-defined]
    hansard.instrument_client(client)

    with running() as (spans, run):
        compiled = run.compile_step(ITEMS, **options(provider=adapter, model=MODELS["anthropic"]))
        run.call_model(compiled)
        outside = attributes(spans, call_name("anthropic"))
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])

    assert package.__name__ == "anthropic"
    assert "hansard.duplicate" not in outside
    assert spans.text() == (
        f"invoke_agent clerk\n  hansard.compile\n  {call_name('anthropic')}\n  chat m\n"
    )


def test_a_recording_that_breaks_never_breaks_the_call() -> None:
    with running() as (spans, run):
        recorder = active()
        assert recorder is not None
        recorder.payloads = _Broken()
        compiled = run.compile_step(ITEMS, **options())
        answer = run.call_model(compiled)

    assert answer.text == "In the post."
    assert spans.text() == f"invoke_agent clerk\n  hansard.compile\n  chat {MODEL}\n"


class _Broken:
    """A place for payloads that breaks its promise never to raise."""

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        raise OSError("the disk is gone")
