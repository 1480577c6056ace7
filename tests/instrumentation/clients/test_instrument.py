"""Switching on the instrumentors that are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._clients.instrument import ContentHook, InstrumentState, installed, instrumentations
from tests.instrumentation.clients.asking import CHAT
from tests.instrumentation.clients.provider import Provider, providing
from tests.instrumentation.clients.recording import Recorded, recording

GENAI = "opentelemetry-instrumentation-genai-openai"
OPENINFERENCE = "openinference-instrumentation-openai"


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    with recording(tmp_path) as found:
        yield found
    hansard.uninstrument()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


def package(folder: Path, name: str, *, entry: str, code: str, library: str = "marqo") -> None:
    """Install an instrumentor into a folder, as pip would."""
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        f"[opentelemetry_instrumentor]\n{library} = {entry}:Instrumentor\n"
    )
    (folder / f"{entry}.py").write_text(code)


WORKS = """
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

class Instrumentor(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return []
    def _instrument(self, **kwargs):
        self.kwargs = kwargs
    def _uninstrument(self, **kwargs):
        self.kwargs = None
"""
REFUSES = WORKS.replace("return []", 'return ["nothing-of-the-kind >= 3"]')
BROKEN = "import nothing_of_the_kind\n"
RAISES = WORKS.replace("self.kwargs = kwargs", "raise LookupError('not today')")


def test_the_preferred_instrumentor_is_switched_on_once(
    recorded: Recorded, provider: Provider
) -> None:
    [first] = hansard.instrument("openai")
    [second] = hansard.instrument("openai")
    with CHAT.sync(provider) as client:
        CHAT.call(client)

    assert (first.state, first.package) == (InstrumentState.ON, GENAI)
    assert first.version == version(GENAI)
    assert first.others == (OPENINFERENCE,)
    assert second.state is InstrumentState.ALREADY_ON
    assert [span.name for span in recorded.spans] == ["chat gpt-6-luna"]


def test_an_instrumentor_the_program_switched_on_is_left_alone(
    recorded: Recorded, provider: Provider
) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    own = OpenAIInstrumentor()
    own.instrument(tracer_provider=recorded.recorder.provider)
    try:
        [found] = hansard.instrument("openai")
        assert hansard.uninstrument() == []
        with CHAT.sync(provider) as client:
            CHAT.call(client)
    finally:
        own.uninstrument()

    assert (found.state, found.package) == (InstrumentState.ALREADY_ON, OPENINFERENCE)
    assert [span.name for span in recorded.spans] == ["ChatCompletion"]


def test_what_was_switched_on_can_be_switched_off(recorded: Recorded, provider: Provider) -> None:
    hansard.instrument("openai")

    [off] = hansard.uninstrument("openai")
    with CHAT.sync(provider) as client:
        CHAT.call(client)

    assert off.state is InstrumentState.OFF
    assert hansard.uninstrument("openai") == []
    assert recorded.spans == []


def test_an_instrumentors_messages_become_content_of_ours(
    recorded: Recorded, provider: Provider
) -> None:
    hansard.instrument("openai")
    with CHAT.sync(provider) as client:
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "long " * 1_000}]
        )

    sent = recorded.attributes
    assert b"long long" in recorded.payload(sent["gen_ai.input.messages_ref"])
    assert '"name":"get"' in sent["gen_ai.output.messages"]


def test_a_hook_that_meets_odd_content_keeps_what_it_can(recorded: Recorded) -> None:
    span = recorded.recorder.tracer.start_span("chat m")
    odd: list[Any] = [{"content": b"\x00\xff", "of": {1, 2}, "what": object()}]

    ContentHook().on_completion(inputs=odd, outputs=[], span=span, log_record=None)
    ContentHook().on_completion(inputs=odd, span=None)
    span.end()

    assert '"content":"AP8="' in recorded.attributes["gen_ai.input.messages"]


def test_what_is_not_installed_is_named_with_the_package_to_install(
    recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    [found] = hansard.instrument("no such-thing")

    to_install = "openinference-instrumentation-no-such-thing"
    assert (found.state, found.package) == (InstrumentState.NOT_INSTALLED, to_install)
    assert f"pip install {to_install}" in caplog.text


def test_without_init_nothing_is_switched_on(caplog: pytest.LogCaptureFixture) -> None:
    [found] = hansard.instrument("openai")

    assert found.state is InstrumentState.NOT_STARTED
    assert "needs hansard.init() first" in caplog.text


def test_without_names_all_of_models_are_switched_on_and_no_others(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package(tmp_path, "openinference-instrumentation-marqo", entry="inst_marqo", code=WORKS)
    package(
        tmp_path, "opentelemetry-instrumentation-flask", entry="inst_flask", code=WORKS,
        library="flask",
    )  # fmt: skip

    found = hansard.instrument()

    assert {one.library: one.state for one in found} == {
        # No instrumentor of it is among the packages of the tests.
        "anthropic": InstrumentState.ON_HTTP,
        "marqo": InstrumentState.ON,
        "openai": InstrumentState.ON,
    }
    assert "inst_flask" not in sys.modules
    marqo = sys.modules["inst_marqo"].Instrumentor()
    assert marqo.kwargs["tracer_provider"] is recorded.recorder.provider


@pytest.mark.parametrize("code", [REFUSES, BROKEN, RAISES], ids=["refuses", "broken", "raises"])
def test_the_next_best_is_taken_where_the_preferred_one_does_not_work(
    code: str,
    recorded: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = f"inst_first_{len(code)}"
    monkeypatch.syspath_prepend(str(tmp_path))
    package(tmp_path, "opentelemetry-instrumentation-genai-marqo", entry=entry, code=code)
    package(tmp_path, "opentelemetry-instrumentation-marqo", entry=f"{entry}_b", code=WORKS)

    [found] = hansard.instrument("marqo")

    assert (found.state, found.package) == (
        InstrumentState.ON,
        "opentelemetry-instrumentation-marqo",
    )
    assert "opentelemetry-instrumentation-genai-marqo cannot be switched on" in caplog.text


ASKS = WORKS.replace(
    "self.kwargs = kwargs",
    "self.tracer = kwargs['tracer_provider'].get_tracer('google_genai')",
)


def test_the_model_that_was_asked_stays_where_an_instrumentor_names_the_one_that_served(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "openinference-instrumentation-google-genai"
    package(tmp_path, name, entry="inst_asks", code=ASKS, library="google_genai")
    hansard.instrument("google_genai")

    tracer = sys.modules["inst_asks"].Instrumentor().tracer
    span = tracer.start_span("GenerateContent", attributes={"llm.model_name": "flash-latest"})
    span.set_attribute("llm.model_name", "flash-001")
    span.end()
    later = tracer.start_span("GenerateContent")
    later.set_attribute("llm.model_name", "flash-001")
    later.end()

    told = [dict(span.attributes or {}) for span in recorded.spans]
    assert [one.get("gen_ai.request.model") for one in told] == ["flash-latest", None]
    assert [one["llm.model_name"] for one in told] == ["flash-001", "flash-001"]


DECLARED = WORKS.replace(
    "self.kwargs = kwargs", "from haystack.core import registry; self.found = list(registry)"
)


@pytest.mark.parametrize("agent", ["registry.append('Agent')", "raise RuntimeError('no torch')"])
def test_haystacks_agent_is_declared_before_its_instrumentor_looks_for_it(
    agent: str, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = f"inst_declared_{len(agent)}"
    name = "openinference-instrumentation-haystack"
    package(tmp_path, name, entry=entry, code=DECLARED, library="haystack")
    agents = tmp_path / "haystack" / "components" / "agents"
    agents.mkdir(parents=True)
    (tmp_path / "haystack" / "core.py").write_text("registry = []\n")
    (agents / "agent.py").write_text(f"from haystack.core import registry\n{agent}\n")

    [found] = hansard.instrument("haystack")
    declared = sys.modules[entry].Instrumentor().found
    for module in [one for one in sys.modules if one.partition(".")[0] == "haystack"]:
        del sys.modules[module]

    assert found.state is InstrumentState.ON
    assert declared == (["Agent"] if "append" in agent else [])


def test_one_that_fails_is_told_and_reaches_no_program(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package(tmp_path, "openinference-instrumentation-marqo", entry="inst_sad", code=RAISES)

    [found] = hansard.instrument("marqo")

    assert found.state is InstrumentState.FAILED
    assert found.detail == "LookupError: not today"
    assert str(found) == (
        "marqo: failed (openinference-instrumentation-marqo 1.2): LookupError: not today"
    )


def test_what_is_installed_is_listed_without_loading_it() -> None:
    [found] = [one for one in instrumentations() if one.library == "openai"]

    assert (found.state, found.package) == (InstrumentState.OFF, GENAI)
    assert [one.package for one in installed()["openai"]] == [GENAI, OPENINFERENCE]
