"""Recording every client of `openai` or `anthropic`, where no instrumentor of the library works.

`instrument_client` replaces methods of one client. Here the method `request` of the base classes of
the package is replaced: clients that were made before and those made later are recorded alike.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from hansard._clients import client_patch

# Public classes of each package; the base that has their `request` is looked for.
CLIENTS: Final = {
    "openai": ("OpenAI", "AsyncOpenAI"),
    "anthropic": ("Anthropic", "AsyncAnthropic"),
}


@dataclass(slots=True)
class _Replaced:
    """A class's method, and what it was replaced with; the switch is for wrappers around ours."""

    owner: type
    original: Callable[..., Any]
    is_on: bool = True
    ours: Callable[..., Any] | None = None


_replaced: dict[str, list[_Replaced]] = {}


def can_record(library: str) -> bool:
    """Whether the library is one whose HTTP client can be recorded, and is installed."""
    if library not in CLIENTS:
        return False
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # a module that was put there by hand
        return False


def recordable() -> list[str]:
    """Return the installed libraries whose HTTP clients can be recorded; imports none."""
    return [library for library in CLIENTS if can_record(library)]


def is_on(library: str) -> bool:
    """Whether all clients of this library are recorded."""
    return library in _replaced


def all_on() -> list[str]:
    """Return the libraries whose clients are all recorded."""
    return list(_replaced)


def switch_on(library: str) -> None:
    """Record the calls of all clients of this library.

    Imports it, and raises what importing raises; AttributeError for a version whose clients are
    made in another way.
    """
    package = import_module(library)
    found = []
    for name in CLIENTS[library]:
        client = getattr(package, name)
        owner = next((base for base in client.__mro__ if "request" in vars(base)), None)
        if owner is None:
            raise AttributeError(f"{library}.{name} has no method request")
        found.append(_Replaced(owner, vars(owner)["request"]))
    for one, name in zip(found, CLIENTS[library], strict=True):
        one.ours = _recorded_request(one, library, is_async=name.startswith("Async"))
        one.owner.request = one.ours  # type: ignore[attr-defined]  # looked for above
    _replaced[library] = found


def switch_off(library: str) -> None:
    """Undo `switch_on`; clients that `instrument_client` was called with stay recorded."""
    for one in _replaced.pop(library, []):
        one.is_on = False
        if vars(one.owner).get("request") is one.ours:  # else another wrapper is around ours
            one.owner.request = one.original  # type: ignore[attr-defined]


def _recorded_request(one: _Replaced, library: str, *, is_async: bool) -> Callable[..., Any]:
    def watching(client: Any, *args: Any, **kwargs: Any) -> AbstractContextManager[list[Any]]:
        if not one.is_on or client_patch.is_recorded(client):
            return nullcontext([])
        client_patch.watch_client(client, is_async=is_async)
        return client_patch.recorded_call(client, library, args, kwargs)

    return client_patch.around(one.original, one.original, watching, is_async=is_async)
