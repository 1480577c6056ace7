"""Reads and writes of memory as steps: the span begins first, so that the record can name it.

The attributes are OpenTelemetry's and hold no content: records stay in the store of memory, so that
what is purged there is not left in a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import get_current_span

from hansard import semconv
from hansard._backend import backend_of_this_process
from hansard._gate.arguments import Json
from hansard._runs.run import Run, context_of, current_run
from hansard._runs.step import Step
from hansard._runtime.recorder import active
from hansard._tracing.context import address_of
from hansard._tracing.open_span import OpenSpan, outcome_of, quietly

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from hansard._tracing.attributes import Attributes


def read_attributes(query: Mapping[str, Any]) -> Attributes:
    """Return the attributes with which a read begins; its text is content, and no attribute."""
    return {
        semconv.OPERATION_NAME: semconv.OP_SEARCH_MEMORY,
        semconv.MEMORY_STORE_ID: store_id(query),
    }


def write_attributes(fields: Mapping[str, Any]) -> Attributes:
    """Return the attributes with which a write begins."""
    return {
        semconv.OPERATION_NAME: semconv.OP_UPSERT_MEMORY,
        semconv.MEMORY_STORE_ID: store_id(fields),
        semconv.MEMORY_WRITER: fields.get("writer"),
        semconv.MEMORY_TYPE: fields.get("memory_type"),
        semconv.APPROVAL_ID: fields.get("approval_id"),
    }


def end_attributes(fields: Mapping[str, Any]) -> Attributes:
    """Return the attributes of an invalidation: the record is updated, never deleted."""
    return {
        semconv.OPERATION_NAME: semconv.OP_UPDATE_MEMORY,
        semconv.MEMORY_RECORD_ID: fields.get("memory_id"),
    }


def record_read(span: OpenSpan, items: Sequence[Mapping[str, Any]]) -> None:
    """Record the ids and states of the found records."""
    span.span.set_attribute(semconv.MEMORY_RECORD_COUNT, len(items))
    if items:
        span.keep(semconv.MEMORY_RECORDS, [_brief(one) for one in items])


def record_write(span: OpenSpan, response: Mapping[str, Any]) -> None:
    """Record the outcome of a write."""
    memory = response.get("memory", {})
    span.span.set_attribute(semconv.MEMORY_RECORD_ID, str(memory.get("memory_id", "")))
    outcome = response.get("outcome", memory.get("state", ""))
    span.span.set_attribute(semconv.MEMORY_OUTCOME, str(outcome))


def store_id(fields: Mapping[str, Any]) -> str:
    """Return the name of the namespace, or of a run's own memory."""
    namespace = fields.get("namespace") or {}
    named = [f"{part}:{namespace[part]}" for part in ("project", "user", "agent")
             if namespace.get(part)]  # fmt: skip
    return " ".join(named) or "working"


def _brief(one: Mapping[str, Any]) -> dict[str, Any]:
    fields = ("memory_type", "slot", "state", "version", "confidence", "source_run_id")
    return {"id": one["memory_id"], "metadata": {key: one[key] for key in fields if one.get(key)}}


@dataclass(frozen=True, slots=True)
class StepContext:
    """The run and step of a read or write of memory."""

    context: Context
    run_id: str | None
    step_id: str | None
    agent: str | None


def step_context_of(run: Run | str | None, step: Step | str | None) -> StepContext:
    """Return the context of a run and step, of the current ones if none is named."""
    context = context_of(run, step)
    run_id, step_id = address_of(get_current_span(context)) or (None, None)
    if isinstance(run, str):
        run_id = run  # perhaps of another program
    if isinstance(step, str):
        step_id = step
    current = run if isinstance(run, Run) else current_run()
    return StepContext(context, run_id, step_id, None if current is None else current.agent_name)


def read_as_step(parent: StepContext, query: Json) -> Json:
    """Read memory, as a step."""

    def record_result(span: OpenSpan, response: Json) -> None:
        if query.get("text"):
            span.keep_text(semconv.MEMORY_QUERY, str(query["text"]))
        record_read(span, response["items"])

    return _in_step("read", parent, query, read_attributes(query), record_result)


def write_as_step(parent: StepContext, fields: Json) -> Json:
    """Write memory, as a step."""
    attributes = write_attributes(fields)
    return _in_step("write", parent, fields, attributes, record_write)


def invalidate_as_step(parent: StepContext, fields: Json, *, token: str | None = None) -> Json:
    """Invalidate a record, as a step."""
    attributes = end_attributes(fields)
    return _in_step("invalidate", parent, fields, attributes, record_write, token=token)


def _in_step(
    verb: str,
    parent: StepContext,
    fields: Mapping[str, Any],
    attributes: Attributes,
    record_result: Callable[[OpenSpan, Json], None],
    *,
    token: str | None = None,
) -> Json:
    span = _begin(parent, attributes)
    step_id = parent.step_id if span is None else span.step_id
    run_id = parent.run_id or (None if span is None else span.trace_id)
    if step_id is not None and run_id is not None and not step_id.startswith(run_id):
        step_id = None  # it belongs to a run of another trace
    identity = {"run_id": run_id, "step_id": step_id, "agent": parent.agent}
    body = {**fields, **{key: value for key, value in identity.items() if value is not None}}
    try:
        response = backend_of_this_process().memory.ask(verb, body, token=token)
    except BaseException as error:
        _end(span, error)
        raise
    if span is not None:
        with quietly("memory"):
            record_result(span, response)
        _end(span, None)
    return response


def _begin(parent: StepContext, attributes: Attributes) -> OpenSpan | None:
    recorder = active()
    if recorder is None:
        return None
    with quietly("memory"):
        name = str(attributes[semconv.OPERATION_NAME])
        return OpenSpan(recorder, name, context=parent.context, attributes=attributes)
    return None


def _end(span: OpenSpan | None, error: BaseException | None) -> None:
    if span is not None and span.claim():
        span.close(outcome_of(None, error))
