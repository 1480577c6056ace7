"""Adapters by name. Nothing of a provider is imported before its adapter sends something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import Adapter, Preflight
from hansard_compiler.providers.base import Wire, WireFormat
from hansard_compiler.providers.formats import anthropic_messages, openai_chat, openai_responses
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.openai_chat import OpenAIChat
from hansard_compiler.providers.formats.openai_responses import OpenAIResponses
from hansard_compiler.providers.formats.sse import text_delta
from hansard_compiler.providers.scripted import Script, ScriptedFormat, ScriptedWire
from hansard_compiler.providers.transport.vendor_sdk import Connection, anthropic_wire, openai_wire


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """What adapters are made of; each takes what concerns it."""

    connection: Connection = field(default_factory=Connection)
    preflight: Preflight | None = None  # None: the provider's count for Anthropic, else an estimate
    extended_thinking: bool = False
    explicit_cache: bool = False  # OpenAI: breakpoints in place of its own caching
    cache_ttl: str | None = "5m"  # Anthropic
    script: Script | None = None
    multiplier: float = 1.0


def _responses(settings: AdapterSettings) -> Adapter:
    form = OpenAIResponses(explicit_cache=settings.explicit_cache)
    return _made(form, openai_wire(settings.connection), settings, "estimate")


def _messages(setup: AdapterSettings) -> Adapter:
    form = AnthropicMessages(extended_thinking=setup.extended_thinking, cache_ttl=setup.cache_ttl)
    return _made(form, anthropic_wire(setup.connection), setup, "provider")


def _chat(settings: AdapterSettings) -> Adapter:
    if settings.connection.base_url is None:
        raise ConfigError("openai_compatible needs the address of the server: base_url")
    form = OpenAIChat()
    wire = openai_wire(settings.connection, provider=form.provider, needs_key=False, environment={})
    return _made(form, wire, settings, "estimate")


def _scripted(settings: AdapterSettings) -> Adapter:
    if settings.script is None:
        raise ConfigError("the scripted model needs a script")
    return _made(ScriptedFormat(), ScriptedWire(settings.script), settings, "estimate")


def _made(form: WireFormat, wire: Wire, settings: AdapterSettings, preflight: Preflight) -> Adapter:
    return Adapter(
        form,
        wire,
        preflight=settings.preflight or preflight,
        multiplier=settings.multiplier,
    )


ADAPTERS: Mapping[str, Callable[[AdapterSettings], Adapter]] = {
    "openai": _responses,
    "anthropic": _messages,
    "openai_compatible": _chat,
    "scripted": _scripted,
}


def deltas_of(event: Json) -> list[Json]:
    """Return what one event of a stream adds to the response, in one form for every API, in order.

    `{"type", "text"}` of type text, reasoning or refusal; `{"type": "tool_call", "index",
    "call_id", "name", "arguments"}`, where `index` groups the pieces of one call, `call_id`
    and `name` come with the first of them and `arguments` is a stretch of JSON text. Events that
    add nothing, or that a later API brings, add nothing here.
    """
    if "choices" in event:
        return list(openai_chat.deltas(event))
    delta = event.get("text") if event.get("type") == "text" else None  # of the scripted model
    of_apis = (*anthropic_messages.deltas(event), *openai_responses.deltas(event))
    return [*text_delta("text", delta), *of_apis]


_DEFAULTS = AdapterSettings()


def adapter_for(provider: str, settings: AdapterSettings = _DEFAULTS) -> Adapter:
    """Return the adapter of a provider; ConfigError names those there are."""
    make = ADAPTERS.get(provider)
    if make is None:
        raise ConfigError(f"no provider {provider!r}; there are {', '.join(ADAPTERS)}")
    return make(settings)
