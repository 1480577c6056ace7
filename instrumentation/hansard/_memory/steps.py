"""Reads and writes of memory as steps: the span first, so that the record can name it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hansard import semconv
from hansard._backend import backend_of_this_process
from hansard._gate.arguments import Json
from hansard._memory import attributes as memory_told
from hansard._runs.run import Run, current_run
from hansard._runs.step import Step
from hansard._runtime.recorder import active
from hansard._tracing.addresses import address_in, context_of
from hansard._tracing.open_span import OpenSpan, quietly
from hansard._tracing.outcome import outcome_of

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from hansard._tracing.attributes import Attributes


@dataclass(frozen=True, slots=True)
class Place:
    """Where something of memory happens."""

    context: Context
    run_id: str | None
    step_id: str | None
    agent: str | None


def place_of(run: Run | str | None, step: Step | str | None) -> Place:
    """Return the place of a run and step, the current ones where none is named."""
    context = context_of(run, step)
    found = address_in(context)
    run_id, step_id = found or (None, None)
    if isinstance(run, str):
        run_id = run  # perhaps another program's, told by its id
    if isinstance(step, str):
        step_id = step
    told = run if isinstance(run, Run) else current_run()
    return Place(context, run_id, step_id, None if told is None else told.agent_name)


def tell_read(place: Place, asked: Json) -> Json:
    """Read, as a step."""

    def tell(made: OpenSpan, answer: Json) -> None:
        if asked.get("text"):
            made.keep_text(semconv.MEMORY_QUERY, str(asked["text"]))
        memory_told.tell_read(made, answer["items"])

    return _in_step("read", place, asked, memory_told.read_attributes(asked), tell)


def tell_write(place: Place, told: Json) -> Json:
    """Write, as a step."""
    attributes = memory_told.write_attributes(told)
    return _in_step("write", place, told, attributes, memory_told.tell_written)


def tell_end(place: Place, told: Json, *, token: str | None = None) -> Json:
    """Invalidate, as a step."""
    attributes = memory_told.end_attributes(told)
    tell = memory_told.tell_written
    return _in_step("invalidate", place, told, attributes, tell, token=token)


def _in_step(
    verb: str,
    place: Place,
    told: Mapping[str, Any],
    attributes: Attributes,
    tell: Callable[[OpenSpan, Json], None],
    *,
    token: str | None = None,
) -> Json:
    made = _begin(place, attributes)
    step_id = place.step_id if made is None else f"{made.trace_id}-{made.span_id}"
    run_id = place.run_id or (None if made is None else made.trace_id)
    if step_id is not None and run_id is not None and not step_id.startswith(run_id):
        step_id = None  # told for a run of another trace
    named = {"run_id": run_id, "step_id": step_id, "agent": place.agent}
    body = {**told, **{key: value for key, value in named.items() if value is not None}}
    try:
        answer = backend_of_this_process().memory.ask(verb, body, token=token)
    except BaseException as error:
        _end(made, error)
        raise
    if made is not None:
        with quietly("memory"):
            tell(made, answer)
        _end(made, None)
    return answer


def _begin(place: Place, attributes: Attributes) -> OpenSpan | None:
    recorder = active()
    if recorder is None:
        return None
    with quietly("memory"):
        name = str(attributes[semconv.OPERATION_NAME])
        return OpenSpan(recorder, name, context=place.context, attributes=attributes)
    return None


def _end(made: OpenSpan | None, error: BaseException | None) -> None:
    if made is not None and made.claim():
        made.close(outcome_of(None, error))
