"""The context of a model call: what it knew and where that came from (DESIGN §8)."""

from __future__ import annotations

from typing import Literal

import apsw

from hansard_collector.derivation.stored_span import StepReading, read_step
from hansard_collector.derived_context.context import derive_context, place_call
from hansard_collector.derived_context.provenance import ProvenanceRow
from hansard_store.bodies import Body, body_of
from hansard_store.compilations.queries import (
    ID_KEY,
    Compilation,
    compilation_below,
    compilation_named,
    compilation_of_span,
)
from hansard_store.runs.queries import RunItem
from hansard_store.steps.queries import StepSkeleton
from hansard_web.context.compilation_bodies import CompilationSummary, notes_of, summary_body

_CALL_ROLES = ("llm", "embedding")


class OriginBody(Body):
    kind: str
    step_id: str | None
    step_name: str | None


class ContextMessage(Body):
    change: Literal["kept", "added", "dropped", "rewritten", "truncated", "reordered"]
    position: int | None
    previous_position: int | None
    same_bytes: bool
    tokens: int
    origin: OriginBody


class CacheBreakBody(Body):
    position: int
    lost_tokens: int
    equal_tokens: int
    cacheable: bool


class Context(Body):
    """How the messages differ from those of the call this one continues (`continues`)."""

    kind: Literal["derived"]
    call_number: int
    calls_in_run: int
    continues: str | None
    tokens: int
    previous_tokens: int
    tokens_basis: Literal["scaled to the billed input", "estimated"]
    messages: list[ContextMessage]
    cache_break: CacheBreakBody | None


class NativeContext(CompilationSummary):
    """The compile that the step made, named, or has below it; `derived` as for any other call."""

    kind: Literal["native"]
    notes: list[str]
    derived: Context | None


def context_body(
    connection: apsw.Connection,
    run: RunItem,
    step: StepSkeleton,
    reading: StepReading,
    native: Compilation | None,
) -> NativeContext | Context | None:
    """Return the compile that a step is about; else how a call's messages came to be.

    None for a step without a compile that is no model call, or shows no messages.
    """
    derived = _derived(connection, run, step, reading)
    if native is None:
        return derived
    return {
        "kind": "native",
        **summary_body(native),
        "notes": notes_of(native),
        "derived": derived,
    }


def native_compilation(
    connection: apsw.Connection,
    step: StepSkeleton,
    reading: StepReading,
    *,
    run: int,
    with_below: bool = True,
) -> Compilation | None:
    """Return the compile that a step made, that it names, or the last one directly below it."""
    if step.role == "compile":
        return compilation_of_span(connection, step.id)
    named = reading.view.attributes.get(ID_KEY)
    if isinstance(named, str) and named:
        return compilation_named(connection, named, run=run)
    if not with_below:
        return None
    return compilation_below(connection, bytes.fromhex(step.run_id), bytes.fromhex(step.span_id))


def _derived(
    connection: apsw.Connection, run: RunItem, step: StepSkeleton, reading: StepReading
) -> Context | None:
    """Return how a call's messages differ from those of the call it continues."""
    if step.role not in _CALL_ROLES or reading.normal.call is None:
        return None
    placed = place_call(connection, run=run.id, span=step.id, conversation_id=run.conversation_id)
    if placed is None:
        return None
    baseline = placed.baseline
    before = None if baseline is None else read_step(connection, baseline.span).normal.call
    derived = derive_context(
        connection,
        placed,
        run=run.id,
        tools=reading.normal.call.tools,
        previous_tools=() if before is None else before.tools,
    )
    comparison = derived.comparison
    found = comparison.cache_break
    return body_of(
        Context,
        comparison,
        kind="derived",
        call_number=placed.number,
        calls_in_run=placed.of,
        continues=None if baseline is None else baseline.step_id,
        tokens_basis="scaled to the billed input" if comparison.scaled else "estimated",
        messages=[_message(row) for row in comparison.rows],
        cache_break=None if found is None else body_of(CacheBreakBody, found),
    )


def _message(row: ProvenanceRow) -> ContextMessage:
    return body_of(
        ContextMessage,
        row,
        change=row.change.value,
        position=row.current,
        previous_position=row.previous,
        origin=body_of(OriginBody, row.origin),
    )
