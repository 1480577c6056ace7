"""Where a request belongs: the run and step it names, as the store knows them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import apsw
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage

from hansard_collector.derivation.rederivation import StoredSpan, read_span
from hansard_compiler.errors import NotFoundError
from hansard_store.runs.open_steps import (
    RunPlace,
    StepPlace,
    find_run_place,
    find_step_by_number,
    find_step_place,
)
from hansard_store.runs.queries import find_trace_id
from hansard_store.steps.queries import get_step
from hansard_web.sidecar.errors import NotOpen, NotOwner
from hansard_web.sidecar.recorder import SCOPE


@dataclass(frozen=True, slots=True)
class Place:
    """A step that is open and ours, and its run."""

    trace_id: str
    run: RunPlace
    step: StepPlace
    stored: StoredSpan

    @property
    def step_id(self) -> str:
        return f"{self.trace_id}-{self.step.span_id.hex()}"

    @property
    def span_id(self) -> str:
        return self.step.span_id.hex()

    @property
    def resource(self) -> ResourceMessage:
        """Who records the run; all its spans come from there."""
        return self.stored.resource.resource


def find_place(connection: apsw.Connection, run_id: str, step_id: str | None = None) -> Place:
    """Return the place of a step, of the run's own where none is named.

    Raises NotFoundError, NotOwner where another program tells it, NotOpen where it has ended.
    """
    trace_id = find_trace_id(connection, run_id)
    run = find_run_place(connection, trace_id)
    if run is None:
        raise NotFoundError("run", run_id)
    if step_id is None:
        step = None if run.root_span is None else find_step_by_number(connection, run.root_span)
        kind, named = "run", run_id
    else:
        step = _named(connection, trace_id, step_id)
        kind, named = "step", step_id
    if step is None or step.scope != SCOPE:
        raise NotOwner(kind, named)
    if not step.is_open:
        raise NotOpen(kind, named)
    return Place(trace_id.hex(), run, step, read_span(connection, step.id))


def place_of(connection: apsw.Connection, trace_id: str, run: RunPlace, step: StepPlace) -> Place:
    """Return the place of a step that was found."""
    return Place(trace_id, run, step, read_span(connection, step.id))


def _named(connection: apsw.Connection, trace_id: bytes, step_id: str) -> StepPlace | None:
    """Return a step by its id, a unique beginning of it, or its span id alone."""
    full_id = step_id if "-" in step_id else f"{trace_id.hex()}-{step_id}"
    found = get_step(connection, full_id, now_ns=time.time_ns())
    if found.run_id != trace_id.hex():
        raise NotFoundError("step of this run", step_id)
    return find_step_place(connection, trace_id, bytes.fromhex(found.span_id))
