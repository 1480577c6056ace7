"""Where a replay is sent: by what is configured here, never by what a record says.

A record can come from anybody who may send telemetry. An address taken from it would carry this
server's keys wherever its author wants them; so the recorded one is only held against ours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import orjson

from hansard import semconv
from hansard_compiler.calls import Json
from hansard_compiler.providers.base import Wire, WireFormat
from hansard_compiler.providers.formats.anthropic_messages import AnthropicMessages
from hansard_compiler.providers.formats.openai_chat import OpenAIChat
from hansard_compiler.providers.formats.openai_responses import OpenAIResponses
from hansard_compiler.providers.scripted import ScriptedFormat, ScriptedWire, read_script
from hansard_compiler.providers.transport.vendor_sdk import Connection, anthropic_wire, openai_wire
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_web.replay.source import WITHHELD, ReplayedStep
from hansard_web.replay.transport.wires import PlainAnswers

_BASES: Final = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
# Requests to each provider that is not named by a recorded path.
_FORMATS: Final[Mapping[str, Any]] = {
    "openai": OpenAIResponses,
    "anthropic": AnthropicMessages,
    "openai_compatible": OpenAIChat,
    "scripted": ScriptedFormat,
}
_NO_MODEL_SERVER: Final = "start the server with --model-server ADDRESS"
Address: TypeAlias = tuple[str, str, int | None, str]  # scheme, host, port, path
# What our keys may be spent on: a record can name any path (files, fine-tuning, accounts).
_CALLS: Final = frozenset(
    {"/chat/completions", "/completions", "/embeddings", "/responses", "/responses/compact"}
)
_ANTHROPIC_CALLS: Final = frozenset({"/v1/messages", "/v1/complete"})
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Which version of an API was spoken, and with which of its features; never a key.
_VERSION_HEADERS: Final = ("anthropic-version", "anthropic-beta", "openai-beta")
_LONGEST_HEADER: Final = 500


@dataclass(frozen=True, slots=True)
class Reach:
    """How providers are reached from here: settings and the environment, without keys in it."""

    model_server: str | None = None
    timeout_s: float = 600.0
    max_retries: int = 2
    script: Json | None = None
    elsewhere: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


@dataclass(frozen=True, slots=True)
class Destination:
    """A provider's API at one address."""

    family: str  # openai openai_compatible anthropic scripted
    provider: str  # as calls are recorded under
    base_url: str | None  # None: the script answers
    path: str  # below it

    @property
    def address(self) -> Address:
        return parsed_address(f"{(self.base_url or '').rstrip('/')}{self.path}")


@dataclass(frozen=True, slots=True)
class RecordedDestination:
    """What a step tells of where its call went."""

    provider: str
    path: str  # as far as it is known: whole, or below the base address
    address: Address | None  # scheme, host, port, path
    headers: Mapping[str, str]
    is_stream: bool
    format_settings: Json = field(default_factory=dict)


def recorded_place(source: ReplayedStep) -> RecordedDestination:
    """Return where a recorded call went, by its recipe, else by its span."""
    attributes, recipe = source.attributes, source.recipe
    version_headers = {
        name: _first(attributes.get(f"http.request.header.{name}")) for name in _VERSION_HEADERS
    }
    if recipe is not None:
        sent = recipe.request
        headers = {name: sent.headers.get(name) for name in _VERSION_HEADERS} | {
            name: value for name, value in version_headers.items() if value
        }
        address = parsed_address(sent.address) if sent.address else None
        return RecordedDestination(
            recipe.provider, sent.path, address, _safe(headers), sent.is_stream,
            recipe.adapter.settings,
        )  # fmt: skip
    call = source.call
    path = str(attributes.get("url.path") or "")
    path = "" if path.startswith(WITHHELD) else path
    host, port = attributes.get(semconv.SERVER_ADDRESS), attributes.get(semconv.SERVER_PORT)
    at = None
    if isinstance(host, str) and host:
        at = ("", host, port if isinstance(port, int) else None, path)
    provider = (call.provider if call else None) or str(attributes.get(semconv.PROVIDER_NAME) or "")
    return RecordedDestination(
        provider, path, at, _safe(version_headers), bool(call and call.stream)
    )


def destination_for(recorded: RecordedDestination, reach: Reach) -> Destination:
    """Return the destination a recorded call is made again through. Raises NotReplayable.

    That is the one it went through, if it is configured here; another one only if that was asked.
    """
    if recorded.provider == "scripted":
        return Destination("scripted", "scripted", None, ScriptedFormat().path)
    destinations = _destinations(recorded, reach)
    if not destinations:
        text = f"{recorded.provider or 'an unnamed provider'}, {recorded.path or 'no path'}"
        raise NotReplayable(ReplayReason.PROVIDER_UNKNOWN, text)
    for destination in destinations:
        if recorded.address is None or is_same_address(recorded.address, destination.address):
            return destination
    reachable = [destination for destination in destinations if destination.base_url]
    if not reachable:
        raise NotReplayable(ReplayReason.PROVIDER_NOT_CONFIGURED, recorded.provider)
    if reach.elsewhere:
        return reachable[0]
    assert recorded.address is not None
    here = address_text(reachable[0].address)
    raise NotReplayable(
        ReplayReason.OTHER_ADDRESS,
        f"it went to {address_text(recorded.address)}, here it is {here}; "
        "set `allow_other_address` to send it there all the same",
    )


def _destinations(recorded: RecordedDestination, reach: Reach) -> list[Destination]:
    """Return the destinations that take such a request, the provider's own first."""
    provider, path = recorded.provider, recorded.path
    if provider == "anthropic":
        below = _below(path, "/v1/messages")
        own = Destination("anthropic", provider, _own_base(provider, reach), below)
        return [own] if below in _ANTHROPIC_CALLS else []
    tail = _tail(path)
    if tail not in _CALLS:
        return []
    local = [] if reach.model_server is None else [
        Destination("openai_compatible", provider, reach.model_server, tail)
    ]  # fmt: skip
    if provider == "openai":
        return [Destination("openai", provider, _own_base(provider, reach), tail), *local]
    if provider == "openai_compatible" and not local:
        raise NotReplayable(ReplayReason.PROVIDER_NOT_CONFIGURED, _NO_MODEL_SERVER)
    return local


def offline_destination(recorded: RecordedDestination) -> Destination:
    """Return the destination of a call that is answered from its recording."""
    if not recorded.path:
        return destination_of(recorded.provider, Reach(model_server=""))
    provider = recorded.provider
    if provider == "scripted":
        return Destination(provider, provider, None, ScriptedFormat().path)
    if provider == "anthropic":
        return Destination(provider, provider, None, _below(recorded.path, "/v1/messages"))
    return Destination("openai", provider, None, _tail(recorded.path))


def destination_of(provider: str, reach: Reach) -> Destination:
    """Return the destination of a provider that a change names."""
    if provider not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise NotReplayable(ReplayReason.PROVIDER_UNKNOWN, f"{provider!r}; there are {known}")
    base = None
    if provider == "openai_compatible":
        if reach.model_server is None:
            raise NotReplayable(ReplayReason.PROVIDER_NOT_CONFIGURED, _NO_MODEL_SERVER)
        base = reach.model_server
    elif provider != "scripted":
        base = _own_base(provider, reach)
    return Destination(provider, provider, base, _FORMATS[provider]().path)


def _own_base(provider: str, reach: Reach) -> str:
    return reach.environment.get(f"{provider.upper()}_BASE_URL") or _BASES[provider]


def unnamed_destination(recorded: RecordedDestination, reach: Reach) -> Destination:
    """Return the destination of a call without a known path: as its provider is reached from here.

    That is the configured model server, where the record has its address. Raises NotReplayable.
    """
    destination = destination_of(recorded.provider, reach)
    if recorded.address is None or reach.model_server is None or recorded.provider != "openai":
        return destination
    local = replace(destination_of("openai_compatible", reach), provider=recorded.provider)
    is_there = is_same_address(recorded.address, destination.address)
    return (
        local if not is_there and is_same_address(recorded.address, local.address) else destination
    )


def address_notes(recorded: RecordedDestination, destination: Destination) -> list[str]:
    """Return that a request goes to another address than the recorded one did, where it does."""
    if destination.base_url is None or recorded.address is None:
        return []
    if is_same_address(recorded.address, destination.address):
        return []
    return [
        f"the recorded call went to {address_text(recorded.address)}; this one is sent to "
        f"{address_text(destination.address)}, as is configured here"
    ]


def format_for(destination: Destination, settings: Json) -> WireFormat:
    """Return how the destination's requests look; one nobody renders is sent and read as it is."""
    kind = {one().path: one for one in _FORMATS.values()}.get(destination.path)
    if kind is None:
        return PlainAnswers(destination.provider, destination.path)
    known = {one.name for one in fields(kind)}
    known_settings = {name: value for name, value in settings.items() if name in known}
    made: WireFormat = kind(**{**known_settings, "provider": destination.provider})
    return made


def wire_through(destination: Destination, headers: Mapping[str, str], reach: Reach) -> Wire:
    """Return the wire to a destination; raises NotReplayable where something is not set up."""
    if destination.family == "scripted":
        if reach.script is None:
            raise NotReplayable(
                ReplayReason.PROVIDER_NOT_CONFIGURED,
                "the scripted model needs its script again: --script FILE",
            )
        return ScriptedWire(read_script(orjson.dumps(reach.script)))
    connection = Connection(
        base_url=destination.base_url,
        timeout_s=reach.timeout_s,
        max_retries=reach.max_retries,
        headers=headers,
    )
    package = "anthropic" if destination.family == "anthropic" else "openai"
    if find_spec(package) is None:
        raise NotReplayable(ReplayReason.PACKAGE_MISSING, f"pip install 'hansard[{package}]'")
    if destination.family == "openai_compatible":
        return openai_wire(
            connection, provider=destination.provider, needs_key=False, environment={}
        )
    variable = f"{package.upper()}_API_KEY"
    if not reach.environment.get(variable):
        raise NotReplayable(ReplayReason.KEY_MISSING, f"set {variable}")
    if destination.family == "anthropic":
        return anthropic_wire(connection, environment=reach.environment)
    return openai_wire(connection, environment=reach.environment)


# ---- addresses


def parsed_address(text: str) -> Address:
    """Return scheme, host, port and path; an address that is none is one of no host."""
    try:
        parts = urlsplit(text)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
        return parts.scheme, parts.hostname or "", port, parts.path
    except ValueError:
        return "", "", None, text


def is_same_address(recorded: Address, ours: Address) -> bool:
    """Whether a call went where it would go now; what a record does not tell counts as equal."""
    (scheme, host, port, path), (our_scheme, our_host, our_port, our_path) = recorded, ours
    same_host = host == our_host or (host in _LOCAL and our_host in _LOCAL)
    return (
        same_host
        and scheme in ("", our_scheme)
        and port in (None, our_port)
        and path.rstrip("/") in ("", our_path.rstrip("/"))
    )


def address_text(address: Address) -> str:
    """Return host, port and path of an address."""
    _, host, port, path = address
    return f"{host}{'' if port is None else f':{port}'}{path}"


def _below(path: str, usual: str) -> str:
    """Return the path below the base address: what a gateway puts before it is the address's."""
    at = path.find("/v1/")
    return path[at:] if at >= 0 else usual


def _tail(path: str) -> str:
    """Return the path below the base address of an API of OpenAI's kind, which ends in /v1."""
    return "/" + path.strip("/").rpartition("/v1/")[2].removeprefix("v1/")


def _first(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else None


def _safe(headers: Mapping[str, str | None]) -> dict[str, str]:
    """Return the headers that can be sent: a record may hold anything."""
    return {
        name: value
        for name, value in headers.items()
        if value and len(value) <= _LONGEST_HEADER and value.isascii() and value.isprintable()
    }
