"""Recording the calls of `openai` and `anthropic` clients, with the exact bytes of each.

A client is watched at two places that both packages have. Its method `request` is one call, tries
and all; the `send` of the HTTP client below it is one try. Both are replaced on the objects, not on
their classes: other clients of the process are not touched. Only `switch_on`, for all clients of a
library, replaces `request` on the classes.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar

from opentelemetry import trace
from opentelemetry.trace import Span

from hansard import semconv
from hansard._clients import langchain, llama_index
from hansard._clients.bodies import ROUTES, Attributes, Route
from hansard._clients.call import RecordedCall, current_call, is_recorded_outside, outside_of_calls
from hansard._clients.exchange import ClientExchange
from hansard._clients.guard import observing, tell
from hansard._clients.tracers import QuietTracer
from hansard._runtime.recorder import active
from hansard._runtime.warnings import warn_once
from hansard_compiler.providers.formats.fields import integer, mapping, text

# Bodies that are watched while the client reads them, and the end of those that are not read.


def watch(response: Any, exchange: ClientExchange, *, is_async: bool) -> None:
    """Let a exchange see the body of a response as the client reads it, byte for byte.

    A body that is dropped without being read or closed counts as closed: when it is collected, or
    at the latest when the process ends.
    """
    package = type(response).__module__.partition(".")[0]
    inner = response.stream
    stream = (_async_type if is_async else _sync_type)(package)(inner, exchange)
    _reaper.expect(stream, exchange)
    response.stream = stream


@contextmanager
def _reading(exchange: ClientExchange) -> Iterator[None]:
    """Have an exchange know how the reading of its body ends."""
    try:
        yield
    except GeneratorExit:  # the reader went away; it closes the response next
        raise
    except BaseException as error:
        exchange.failed(error)
        raise
    exchange.ended()


class _Watched:
    """A body that an exchange sees as it is read."""

    def __init__(self, inner: Any, exchange: ClientExchange) -> None:
        self._inner = inner
        self._exchange = exchange


@functools.cache
def _sync_type(package: str) -> type[Any]:
    """Return the class for a client library's package: it insists on its own base."""
    base: Any = import_module(package).SyncByteStream

    class WatchedStream(_Watched, base):  # type: ignore[misc]  # the base is only known at run time
        def __iter__(self) -> Iterator[bytes]:
            with _reading(self._exchange):
                for chunk in self._inner:
                    self._exchange.chunk(chunk)
                    yield chunk

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._exchange.closed()

    return WatchedStream


@functools.cache
def _async_type(package: str) -> type[Any]:
    base: Any = import_module(package).AsyncByteStream

    class WatchedAsyncStream(_Watched, base):  # type: ignore[misc]  # as above
        async def __aiter__(self) -> AsyncIterator[bytes]:
            with _reading(self._exchange):
                async for chunk in self._inner:
                    self._exchange.chunk(chunk)
                    yield chunk

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._exchange.closed()

    return WatchedAsyncStream


class _Reaper:
    """Closes the records of streams that were dropped.

    The garbage collector may run in any thread at any time, also inside our own locks. So what it
    calls only puts into a SimpleQueue, which is made for that; a thread does the rest.
    """

    def __init__(self) -> None:
        self._is_registered = False
        self.reset()

    def reset(self) -> None:
        self._dropped: SimpleQueue[int] = SimpleQueue()
        self._open: dict[int, ClientExchange] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # one thread is started, by whichever thread comes first

    def expect(self, stream: object, exchange: ClientExchange) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="hansard-streams", daemon=True
                )
                self._thread.start()
                # Registered after `init` registered its own end, so it runs before it.
                if not self._is_registered:
                    self._is_registered = True
                    atexit.register(self.close_all)
        key = id(exchange)
        self._open[key] = exchange
        end = weakref.finalize(stream, self._dropped.put, key)
        end.atexit = False  # `close_all` does it, at a known time

    def _work(self) -> None:
        while True:
            self._close(self._dropped.get())

    def _close(self, key: int) -> None:
        exchange = self._open.pop(key, None)
        if exchange is not None:
            exchange.closed()

    def close_all(self) -> None:
        """Close what is still open when the process ends."""
        for key in list(self._open):
            self._close(key)


_reaper = _Reaper()
if hasattr(os, "register_at_fork"):
    # The parent's streams are the parent's; its thread did not come along.
    os.register_at_fork(after_in_child=_reaper.reset)


# Which calls of which clients are read, and the provider of an address.

# The conventions' names of the providers that speak OpenAI's API at addresses of their own.
_PROVIDERS: Final = {
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "moonshot.cn": "moonshot_ai",
    "perplexity.ai": "perplexity",
    "x.ai": "x_ai",
    "openai.azure.com": "azure.ai.openai",
    "cohere.com": "cohere",
    "generativelanguage.googleapis.com": "gcp.gemini",
}
_CLIENTS: Final = {
    "Azure": "azure.ai.openai",
    "Bedrock": "aws.bedrock",
    "Vertex": "gcp.vertex_ai",
}


def route_of(library: str, *, method: str, url: str) -> Route | None:
    """Return how a call is read; None for one that calls no model (files, lists of models)."""
    if method.lower() != "post":
        return None
    path = "/" + url.partition("?")[0].strip("/")
    return ROUTES.get(library, {}).get(path)


def provider_of(library: str, *, client: type, host: str) -> str:
    """Return `gen_ai.provider.name`: by the client's class, then by the address it speaks to."""
    names = "".join(base.__name__ for base in client.__mro__)
    for word, provider in _CLIENTS.items():
        if word in names:
            return provider
    for domain, provider in _PROVIDERS.items():
        if host == domain or host.endswith(f".{domain}"):
            return provider
    return library


ClientT = TypeVar("ClientT")
# The context of a call, made of its arguments; the result is put into the list that it gives.
Watching: TypeAlias = Callable[..., AbstractContextManager[list[Any]]]

_MARK: Final = "_hansard_records"
_COPIES: Final = ("copy", "with_options")
# Where anthropic keeps the tracer of its own spans.
_OWN_TRACER: Final = "_lazy_tracer"
# What an instrumentor's span says when it describes a call of a model.
_ANSWERED_OPERATIONS: Final = ("chat", "text_completion", "generate_content")
_CALL_OPERATIONS: Final = (*_ANSWERED_OPERATIONS, "embeddings")
_CALL_KINDS: Final = ("LLM", "EMBEDDING")


def instrument_client(client: ClientT) -> ClientT:
    """Record what a client of `openai` or `anthropic` sends and receives, and return the client.

    Works on sync and async clients, on those for Azure, and on copies made later (`with_options`).
    Each call becomes one span `chat {model}`; its `hansard.request.ref` and `hansard.response.ref`
    name the exact bytes, streamed ones included. Only calls of models are recorded (responses, chat
    completions, embeddings, messages, token counts), never a credential. Before `init()`, and after
    `shutdown()`, calls go straight through. A second time changes nothing; an object that is no
    such client is reported on the logger `hansard` and returned as it is.
    """
    library = _library_of(client)
    if library is None:
        warn_once(
            f"no client {type(client).__qualname__}",
            "hansard.instrument_client() takes clients of the packages openai and anthropic, "
            "and this is a %s: its calls are not recorded",
            type(client).__qualname__,
        )
    elif not is_recorded(client):
        _attach(client, library)
    return client


def uninstrument_client(client: ClientT) -> ClientT:
    """Undo `instrument_client` for this client, and return it; copies made before stay recorded."""
    fields = vars(client) if hasattr(client, "__dict__") else {}
    before = fields.pop(_MARK, None)
    if before is not None:
        for name in ("request", *_COPIES):
            fields.pop(name, None)
        fields.update(before)
    return client


def _library_of(client: Any) -> str | None:
    for base in type(client).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ROUTES and hasattr(client, "request") and hasattr(client, "_client"):
            return library
    return None


@observing
def _attach(client: Any, library: str) -> None:
    is_async = hasattr(client, "__aenter__")
    fields = vars(client)
    before = {key: fields[key] for key in (_OWN_TRACER,) if key in fields}
    watch_client(client, is_async=is_async)

    def request(*args: Any, **kwargs: Any) -> Any:
        # Looked up on the class at each call: an instrumentor may have wrapped it since.
        return type(client).request(client, *args, **kwargs)

    def watching(*args: Any, **kwargs: Any) -> AbstractContextManager[list[Any]]:
        return recorded_call(client, library, args, kwargs)

    fields["request"] = around(type(client).request, request, watching, is_async=is_async)
    for name in _COPIES:
        fields[name] = _recorded_copy(client, name)
    fields[_MARK] = before


@observing
def watch_client(client: Any, *, is_async: bool) -> None:
    """Watch what a client sends inside of recorded calls, and quiet its own spans there.

    Outside of a recorded call both do nothing, so they may stay for good.
    """
    _watch_http(client._client, is_async=is_async)
    if getattr(client, "_tracer", None) is None or isinstance(client._tracer, QuietTracer):
        return
    # Its own span of a call would be the second one. Where the package keeps its tracer
    # elsewhere, both are sent, and the collector counts one.
    vars(client)[_OWN_TRACER] = QuietTracer(client._tracer)


def is_recorded(client: Any) -> bool:
    """Whether `instrument_client` was called with this client."""
    return _MARK in vars(client)


def _recorded_copy(client: Any, name: str) -> Callable[..., Any]:
    @functools.wraps(getattr(type(client), name))
    def copy(*args: Any, **kwargs: Any) -> Any:
        return instrument_client(getattr(type(client), name)(client, *args, **kwargs))

    return copy


# ---- one call


def around(
    like: Callable[..., Any], call: Callable[..., Any], watching: Watching, *, is_async: bool
) -> Callable[..., Any]:
    """Return a method like another one that calls it in a context, which gets its result."""
    if is_async:

        @functools.wraps(like)
        async def method(*args: Any, **kwargs: Any) -> Any:
            with watching(*args, **kwargs) as came:
                came.append(await call(*args, **kwargs))
            return came[0]

    else:

        @functools.wraps(like)
        def method(*args: Any, **kwargs: Any) -> Any:
            with watching(*args, **kwargs) as came:
                came.append(call(*args, **kwargs))
            return came[0]

    return method


@contextmanager
def recorded_call(
    client: Any, library: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[list[Any]]:
    """Record the call `request(client, …)` that is made in the block."""
    call = _begin(client, library, args, kwargs)
    with _place_of(call):
        try:
            yield []
        except BaseException as error:
            if call is not None:
                call.raised(error)
            raise
    if call is not None:
        call.returned()


def _place_of(call: RecordedCall | None) -> AbstractContextManager[None]:
    if call is not None:
        return call.running()
    return nullcontext() if current_call() is None else outside_of_calls()


@observing
def _begin(
    client: Any, library: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> RecordedCall | None:
    """Start the record of a call; None when nothing records, or no model is called."""
    recorder = active()
    if recorder is None or is_recorded_outside():
        return None
    options = kwargs["options"] if "options" in kwargs else args[1]
    route = route_of(library, method=options.method, url=options.url)
    if route is None:
        return None
    outer = _step_of_call(route.operation)
    # What is sent may say more (`extra_body`); then the span gets it before it is sent.
    model = text(mapping(options.json_data).get("model"))
    found = _server(client, library)
    return RecordedCall(recorder, route, model=model, attributes=found, outer=outer)


def _server(client: Any, library: str) -> Attributes:
    url = client.base_url
    host = text(url.host) or ""
    found: Attributes = {
        semconv.PROVIDER_NAME: provider_of(library, client=type(client), host=host),
        semconv.SERVER_ADDRESS: host,
    }
    port = integer(url.port) or (443 if url.scheme == "https" else 80)
    return found | {semconv.SERVER_PORT: port}


def _step_of_call(operation: str) -> Span | None:
    """Return the span of a framework's step that is this call, and that is not current.

    It gets its attributes when it ends; all that is known now is that it is this call. Ours has the
    exact bytes, so it is the one that counts.
    """
    outer = langchain.model_span() if operation in _CALL_OPERATIONS else None
    if outer is not None:
        outer.set_attribute(semconv.DUPLICATE, True)
        return outer
    stream = llama_index.stream_span() if operation in _ANSWERED_OPERATIONS else None
    if stream is not None:
        llama_index.repeat(stream)
    is_inside_of_client = _mark_outer_span()
    if stream is None or is_inside_of_client or not llama_index.is_below(stream):
        return None
    return stream


@observing
def _mark_outer_span() -> bool:
    """Mark the current span where it describes this call, as an instrumentor of the client's does.

    Returns whether it does.
    """
    outer = trace.get_current_span()
    attributes = getattr(outer, "attributes", None)
    if not attributes or not outer.is_recording():
        return False
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    is_call = (
        attributes.get("gen_ai.operation.name") in _CALL_OPERATIONS
        or kind in _CALL_KINDS
        or "llm.request.type" in attributes
    )
    if is_call:
        outer.set_attribute(semconv.DUPLICATE, True)
    return is_call


# ---- one try


def _watch_http(http: Any, *, is_async: bool) -> None:
    """Watch the HTTP client that a client, and its copies, send through.

    What is sent outside of a recorded call is not looked at, so it may stay for good.
    """

    def send(*args: Any, **kwargs: Any) -> Any:
        return type(http).send(http, *args, **kwargs)

    fields = vars(http)
    if "send" not in fields:
        watching = functools.partial(_sending, is_async=is_async)
        fields["send"] = around(type(http).send, send, watching, is_async=is_async)


@contextmanager
def _sending(request: Any, *_: Any, is_async: bool, **__: Any) -> Iterator[list[Any]]:
    """Watch one try, which is made in the block; its response is put into the list."""
    call = current_call()
    exchange = None if call is None else call.sending(request)
    came: list[Any] = []
    try:
        yield came
    except BaseException as error:
        if exchange is not None:
            exchange.error = error
        raise
    if exchange is not None:
        _answered(exchange, came[0], is_async=is_async)


def _answered(exchange: ClientExchange, response: Any, *, is_async: bool) -> None:
    try:
        if not exchange.answered(response):
            watch(response, exchange, is_async=is_async)
    except Exception as error:  # a response of another make
        tell("_answered", error)
        exchange.closed()


# ---- every client of a library, where no instrumentor of it works

# `instrument_client` replaces methods of one client. Here the method `request` of the base classes
# of the package is replaced: clients made before and those made later are recorded alike.

# Public classes of each package; the base that has their `request` is looked for.
LIBRARIES: Final = {
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
    if library not in LIBRARIES:
        return False
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # a module that was put there by hand
        return False


def recordable() -> list[str]:
    """Return the installed libraries whose HTTP clients can be recorded; imports none."""
    return [library for library in LIBRARIES if can_record(library)]


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
    for name in LIBRARIES[library]:
        client = getattr(package, name)
        owner = next((base for base in client.__mro__ if "request" in vars(base)), None)
        if owner is None:
            raise AttributeError(f"{library}.{name} has no method request")
        found.append(_Replaced(owner, vars(owner)["request"]))
    for one, name in zip(found, LIBRARIES[library], strict=True):
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
        if not one.is_on or is_recorded(client):
            return nullcontext([])
        watch_client(client, is_async=is_async)
        return recorded_call(client, library, args, kwargs)

    return around(one.original, one.original, watching, is_async=is_async)
