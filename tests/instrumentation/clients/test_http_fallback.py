"""`hansard.instrument()` where no instrumentor works: the clients themselves are recorded."""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._clients.instrument import InstrumentState, instrumentations
from tests.instrumentation.clients.asking import APIS, CHAT, MESSAGES, Api
from tests.instrumentation.clients.provider import Provider, providing
from tests.instrumentation.clients.recording import Recorded, recording
from tests.instrumentation.clients.test_instrument import BROKEN, RAISES, REFUSES, package

CHATS = [f"chat {api.arguments['model']}" for api in APIS]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """A recorder in an environment whose only instrumentors are those in a folder of the test."""
    found = importlib.metadata.entry_points
    folder = tmp_path / "instrumentors"
    monkeypatch.syspath_prepend(str(folder))

    def entry_points(**chosen: str) -> EntryPoints:
        every = found(**chosen)
        return EntryPoints(
            one for one in every if one.dist is not None and str(one.dist.locate_file("")) in here
        )

    here = {str(folder)}
    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    with recording(tmp_path / "data") as made:
        yield made
    hansard.uninstrument()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


def names(recorded: Recorded) -> list[str]:
    return [span.name for span in recorded.spans]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_clients_made_before_and_after_are_recorded(
    api: Api, recorded: Recorded, provider: Provider
) -> None:
    with api.sync(provider) as before:
        states = [one.state for one in hansard.instrument()]
        with api.sync(provider) as after:
            for client in (before, after, after.with_options(max_retries=1)):
                api.call(client)

    assert states == [InstrumentState.ON_HTTP, InstrumentState.ON_HTTP]
    assert names(recorded) == [f"chat {api.arguments['model']}"] * 3
    sent = dict(recorded.spans[0].attributes or {})
    assert recorded.payload(sent["hansard.request.ref"]) == provider.received[0].body
    assert sent["gen_ai.usage.input_tokens"] == 100
    assert "Grüß mich" in sent["gen_ai.input.messages"]
    assert "Grüße!" in sent["gen_ai.output.messages"]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_streams_and_async_clients_are_recorded_to_their_last_byte(
    api: Api, recorded: Recorded, provider: Provider
) -> None:
    hansard.instrument()
    with api.sync(provider) as client:
        assert list(api.call(client, stream=True))

    async def ask() -> None:
        async with api.asynchronous(provider) as client:
            await api.call(client)
            assert [chunk async for chunk in await api.call(client, stream=True)]

    asyncio.run(ask())

    assert len(recorded.spans) == 3
    for span in recorded.spans:
        sent = dict(span.attributes or {})
        assert sent["gen_ai.usage.output_tokens"] == 20
        assert "Grüße!" in sent["gen_ai.output.messages"]


def test_a_client_that_is_recorded_by_itself_is_recorded_once(
    recorded: Recorded, provider: Provider
) -> None:
    with MESSAGES.sync(provider) as client:
        hansard.instrument_client(client)
        hansard.instrument("anthropic")
        [again] = hansard.instrument("anthropic")
        MESSAGES.call(client)

    assert again.state is InstrumentState.ALREADY_ON
    assert len(names(recorded)) == 1


def test_uninstrument_leaves_the_clients_as_they_were(
    recorded: Recorded, provider: Provider
) -> None:
    with CHAT.sync(provider) as client, MESSAGES.sync(provider) as own:
        original = type(client).request
        hansard.instrument_client(own)
        hansard.instrument()
        CHAT.call(client)

        off = {one.library: one.state for one in hansard.uninstrument()}
        CHAT.call(client)
        MESSAGES.call(own)

        assert type(client).request is original
    assert off == {"openai": InstrumentState.OFF, "anthropic": InstrumentState.OFF}
    assert names(recorded) == [CHATS[1], CHATS[2]]


def test_another_wrapper_around_ours_outlives_it(recorded: Recorded, provider: Provider) -> None:
    import openai

    hansard.instrument("openai")
    owner: Any = next(base for base in openai.OpenAI.__mro__ if "request" in vars(base))
    ours = owner.request
    asked = []

    def around(client: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(client)
        return ours(client, *args, **kwargs)

    owner.request = around
    try:
        hansard.uninstrument("openai")
        with CHAT.sync(provider) as client:
            CHAT.call(client)
    finally:
        owner.request = ours.__wrapped__

    assert len(asked) == 1
    assert recorded.spans == []


def test_errors_of_the_provider_reach_the_program(recorded: Recorded, provider: Provider) -> None:
    import openai

    hansard.instrument("openai")
    provider.replies.append(_refusal())
    with CHAT.sync(provider) as client, pytest.raises(openai.RateLimitError):
        CHAT.call(client)

    assert recorded.attributes["error.type"] == "openai.RateLimitError"


def _refusal() -> Any:
    from tests.instrumentation.clients.provider import json_reply

    return json_reply({"error": {"message": "slow down"}}, status=429)


GENAI = "opentelemetry-instrumentation-genai-openai"
V2 = "opentelemetry-instrumentation-openai-v2"


@pytest.mark.parametrize("name", [V2, GENAI])
@pytest.mark.parametrize("code", [REFUSES, BROKEN, RAISES], ids=["refuses", "broken", "raises"])
def test_an_instrumentor_that_does_not_work_is_named_beside_one_that_does(
    code: str,
    name: str,
    recorded: Recorded,
    provider: Provider,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = f"inst_openai_{len(code)}_{len(name)}"
    package(tmp_path / "instrumentors", name, entry=entry, code=code, library="openai")

    [found] = hansard.instrument("openai")
    with CHAT.sync(provider) as client:
        CHAT.call(client)

    assert found.state is InstrumentState.ON_HTTP
    assert f"{name} cannot be switched on" in caplog.text
    assert "its HTTP clients are recorded instead" in caplog.text
    assert (f"one that works: pip install {GENAI}" in caplog.text) == (name != GENAI)
    assert names(recorded) == [CHATS[1]]


@pytest.mark.parametrize("with_instrumentor", [True, False])
def test_a_client_that_is_not_installed_is_what_is_to_be_installed(
    with_instrumentor: bool,
    recorded: Recorded,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No instrumentor would help: the hint named one, and the next hint the same again."""
    monkeypatch.setitem(sys.modules, "openai", None)  # as Python finds what is not there
    if with_instrumentor:
        package(tmp_path / "instrumentors", V2, entry="inst_alone", code=BROKEN, library="openai")

    [found] = hansard.instrument("openai")

    assert found.state is (
        InstrumentState.FAILED if with_instrumentor else InstrumentState.NOT_INSTALLED
    )
    assert "openai is not installed: pip install openai" in caplog.text
    assert "pip install opentelemetry" not in caplog.text


def test_nothing_is_said_where_the_clients_are_recorded_without_trouble(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    hansard.instrument()

    assert caplog.text == ""


def test_an_instrumentor_that_works_is_taken_and_the_clients_are_left_alone(
    recorded: Recorded, provider: Provider, tmp_path: Path
) -> None:
    import openai

    from tests.instrumentation.clients.test_instrument import WORKS

    before = openai.OpenAI.request
    package(
        tmp_path / "instrumentors", "openinference-instrumentation-openai",
        entry="inst_openai_works", code=WORKS, library="openai",
    )  # fmt: skip

    [found] = hansard.instrument("openai")

    assert found.state is InstrumentState.ON
    assert openai.OpenAI.request is before


def test_what_would_be_recorded_over_http_is_listed(recorded: Recorded) -> None:
    assert {one.library: one.state for one in instrumentations()} == {
        "openai": InstrumentState.ON_HTTP,
        "anthropic": InstrumentState.ON_HTTP,
    }


def test_the_recorder_is_one_short_line_at_a_prompt(recorded: Recorded) -> None:
    shown = repr(recorded.recorder)

    assert shown.startswith("<hansard.Recorder service=")
    assert recorded.recorder.settings.destination in shown
    assert len(shown) < 120
