"""Recording into memory, for the tests of a program; no plugin, no server, no file.

    def test_the_clerk_looks_the_order_up() -> None:
        with hansard.testing.capture() as spans:
            clerk("Where is order 7?")

        assert spans.text() == "invoke_agent clerk\\n  execute_tool find_order\\n"

Ids and times are the same in every run: ids are counted from 1, and the clock ticks once with every
span that starts or ends. The recorder from before the block is active again after it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.trace import StatusCode

from hansard import semconv
from hansard._config.settings import Settings
from hansard._export.otlp.spans import remade
from hansard._runtime import recorder as _state
from hansard._runtime.recorder import Recorder
from hansard._tracing.context import entered
from hansard._tracing.propagation import inherit
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode

START_NS: Final = 1_767_225_600_000_000_000  # 2026-01-01, midnight UTC: before the first tick
TICK_NS: Final = 1_000_000

Node = dict[str, Any]


class CountedIds(IdGenerator):
    """Trace ids 1, 2, 3 … and span ids 1, 2, 3 …"""

    def __init__(self) -> None:
        self._traces, self._spans = itertools.count(1), itertools.count(1)

    def generate_trace_id(self) -> int:
        return next(self._traces)

    def generate_span_id(self) -> int:
        return next(self._spans)


class Spans(SpanProcessor):
    """The spans of a `capture()` block, finished and still open, in the order they started."""

    def __init__(self, *, fixed_times: bool = True) -> None:
        # Any thread of the program may start and end spans.
        self._lock = threading.Lock()
        self._fixed_times = fixed_times
        self._now_ns = START_NS
        self._started: dict[int, tuple[ReadableSpan, int]] = {}  # by span id, with the tick
        self.payloads: dict[str, bytes] = {}  # by `sha256:…`, what spans name by reference
        self.provider: TracerProvider | None = None  # for instrumentors that take one

    # ---- as a processor

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        inherit(span, parent_context)
        with self._lock:
            self._started[span.get_span_context().span_id] = (span, self._tick())

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        assert context is not None
        with self._lock:
            _, start_ns = self._started[context.span_id]
            ended = self._at(span, start_ns, self._tick()) if self._fixed_times else span
            self._started[context.span_id] = (ended, start_ns)

    def _tick(self) -> int:
        self._now_ns += TICK_NS
        return self._now_ns

    @staticmethod
    def _at(span: ReadableSpan, start_ns: int, end_ns: int) -> ReadableSpan:
        """Return the span with fixed times; its events follow its start by microseconds."""
        events = [
            Event(event.name, event.attributes, start_ns + 1_000 * number)
            for number, event in enumerate(span.events, 1)
        ]
        return remade(span, start_time=start_ns, end_time=end_ns, events=events)

    # ---- what was recorded

    def __len__(self) -> int:
        return len(self._started)

    def __iter__(self) -> Iterator[ReadableSpan]:
        return iter([span for span, _ in self._started.values()])

    def one(self, name: str) -> ReadableSpan:
        """Return the span of this name; LookupError unless there is exactly one."""
        found = [span for span in self if span.name == name]
        if len(found) != 1:
            names = sorted({span.name for span in self})
            raise LookupError(f"{len(found)} spans are called {name!r}; there are {names}")
        return found[0]

    def content(self, name: str, key: str) -> str | None:
        """Return content of a span, from its attribute or from behind a reference."""
        attributes = self.one(name).attributes or {}
        reference = attributes.get(key + semconv.REF_SUFFIX)
        if isinstance(reference, str) and reference in self.payloads:
            return self.payloads[reference].decode()
        value = attributes.get(key)
        return None if value is None else str(value)

    def tree(self, *, attributes: Collection[str] | None = None) -> list[Node]:
        """Return the spans as plain data: name, status, attributes, events, links and children.

        Empty parts are left out. `attributes` names those to show; None shows all. A span
        whose parent is not here is a root.
        """
        nodes = {_span_id(span): _node(span, attributes) for span in self}
        roots: list[Node] = []
        for span in self:
            own, parent = _span_id(span), span.parent.span_id if span.parent is not None else 0
            # Of another block, where ids were counted from 1 too.
            is_root = parent not in nodes or parent == own
            siblings = roots if is_root else nodes[parent].setdefault("children", [])
            siblings.append(nodes[own])
        return roots

    def text(self, *attributes: str) -> str:
        """Return the tree as indented lines: name, status unless it is unset, these attributes."""
        return "".join(_lines(self.tree(attributes=attributes), 0))


@contextmanager
def capture(
    *,
    retention: RetentionMode | str = RetentionMode.REDACTED_PAYLOADS,
    fixed_times: bool = True,
    sampler: Sampler = ALWAYS_ON,
) -> Iterator[Spans]:
    """Record a block into memory; yields the spans, which can be read at any time.

    The block is outside of the current trace. It reads neither the global tracer provider nor the
    environment; pass `spans.provider` to instrumentors of other libraries.
    """
    spans = Spans(fixed_times=fixed_times)
    recorder = _recorder(spans, RetentionMode(retention), sampler)
    before = _state.active()
    _state.install(recorder)
    try:
        with entered(Context()):
            yield spans
    finally:
        _state.install(before)


class _Payloads:
    """A payload store beside the spans."""

    def __init__(self, stored: dict[str, bytes], mode: RetentionMode, redactor: Redactor) -> None:
        self._stored, self._mode, self._redactor = stored, mode, redactor

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        if self._mode is RetentionMode.METADATA_ONLY:
            return ""
        if self._mode is RetentionMode.REDACTED_PAYLOADS and not is_clean:
            data = self._redactor.redact_bytes(data, media_type).data
        reference = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self._stored[reference] = data
        return reference


def _recorder(spans: Spans, mode: RetentionMode, sampler: Sampler) -> Recorder:
    from hansard import __version__

    provider = spans.provider = _provider(sampler)
    provider.add_span_processor(spans)
    redactor = Redactor(bytes(32))  # a fixed key: equal marks in every run
    return Recorder(
        settings=Settings(data=Path("hansard-testing"), retention=mode),
        provider=provider,
        tracer=provider.get_tracer(semconv.SCOPE_NAME, __version__, semconv.SCHEMA_URL),
        redactor=redactor,
        instance_id="testing",
        payloads=_Payloads(spans.payloads, mode, redactor),
    )


def _provider(sampler: Sampler) -> TracerProvider:
    """Return a provider that records, even if tests run with `OTEL_SDK_DISABLED=true`."""
    disabled = os.environ.pop("OTEL_SDK_DISABLED", None)
    try:
        return TracerProvider(
            sampler=sampler,
            resource=Resource({semconv.SERVICE_NAME: "testing"}),
            id_generator=CountedIds(),
            shutdown_on_exit=False,
        )
    finally:
        if disabled is not None:
            os.environ["OTEL_SDK_DISABLED"] = disabled


def _span_id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    return 0 if context is None else context.span_id


def _node(span: ReadableSpan, shown: Collection[str] | None) -> Node:
    events = [_named(event.name, event.attributes, shown) for event in span.events]
    links = [
        {"trace_id": f"{link.context.trace_id:032x}", "span_id": f"{link.context.span_id:016x}"}
        for link in span.links
    ]
    status = _status(span)
    return (
        _named(span.name, span.attributes, shown)
        | ({"status": status} if status else {})
        | ({"events": events} if events else {})
        | ({"links": links} if links else {})
    )


def _named(name: str, attributes: Mapping[str, Any] | None, shown: Collection[str] | None) -> Node:
    values = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in sorted((attributes or {}).items())
        if shown is None or key in shown
    }
    return {"name": name} | ({"attributes": values} if values else {})


def _status(span: ReadableSpan) -> str:
    if span.end_time is None:
        return "open"
    if (span.attributes or {}).get(semconv.CANCELLED):
        return "cancelled"
    code = span.status.status_code
    return "" if code is StatusCode.UNSET else "error" if code is StatusCode.ERROR else "ok"


def _lines(nodes: Sequence[Node], depth: int) -> Iterator[str]:
    for node in nodes:
        status = f" [{node['status']}]" if "status" in node else ""
        shown = "".join(f" {key}={value}" for key, value in node.get("attributes", {}).items())
        yield f"{'  ' * depth}{node['name']}{status}{shown}\n"
        yield from _lines(node.get("children", []), depth + 1)
