"""The Events and Raw tabs of a step: what happened during it, and the record as it came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from hansard_collector.derivation.stored_span import StepReading
from hansard_collector.dialects.engine.item_views import EventView, LogView
from hansard_collector.dialects.engine.values import real
from hansard_collector.otlp.json_codec import encode_json
from hansard_store.heartbeat.hook_rates import WARNED
from hansard_store.steps.queries import StepSkeleton, links_from, links_to_step
from hansard_web.ui.format import duration
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

_SHOWN_CHARS = 20_000
_RULE_CHARS: Final = 400
_SEVERITIES: Final = (
    (21, "fatal"), (17, "error"), (13, "warning"), (9, "info"), (5, "debug"), (1, "trace"),
)  # fmt: skip
_ERROR_SEVERITY = 17


@dataclass(frozen=True, slots=True)
class EventRow:
    """A span event or log record; `after` is since the span's start."""

    what: str
    kind: str  # "event" or "log"
    time_ns: int
    after: str
    severity: str
    is_error: bool
    text: str
    tree: JsonNode | None


@dataclass(frozen=True, slots=True)
class LinkRow:
    """The other end of a link between spans."""

    name: str
    href: str | None  # None: that span is not stored here
    where: str


@dataclass(frozen=True, slots=True)
class EventsTab:
    rows: tuple[EventRow, ...]
    links: tuple[LinkRow, ...]
    linked_from: tuple[LinkRow, ...]

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.links) + len(self.linked_from)


def events_tab(
    connection: apsw.Connection, step: StepSkeleton, reading: StepReading, *, now_ns: int
) -> EventsTab:
    """Return events and log records in order of time, and links both ways."""
    start_ns = reading.view.start_ns
    rows = [_event(event, start_ns) for event in reading.view.events]
    rows += [_log(log, start_ns) for log in reading.view.logs]
    return EventsTab(
        rows=tuple(sorted(rows, key=lambda row: row.time_ns)),
        links=tuple(
            LinkRow(
                name=end.step.name if end.step else f"span {end.span_id}",
                href=f"/steps/{end.step.step_id}" if end.step else None,
                where=f"run {end.run_id[:8]}" if end.step else f"of trace {end.run_id}, not here",
            )
            for end in links_from(connection, [step.id], now_ns=now_ns)
        ),
        linked_from=tuple(
            LinkRow(one.name, f"/steps/{one.step_id}", f"run {one.run_id[:8]}")
            for one in links_to_step(connection, step, now_ns=now_ns)
        ),
    )


def hook_warnings(reading: StepReading) -> tuple[str, ...]:
    """Return what hooks warned of before the call, each in a sentence."""
    return tuple(_warning(log.attributes) for log in reading.view.logs if log.event_name == WARNED)


def _warning(said: Mapping[str, Any]) -> str:
    score, threshold = (
        real(said.get("hansard.hook.score")),
        real(said.get("hansard.hook.threshold")),
    )
    figures = "" if score is None else f" (score {score:.2f}"
    if figures:
        figures += ")" if threshold is None else f", warnings from {threshold:.2f})"
    rule = str(said.get("hansard.hook.rule", ""))[:_RULE_CHARS]
    return f"may not be undone{figures}" + (f": {rule}" if rule else "")


def _event(event: EventView, start_ns: int) -> EventRow:
    attributes = dict(event.attributes)
    is_error = event.name == "exception"
    text = _exception(attributes) if is_error else ""
    return EventRow(
        what=event.name or "event",
        kind="event",
        time_ns=event.time_ns,
        after=_after(event.time_ns, start_ns),
        severity="",
        is_error=is_error,
        text=text[:_SHOWN_CHARS],
        tree=json_tree(attributes) if attributes else None,
    )


def _exception(attributes: dict[str, Any]) -> str:
    """Take what says what went wrong out of an exception's attributes, as one text."""
    kind, message, trace = (
        str(attributes.pop(f"exception.{key}", "")) for key in ("type", "message", "stacktrace")
    )
    head = ": ".join(part for part in (kind, message) if part)
    return "\n\n".join(part for part in (head, trace) if part)


def _log(log: LogView, start_ns: int) -> EventRow:
    severity = log.severity_text or next(
        (word for least, word in _SEVERITIES if log.severity_number >= least), ""
    )
    body = parsed(log.body)
    is_text = isinstance(body, str)
    extra = dict(log.attributes) if is_text or body is None else {"body": body, **log.attributes}
    return EventRow(
        what=log.event_name or "log record",
        kind="log",
        time_ns=log.time_ns,
        after=_after(log.time_ns, start_ns),
        severity=severity.lower(),
        is_error=log.severity_number >= _ERROR_SEVERITY,
        text=body[:_SHOWN_CHARS] if is_text else "",
        tree=json_tree(extra) if extra else None,
    )


def _after(time_ns: int, start_ns: int) -> str:
    if not start_ns or not time_ns:
        return ""
    sign = "+" if time_ns >= start_ns else "−"
    return sign + duration(abs(time_ns - start_ns))


@dataclass(frozen=True, slots=True)
class RawTab:
    """What came in, encoded again as OTLP JSON."""

    text: str
    characters: int
    is_cut: bool
    href: str


def raw_tab(step: StepSkeleton, reading: StepReading) -> RawTab:
    """Return the span as OTLP JSON; the download has all of it."""
    text = json.dumps(encode_json(raw_message(reading)), ensure_ascii=False, indent=2)
    return RawTab(
        text=text[:_SHOWN_CHARS],
        characters=len(text),
        is_cut=len(text) > _SHOWN_CHARS,
        href=f"/v1/steps/{step.step_id}/raw",
    )


def raw_message(reading: StepReading) -> TracesData:
    """Return one span in the envelope it came in."""
    data = TracesData()
    resource = data.resource_spans.add()
    resource.MergeFrom(reading.stored.resource)
    scope = resource.scope_spans.add()
    scope.MergeFrom(reading.stored.scope)
    scope.spans.add().CopyFrom(reading.stored.message)
    return data
