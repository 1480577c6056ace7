"""Switching on the instrumentors that others keep well: OpenTelemetry's, OpenInference's."""

from __future__ import annotations

import base64
import importlib
import importlib.metadata
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final

from hansard import semconv
from hansard._clients import client_patch, langchain, llama_index
from hansard._clients.guard import observing, tell
from hansard._clients.tracers import PlacedProvider
from hansard._runtime.recorder import active
from hansard._tracing.observation import put_content

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from opentelemetry.trace import Span


# Which instrumentors are installed, found by their entry points.

GROUP: Final = "opentelemetry_instrumentor"

# Makers of instrumentors, the first is taken where several are installed for one library. Those of
# OpenTelemetry's GenAI project write the current convention; OpenInference's are the most complete
# of the others; then OpenLLMetry's. All other ones come last.
_MAKERS: Final = (
    "opentelemetry-instrumentation-genai-",
    "opentelemetry-instrumentation-openai-v2",
    "openinference-instrumentation-",
)

# Libraries of models, agents and vector stores, by their instrumentors' names: what is switched on
# when none is named. A web framework's or a database's instrumentor is not ours to switch on.
_NAMES: Final = """
agno alephalpha anthropic autogen autogen_agentchat bedrock beeai chromadb claude_agent_sdk
cohere crewai dspy google_adk google_genai google_generativeai groq guardrails haystack
instructor lancedb langchain langgraph litellm llama_index llamaindex marqo mcp milvus mistralai
ollama openai openai_agents openai_v2 pinecone pipecat portkey pydantic_ai qdrant replicate
sagemaker smolagents strands together transformers vertexai voyageai watsonx weaviate writer
"""
_OF_MODELS: Final = frozenset(_NAMES.split())


@dataclass(frozen=True, slots=True)
class Found:
    """An installed instrumentor of a library."""

    library: str
    package: str
    version: str
    entry: EntryPoint

    @property
    def rank(self) -> tuple[int, str]:
        """Its rank in the order of preference."""
        for rank, maker in enumerate(_MAKERS):
            if self.package.startswith(maker):
                return rank, self.package
        return len(_MAKERS), self.package


def installed() -> dict[str, list[Found]]:
    """Return the installed instrumentors of each library, the preferred one first. Loads none."""
    from importlib.metadata import entry_points  # a tenth of what importing the SDK costs

    found: dict[str, list[Found]] = {}
    for entry in entry_points(group=GROUP):
        if entry.dist is None:
            continue
        library = named(entry.name)
        one = Found(library, entry.dist.name, entry.dist.version, entry)
        found.setdefault(library, []).append(one)
    for several in found.values():
        several.sort(key=lambda one: one.rank)
    return dict(sorted(found.items()))


def package_for(library: str) -> str:
    """Return the name of the package that would instrument a library."""
    from hansard._clients.instrumentor_packages import package_for as working_for  # reads a file

    return working_for(library) or f"openinference-instrumentation-{library.replace('_', '-')}"


def named(library: str) -> str:
    """Return a library's name as the entry points write it."""
    return library.strip().lower().replace("-", "_").replace(" ", "_")


# What OpenTelemetry's GenAI instrumentors saw, stored the way Hansard stores content.


class ContentHook:
    """A `CompletionHook` of opentelemetry-util-genai, handed to the instrumentors that take one.

    Messages become attributes by value or references to payloads, as the retention mode says. An
    instrumentor that is configured to write them on its spans itself is left to it.
    """

    @observing
    def on_completion(
        self,
        *,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        system_instruction: Sequence[Any] = (),
        tool_definitions: Sequence[Any] | None = None,
        span: Span | None = None,
        **_: Any,
    ) -> None:
        """Put the content of one call onto its span, which is still open."""
        recorder = active()
        if recorder is None or span is None or not span.is_recording():
            return
        present = getattr(span, "attributes", None) or {}
        content = {
            semconv.INPUT_MESSAGES: inputs,
            semconv.OUTPUT_MESSAGES: outputs,
            semconv.SYSTEM_INSTRUCTIONS: system_instruction,
            semconv.TOOL_DEFINITIONS: tool_definitions,
        }
        for key, value in content.items():
            if value and key not in present:
                put_content(recorder, span, key, _json(value))


def _json(value: object) -> str:
    encoded = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    try:
        encoded.encode()
    except UnicodeEncodeError:
        return json.dumps(value, default=_plain, separators=(",", ":"))
    return encoded


def _plain(value: object) -> object:
    """Return what JSON has a form for; fields that are not set are left out."""
    if is_dataclass(value):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return {key: item for key, item in values.items() if item is not None}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | set):
        return list(value)
    return repr(value)


_log = logging.getLogger("hansard")


class InstrumentState(StrEnum):
    """The outcome for a library that `instrument` was called with."""

    ON = "on"  # switched on now
    ON_HTTP = "recorded over HTTP"  # no instrumentor works: the clients themselves are recorded
    ALREADY_ON = "already on"  # by an earlier call, by the program, or by opentelemetry-instrument
    OFF = "off"  # switched off now
    NOT_INSTALLED = "not installed"  # neither an instrumentor nor a client that can be recorded
    NOT_STARTED = "not started"  # hansard.init() was not called, or recording is switched off
    FAILED = "failed"  # the instrumentor refused: `detail` says why


@dataclass(frozen=True, slots=True)
class Instrumentation:
    """One library, and the instrumentor that watches it."""

    library: str
    state: InstrumentState
    package: str  # of the instrumentor; where none is installed, the one to install
    version: str = ""
    detail: str = ""
    others: tuple[str, ...] = ()  # installed for the same library, and left off

    def __str__(self) -> str:
        what = f"{self.package} {self.version}".strip()
        text = f"{self.library}: {self.state} ({what})"
        if self.detail:
            text += f": {self.detail}"
        return text + (f"; left off: {', '.join(self.others)}" if self.others else "")


# Libraries whose calls frameworks make for a step of theirs.
_CLIENT_NAMES: Final = """
anthropic bedrock cohere google_genai google_generativeai groq litellm mistralai ollama openai
openai_v2 together vertexai
"""
_CLIENTS: Final = frozenset(_CLIENT_NAMES.split())
# Instrumentors that watch only the classes which are declared when they are switched on, and the
# module of the class whose call is a run.
_DECLARED_IN: Final = {"haystack": "haystack.components.agents.agent"}
# Those that we switched on; only these are switched off again.
_switched_on: dict[str, Found] = {}


def instrument(*libraries: str) -> list[Instrumentation]:
    """Record the calls of these libraries; without names, of all of models that are installed.

    `hansard.instrument("openai", "anthropic")`. Of several instrumentors that are installed for a
    library one is switched on: OpenTelemetry's GenAI one, then OpenInference's, then OpenLLMetry's;
    a library that is instrumented already is left alone, so no call has two spans. Where none is
    there or works, all clients of `openai` and `anthropic` are recorded, as by `instrument_client`.
    Returns the state of each library, with versions. Never raises: what cannot be recorded is
    logged on the logger `hansard`, with the package to install.
    """
    there = installed()
    names = [named(one) for one in libraries]
    names = names or sorted({*_OF_MODELS.intersection(there), *client_patch.recordable()})
    if not names:
        _log.warning(
            "hansard.instrument() found nothing to record: no instrumentor is installed, and "
            "neither is openai nor anthropic: pip install one of these two, and it is recorded"
        )
    return [_instrument(library, there.get(library, [])) for library in dict.fromkeys(names)]


def uninstrument(*libraries: str) -> list[Instrumentation]:
    """Switch off what `instrument` switched on; without names, all of it. Never raises."""
    names = [named(one) for one in libraries] or all_on()
    recorded = [name for name in names if client_patch.is_on(name)]
    for name in recorded:
        client_patch.switch_off(name)
    return [
        *(_uninstrument(_switched_on[name]) for name in names if name in _switched_on),
        *(_over_http(name, InstrumentState.OFF) for name in recorded),
    ]


def instrumentations() -> list[Instrumentation]:
    """Return the installed instrumentors of models, and whether each is on; loads none that is not.

    A library without one whose clients can be recorded has the state ON_HTTP. This is what
    `hansard doctor` shows.
    """
    there = installed()
    found = [
        _result(
            several[0],
            InstrumentState.ALREADY_ON if library in _switched_on else InstrumentState.OFF,
            several,
        )
        for library, several in there.items()
        if library in _OF_MODELS
    ]
    without = [library for library in client_patch.recordable() if library not in there]
    return found + [_over_http(library) for library in without]


def all_on() -> list[str]:
    """Return the libraries that `instrument` switched on in this process."""
    return [*_switched_on, *client_patch.all_on()]


def _instrument(library: str, several: list[Found]) -> Instrumentation:
    recorder = active()
    if recorder is None:
        _log.warning("hansard.instrument(%r) needs hansard.init() first", library)
        package = several[0].package if several else package_for(library)
        return Instrumentation(library, InstrumentState.NOT_STARTED, package)
    on = _already_on(several)
    if on is not None:
        _follow(on)
        return _result(on, InstrumentState.ALREADY_ON, several)
    if client_patch.is_on(library):
        return _over_http(library, InstrumentState.ALREADY_ON)
    failed: list[Instrumentation] = []
    for one in several:  # the next best, where one does not work with what is installed
        tried = _switch_on(one, several, recorder.provider)
        if tried.state is InstrumentState.ON:
            for before in failed:
                _log.warning("%s cannot be switched on: %s", before.package, before.detail)
            return tried
        failed.append(tried)
    return _record_clients(library, failed)


def _record_clients(library: str, failed: list[Instrumentation]) -> Instrumentation:
    """Record the library's own clients, where no instrumentor of it works."""
    detail = ""
    if client_patch.can_record(library):
        try:
            client_patch.switch_on(library)
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
    for one in failed:
        _log.warning("%s cannot be switched on: %s", one.package, one.detail)
    package = package_for(library)
    is_other = package not in {one.package for one in failed}
    works = f"; one that works: pip install {package}" if is_other else ""
    if client_patch.is_on(library):
        if failed:
            _log.warning("%s: its HTTP clients are recorded instead%s", library, works)
        return _over_http(library)
    if detail:
        _log.warning("the clients of %s cannot be recorded: %s", library, detail)
    elif library in client_patch.LIBRARIES:
        _log.warning(
            "%s is not installed: pip install %s; its calls are recorded then", library, library
        )
    elif failed:
        _log.warning("%s: it is not recorded%s", library, works)
    else:
        _log.warning("no instrumentor for %r is installed: pip install %s", library, package)
    if failed:
        return failed[0]
    state = InstrumentState.FAILED if detail else InstrumentState.NOT_INSTALLED
    return Instrumentation(library, state, package, detail=detail)


def _over_http(library: str, state: InstrumentState = InstrumentState.ON_HTTP) -> Instrumentation:
    """The clients of a library, recorded without an instrumentor; `package` is the client's."""
    try:
        version = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return Instrumentation(library, state, library, version)


def _switch_on(chosen: Found, several: list[Found], provider: Any) -> Instrumentation:
    _declare(chosen.library)
    try:
        instrumentor = chosen.entry.load()()
        if chosen.library in _CLIENTS:
            provider = PlacedProvider(provider)
        instrumentor.instrument(tracer_provider=provider, completion_hook=ContentHook())
        is_on = instrumentor.is_instrumented_by_opentelemetry
        # One that refuses has logged why: a version of the library that it does not know.
        needed = [] if is_on else instrumentor.instrumentation_dependencies()
        refused = f"it needs {', '.join(needed)}"
    except Exception as error:
        is_on, refused = False, f"{type(error).__name__}: {error}"
    if not is_on:
        return _result(chosen, InstrumentState.FAILED, several, detail=refused)
    _switched_on[chosen.library] = chosen
    _follow(chosen)
    return _result(chosen, InstrumentState.ON, several)


def _declare(library: str) -> None:
    """Import what an instrumentor has to find, before it looks for it."""
    module = _DECLARED_IN.get(library)
    if module is None:
        return
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever importing a package of somebody else raises
        _log.debug("%s cannot be imported: %s", module, type(error).__name__)


def _follow(one: Found) -> None:
    if one.library in langchain.LIBRARIES:
        try:
            langchain.follow(one.entry.load()())
        except Exception as error:
            tell(f"follow {one.library}", error)
    if one.library in llama_index.LIBRARIES:
        llama_index.follow()


def _already_on(several: list[Found]) -> Found | None:
    """Return the instrumentor of a library that is on, by whichever call."""
    for one in several:
        if one.entry.module not in sys.modules:
            continue  # it was not used yet
        try:
            if one.entry.load()().is_instrumented_by_opentelemetry:
                return one
        except Exception as error:
            tell(f"look at {one.package}", error)
    return None


def _uninstrument(one: Found) -> Instrumentation:
    _switched_on.pop(one.library, None)
    try:
        instrumentor = one.entry.load()()
        if instrumentor.is_instrumented_by_opentelemetry:
            instrumentor.uninstrument()
        if one.library in langchain.LIBRARIES:
            langchain.follow_no_more()
        if one.library in llama_index.LIBRARIES:
            llama_index.follow_no_more()
    except Exception as error:
        tell(f"uninstrument {one.library}", error)
        return _result(one, InstrumentState.FAILED, [one], detail=type(error).__name__)
    return _result(one, InstrumentState.OFF, [one])


def _result(
    chosen: Found, state: InstrumentState, several: list[Found], *, detail: str = ""
) -> Instrumentation:
    others = tuple(one.package for one in several if one is not chosen)
    return Instrumentation(
        chosen.library, state, chosen.package, chosen.version, detail=detail, others=others
    )
