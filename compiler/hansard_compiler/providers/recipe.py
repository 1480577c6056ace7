"""What a replay of one model call needs, as it is stored beside the call's bytes.

An exact replay sends `request` again; one with changes compiles `compilation` again and renders
with `adapter` and `parameters`. Contents stand behind references, never in a recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Final

from pydantic import Field

from hansard_compiler.compile.models import Json, Model, TopLevel
from hansard_compiler.providers.base import RenderInput, Sampling
from hansard_compiler.providers.transport.exchange import Attempt, Exchange

RECIPE_MEDIA_TYPE: Final = "application/vnd.hansard.recipe+json"
# What stands in the compile, in the recipe under a name of its own, or is known from the model.
_FROM_COMPILE: Final = frozenset(
    {"model", "messages", "system", "tools", "boundary", "stable_prefix_hash",
     "volatile_suffix_hash", "sampling", "stream"}
)  # fmt: skip
_NOT_SETTINGS: Final = frozenset({"provider", "path"})


class SentRequest(Model):
    """The request as it went over the wire."""

    ref: str  # payload of its body
    is_exact: bool  # whether the payload is the body byte for byte; secrets may have been cut
    size_bytes: int
    method: str = "POST"
    path: str  # below the base address
    address: str = ""  # scheme, host, port and path as sent; empty where no network was
    headers: dict[str, str] = Field(default_factory=dict)  # without credentials
    is_stream: bool = False
    attempts: int = 1


class UsedCompilation(Model):
    """The compile behind the request."""

    id: str
    hash: str
    request_ref: str
    result_ref: str
    is_whole: bool  # whether compiling the stored request again gives the same hash
    ports: list[str] = Field(
        default_factory=list
    )  # its other parameters; another compile needs the same


class UsedAdapter(Model):
    """Who rendered the request and read the response."""

    format: str  # class of the wire format
    settings: Json = Field(default_factory=dict)
    client: str = ""  # package and version, as it names itself to the provider
    client_version: str = ""


class Recipe(TopLevel):
    """Everything to make one model call again."""

    provider: str
    model: str
    request: SentRequest
    response_ref: str = ""
    compilation: UsedCompilation | None = None
    adapter: UsedAdapter
    sampling: Json = Field(default_factory=dict)
    parameters: Json = Field(default_factory=dict)  # what else was said of the render input
    versions: dict[str, str] = Field(default_factory=dict)


def sent_request(exchange: Exchange, *, ref: str, is_exact: bool) -> SentRequest:
    """Return what is needed to make another request like it."""
    last = exchange.last or Attempt(exchange.request)
    return SentRequest(
        ref=ref,
        is_exact=is_exact,
        size_bytes=len(exchange.request),
        path=exchange.path,
        address=last.address,
        headers=dict(last.sent_headers),
        is_stream=exchange.is_stream,
        attempts=len(exchange.attempts),
    )


def used_adapter(format: object, exchange: Exchange) -> UsedAdapter:
    """Return which adapter rendered and sent."""
    headers = exchange.last.sent_headers if exchange.last else {}
    return UsedAdapter(
        format=type(format).__name__,
        settings={
            name: value
            for name, value in _fields_of(format).items()
            if name not in _NOT_SETTINGS and isinstance(value, str | int | float | bool | None)
        },
        client=headers.get("user-agent", ""),
        client_version=headers.get("x-stainless-package-version", ""),
    )


def sampling_of(call: RenderInput) -> Json:
    """Return the sampling that was set."""
    fields = asdict(call.sampling)
    usual = asdict(Sampling())
    return {name: _plain(value) for name, value in fields.items() if value != usual[name]}


def parameters_of(call: RenderInput) -> Json:
    """Return what else a caller said of the request, beside the compiled context."""
    usual = _fields_of(RenderInput(model=""))
    made = {name: value for name, value in _fields_of(call).items() if name not in _FROM_COMPILE}
    return {name: _plain(value) for name, value in made.items() if value != usual[name]}


def _fields_of(value: object) -> dict[str, Any]:
    if not is_dataclass(value):
        return {}
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list | tuple) else value
