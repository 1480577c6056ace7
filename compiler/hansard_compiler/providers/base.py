"""What every provider's adapter gets and must be able to do.

The core hands over a `RenderInput`: texts, messages and tools in the normal form of `calls.py`. An
adapter makes the provider's request of it and reads the provider's answer back into a `Call`;
nothing of a provider reaches the core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from hansard_compiler.calls import Call, Json, Message, message_from_json, message_problem
from hansard_compiler.providers.transport.failures import NotRenderable

if TYPE_CHECKING:
    from hansard_compiler.providers.transport.exchange import Exchange

OnEvent: TypeAlias = Callable[[Json], None]  # called with each event of a stream as it arrives

_STABLE, _VOLATILE = "stable_prefix", "volatile_suffix"


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling. None leaves it to the provider; what a provider lacks is refused, not lost."""

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where the stable prefix ends: how many of each list are in it."""

    system: int = 0
    tools: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class RenderInput:
    """A compiled context for one model call, without anything of a provider."""

    model: str
    messages: tuple[Message, ...] = ()
    system: tuple[str, ...] = ()
    tools: tuple[Json, ...] = ()  # {name, description, parameters}, or a built-in one as it is
    sampling: Sampling = Sampling()
    boundary: Boundary | None = None  # where a cache breakpoint belongs
    stable_prefix_hash: str | None = None
    volatile_suffix_hash: str | None = None
    tool_choice: str | None = None  # auto, none, required, or a tool's name
    output_schema: Json | None = None  # JSON schema the answer must follow
    reasoning: Json | None = None  # the provider's own settings for it
    stream: bool = False
    previous_response_id: str | None = None  # goes on with what the provider holds
    held_messages: int = 0  # how many of `messages` the provider holds already
    max_input_tokens: int | None = None  # more is refused before sending
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields of the request, as they are

    @property
    def is_call_forced(self) -> bool:
        return self.tool_choice not in (None, "auto", "none")


def _problem(payload: Mapping[str, Any]) -> str:
    """Return what keeps a payload from being read, in words."""
    messages = payload.get("messages", ())
    if isinstance(messages, Sequence):
        for at, message in enumerate(messages):
            problem = message_problem(message)
            if problem is not None:
                return f"messages[{at}]{problem}"
    for name, field_name in (("system", "text"), ("sections", "name")):
        entries = payload.get(name, ())
        if not isinstance(entries, Sequence):
            return f"{name} is no list"
        for at, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or field_name not in entry:
                return f"{name}[{at}] has no {field_name}"
    return "messages is no list"


def from_payload(payload: Mapping[str, Any], *, model: str, **more: Any) -> RenderInput:
    """Return the input for a compile's provider-neutral payload.

    `payload` is what the render pass makes: `system`, `tools`, `messages` and `sections`; `more`
    are further fields of RenderInput. Raises NotRenderable where the payload has another shape.
    """
    try:
        messages = tuple(message_from_json(message) for message in payload.get("messages", ()))
        system = tuple(entry["text"] for entry in payload.get("system", ()))
        sections = {section["name"]: section for section in payload.get("sections", ())}
    except (KeyError, TypeError, AttributeError):
        raise NotRenderable(f"the payload is not in the normal form: {_problem(payload)}") from None
    stable, volatile = sections.get(_STABLE), sections.get(_VOLATILE)
    counts = {key: stable[key] for key in ("system", "tools", "messages")} if stable else {}
    return RenderInput(
        model=model,
        messages=messages,
        system=system,
        tools=tuple(payload.get("tools", ())),
        boundary=Boundary(**counts) if any(counts.values()) else None,
        stable_prefix_hash=stable.get("hash") if stable else None,
        volatile_suffix_hash=volatile.get("hash") if volatile else None,
        **more,
    )


# --- the two sides of an adapter, and the adapter ---------------------------------------------


@runtime_checkable
class ProviderAdapter(Protocol):
    """What the core needs of a provider; `adapter.Adapter` is the one implementation we need."""

    def count_tokens(self, compiled: RenderInput) -> int: ...

    def render_request(self, compiled: RenderInput) -> Json: ...

    def send(self, rendered: Json) -> Json: ...

    def parse_response(self, response: Json) -> Json: ...


class WireFormat(Protocol):
    """One API's form, as pure functions: the same input gives the same bytes, no I/O."""

    @property
    def provider(self) -> str:
        """The `gen_ai.provider.name` of its calls."""
        ...

    @property
    def path(self) -> str:
        """Where requests go, below the base address."""
        ...

    def render(self, request: RenderInput) -> Json:
        """Return the request's body; NotRenderable or FeatureOff where there is none."""
        ...

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with the pairs of tool calls and results in a request's body."""
        ...

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        """Return the normal form of a call from its whole response and request."""
        ...

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        """Return the response that a stream's events amount to; None where the end is missing."""
        ...

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        """Return path and body of the provider's own token count; None where it has none."""
        ...

    def continuation(self, response: Mapping[str, Any]) -> Message:
        """Return a response as the message to go on with: every block, signed ones unchanged."""
        ...

    def notes(self, request: RenderInput) -> list[str]:
        """Say what of the input this format leaves out of the request, and why."""
        ...


class Wire(Protocol):
    """Sends bytes and keeps what went over the wire. Raises CallFailed with the exchange in it."""

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange: ...

    def close(self) -> None: ...
