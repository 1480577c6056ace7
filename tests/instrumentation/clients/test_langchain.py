"""Calls that LangChain makes are placed below the steps that it makes them for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import hansard
from hansard._clients.instrument import InstrumentState
from tests.instrumentation.clients.asking import CHAT
from tests.instrumentation.clients.langchain_stand_in import write_langchain
from tests.instrumentation.clients.provider import Provider, providing
from tests.instrumentation.clients.recording import Recorded, recording
from tests.instrumentation.clients.test_instrument import package

CALL = "chat gpt-6-luna"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("langchain")
    write_langchain(folder)
    entry = "langchain_stand_in_instrumentor"
    code = (folder / f"{entry}.py").read_text()
    name = "openinference-instrumentation-langchain"
    package(folder, name, entry=entry, code=code, library="langchain")
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for found in [one for one in sys.modules if one.startswith("langchain")]:
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
def langchain(recorded: Recorded) -> Any:
    """Return the instrumentor, which runs chains and models too."""
    [found] = hansard.instrument("langchain")
    assert found.state is InstrumentState.ON
    return sys.modules["langchain_stand_in_instrumentor"].Instrumentor()


@pytest.fixture
def client(provider: Provider) -> Iterator[Any]:
    with CHAT.sync(provider) as made:
        yield hansard.instrument_client(made)


def parents(recorded: Recorded) -> list[tuple[str, str | None]]:
    """Return each span with the name of its parent, in the order of their ends."""
    names = {span.context.span_id: span.name for span in recorded.spans if span.context}
    return [
        (span.name, None if span.parent is None else names[span.parent.span_id])
        for span in recorded.spans
    ]


def duplicates(recorded: Recorded) -> list[ReadableSpan]:
    return [span for span in recorded.spans if (span.attributes or {}).get("hansard.duplicate")]


def test_a_call_is_part_of_the_model_step_that_makes_it(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    with langchain.model():
        CHAT.call(client)

    assert parents(recorded) == [(CALL, "model"), ("model", None)]
    assert [span.name for span in duplicates(recorded)] == ["model"]


def test_a_streamed_and_an_asynchronous_call_are_too(
    recorded: Recorded, langchain: Any, client: Any, provider: Provider
) -> None:
    with langchain.model():
        assert list(CHAT.call(client, stream=True))

    async def ask() -> None:
        async with CHAT.asynchronous(provider) as other:
            with langchain.model():
                await CHAT.call(hansard.instrument_client(other))

    asyncio.run(ask())

    assert parents(recorded) == [(CALL, "model"), ("model", None)] * 2


def test_models_that_are_asked_in_threads_have_their_own_calls(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    def ask(_: int) -> None:
        with langchain.model():
            CHAT.call(client)

    with langchain.chain(), ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(copy_context().run, ask, number) for number in range(4)]:
            done.result()

    found = parents(recorded)
    assert sorted(found[:-1]) == [(CALL, "model")] * 4 + [("model", "chain")] * 4
    called = {span.parent.span_id for span in recorded.spans if span.name == CALL and span.parent}
    assert len(called) == 4


def test_each_of_a_batch_that_began_together_has_one_call(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    runs = [langchain.begin("model", batch_size=2) for _ in range(2)]
    spans = [langchain.get_span(run).context.span_id for run in runs]
    for _ in runs:
        CHAT.call(client)
    for run in runs:
        langchain.end(run)

    called = [span.parent for span in recorded.spans if span.name == CALL]
    assert [one and one.span_id for one in called] == spans


def test_a_call_of_a_tool_or_a_chain_is_in_its_trace(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    with langchain.chain("agent"), langchain.chain("tool"):
        CHAT.call(client)

    assert parents(recorded) == [(CALL, "tool"), ("tool", "agent"), ("agent", None)]
    assert duplicates(recorded) == []


def test_a_decorated_tool_is_in_the_trace_of_the_chain_that_runs_it(
    recorded: Recorded, langchain: Any
) -> None:
    @hansard.tool
    def look() -> str:
        return "found"

    with langchain.chain("agent"):
        look()

    assert parents(recorded) == [("execute_tool look", "agent"), ("agent", None)]


def test_what_a_run_of_ours_is_around_stays_in_it(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    @hansard.agent
    def desk() -> None:
        with langchain.chain(), langchain.model():
            CHAT.call(client)
        CHAT.call(client)

    desk()

    assert parents(recorded) == [
        (CALL, "model"), ("model", "chain"), ("chain", "invoke_agent desk"),
        (CALL, "invoke_agent desk"), ("invoke_agent desk", None),
    ]  # fmt: skip


def test_a_span_that_was_begun_inside_of_a_step_is_the_parent(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    tracer = recorded.recorder.tracer
    with langchain.model(), tracer.start_as_current_span("mine"):
        CHAT.call(client)
    with langchain.chain(), tracer.start_as_current_span("other"):
        CHAT.call(client)

    assert (CALL, "mine") in parents(recorded)
    assert (CALL, "other") in parents(recorded)
    assert duplicates(recorded) == []


def test_a_second_call_while_a_stream_is_open_is_not_the_streams(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    with langchain.model():
        CHAT.call(client)
        CHAT.call(client)
    CHAT.call(client)

    assert [parent for name, parent in parents(recorded) if name == CALL] == ["model", None, None]


def test_an_instrumentor_of_a_client_places_its_calls_alike(
    recorded: Recorded, langchain: Any, provider: Provider
) -> None:
    hansard.instrument("openai")
    with CHAT.sync(provider) as plain, langchain.model():
        CHAT.call(plain)

    assert parents(recorded) == [(CALL, "model"), ("model", None)]


def test_without_the_instrumentor_nothing_is_placed(
    recorded: Recorded, langchain: Any, client: Any
) -> None:
    run = langchain.begin("model", batch_size=1)
    hansard.uninstrument("langchain")
    CHAT.call(client)
    langchain.end(run)

    assert (CALL, None) in parents(recorded)
