"""A stream's request is placed below LlamaIndex's step; which model served is on the step."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import hansard
from hansard._clients.instrument import InstrumentState
from tests.instrumentation.clients.asking import CHAT
from tests.instrumentation.clients.llama_index_stand_in import write_llama_index
from tests.instrumentation.clients.provider import Provider, providing
from tests.instrumentation.clients.recording import Recorded, recording
from tests.instrumentation.clients.test_instrument import package

CALL = "chat gpt-6-luna"
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("llama_index")
    write_llama_index(folder)
    entry = "llama_index_stand_in_instrumentor"
    code = (folder / f"{entry}.py").read_text()
    name = "openinference-instrumentation-llama-index"
    package(folder, name, entry=entry, code=code, library="llama_index")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for found in [one for one in sys.modules if one.startswith("llama_index")]:
        del sys.modules[found]


@pytest.fixture
def recorded(installed: None, tmp_path: Path) -> Iterator[Recorded]:
    with recording(tmp_path) as found:
        yield found
        hansard.uninstrument()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@pytest.fixture
def llama_index(recorded: Recorded) -> Any:
    """Return the instrumentor's module, which has models too."""
    [found] = hansard.instrument("llama_index")
    assert found.state is InstrumentState.ON
    return sys.modules["llama_index_stand_in_instrumentor"]


@pytest.fixture
def ask(provider: Provider) -> Iterator[Ask]:
    with CHAT.sync(provider) as made:
        yield partial(CHAT.call, hansard.instrument_client(made))


def parents(recorded: Recorded, llama_index: Any) -> list[tuple[str, str | None]]:
    """Return each span with the name of its parent, by start."""
    llama_index.Instrumentor().end()
    spans = sorted(recorded.spans, key=lambda span: span.start_time or 0)
    names = {span.context.span_id: span.name for span in spans if span.context}
    return [(one.name, None if one.parent is None else names[one.parent.span_id]) for one in spans]


def calls(recorded: Recorded) -> list[ReadableSpan]:
    return [span for span in recorded.spans if span.name == CALL]


def repeated(recorded: Recorded) -> list[str]:
    """Return the spans that another one describes as well."""
    found = [span for span in recorded.spans if (span.attributes or {}).get("hansard.duplicate")]
    return [span.name for span in found]


def test_the_request_of_a_stream_is_part_of_the_step_that_made_it(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    assert list(llama_index.Model().stream(ask))

    assert parents(recorded, llama_index) == [("Model", None), (CALL, "Model")]
    assert repeated(recorded) == ["Model"]


def test_an_asynchronous_stream_is_too_in_any_task(
    recorded: Recorded, llama_index: Any, provider: Provider
) -> None:
    async def read(stream: Any) -> None:
        async for _ in stream:
            pass

    async def both() -> None:
        async with CHAT.asynchronous(provider) as made:
            client = hansard.instrument_client(made)
            streams = [llama_index.Model().astream(partial(CHAT.call, client)) for _ in range(3)]
            await asyncio.gather(*map(read, streams))

    asyncio.run(both())

    found = parents(recorded, llama_index)
    assert sorted(found, key=str) == [("Model", None)] * 3 + [(CALL, "Model")] * 3
    assert len({call.parent.span_id for call in calls(recorded) if call.parent}) == 3


def test_each_stream_has_its_own_step_in_whatever_order_and_thread_they_are_read(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    streams = [llama_index.Model().stream(ask) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(list, reversed(streams)))

    found = parents(recorded, llama_index)
    assert sorted(found, key=str) == [("Model", None)] * 8 + [(CALL, "Model")] * 8
    assert len({call.parent.span_id for call in calls(recorded) if call.parent}) == 8


def test_a_call_of_the_program_while_a_stream_waits_is_a_call_of_its_own(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    stream = llama_index.Model().stream(ask)
    ask()
    list(stream)
    ask()

    assert parents(recorded, llama_index) == [
        ("Model", None), (CALL, None), (CALL, "Model"), (CALL, None)
    ]  # fmt: skip


def test_a_stream_that_is_left_early_or_never_read_leaves_nothing_behind(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    stream = llama_index.Model().stream(ask)
    next(stream)
    stream.close()
    unread = llama_index.Model().stream(ask)
    del unread, stream
    gc.collect()
    ask()

    assert parents(recorded, llama_index) == [
        ("Model", None), (CALL, "Model"), ("Model", None), (CALL, None)
    ]  # fmt: skip


def test_the_innermost_stream_is_the_one(recorded: Recorded, llama_index: Any, ask: Ask) -> None:
    assert list(llama_index.Engine().stream(llama_index.Model(), ask))

    assert (CALL, "Model") in parents(recorded, llama_index)


def test_a_stream_that_a_run_of_ours_reads_stays_in_the_run_and_counts_there_alone(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    stream = llama_index.Model().stream(ask)

    @hansard.agent
    def desk() -> None:
        list(stream)
        list(llama_index.Model().stream(ask))

    desk()

    assert parents(recorded, llama_index) == [
        ("Model", None), ("invoke_agent desk", None), (CALL, "invoke_agent desk"),
        ("Model", "invoke_agent desk"), (CALL, "Model"),
    ]  # fmt: skip
    assert repeated(recorded) == ["Model", "Model"]


def test_a_span_of_the_same_trace_around_the_reader_is_not_the_parent(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    @hansard.tool
    def look(stream: Any) -> str:
        return str(list(stream))

    with hansard.start_run("desk"):
        look(llama_index.Model().stream(ask))

    assert (CALL, "Model") in parents(recorded, llama_index)


def test_an_instrumentor_of_a_client_places_its_calls_alike(
    recorded: Recorded, llama_index: Any, provider: Provider
) -> None:
    hansard.instrument("openai")
    with CHAT.sync(provider) as plain:
        list(llama_index.Model().stream(partial(CHAT.call, plain)))

    assert parents(recorded, llama_index) == [("Model", None), (CALL, "Model")]


@pytest.mark.parametrize(
    ("raw", "served"),
    [
        ({"model": "gpt-6-luna-2026-10-01", "id": "chatcmpl-1"}, "gpt-6-luna-2026-10-01"),
        (SimpleNamespace(model="gpt-6-luna-2026-10-01"), "gpt-6-luna-2026-10-01"),
        ({"model_version": "gemini-2.5-flash-001"}, "gemini-2.5-flash-001"),
        ({"model": {"name": "odd"}}, None),
        ({}, None),
        (None, None),
        (7, None),
    ],
)
def test_the_model_that_served_is_named_as_the_response_names_it(
    recorded: Recorded, llama_index: Any, raw: Any, served: str | None
) -> None:
    llama_index.Model().chat(raw)

    [step] = recorded.spans
    assert (step.attributes or {}).get("gen_ai.response.model") == served


def test_without_the_instrumentor_nothing_is_placed(
    recorded: Recorded, llama_index: Any, ask: Ask
) -> None:
    stream = llama_index.Model().stream(ask)
    hansard.uninstrument("llama_index")
    list(stream)

    assert (CALL, None) in parents(recorded, llama_index)
