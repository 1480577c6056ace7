"""Requests to memory, and the steps that record them for programs without the SDK."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_args

import apsw
from opentelemetry.util.types import AttributeValue

from hansard._memory import (
    end_attributes,
    read_attributes,
    record_read,
    record_write,
    write_attributes,
)
from hansard._tracing.open_span import OpenSpan, outcome_of
from hansard.semconv import MEMORY_QUERY, OPERATION_NAME
from hansard_compiler.calls import Json
from hansard_compiler.compile.models import MemoryType
from hansard_compiler.errors import HansardError
from hansard_compiler.models.memory import (
    EndApprovedMemory,
    EndMemory,
    MemoryActor,
    ReadMemory,
    WriteMemory,
    Writer,
)
from hansard_store.bodies import body_of
from hansard_store.database.id_prefixes import find_key
from hansard_store.memory.access_log import accesses_of
from hansard_store.memory.maintenance.reviewed_supersessions import links_of, supersession_json
from hansard_store.memory.queries import MemoryFilter
from hansard_store.memory.retrieval import contradicted_by
from hansard_store.memory.rows import access_json, get_memory, memory_json, versions_of
from hansard_store.memory.service import MemoryService, read_answer
from hansard_web.api.queries import read_times, read_word, trace_id_of
from hansard_web.memory.bodies import MemoryDetail
from hansard_web.memory.record import use_json, uses_of

if TYPE_CHECKING:
    from hansard_web.sidecar.request import SidecarService

_T = TypeVar("_T", bound=MemoryActor)
Attributes: TypeAlias = Mapping[str, AttributeValue | None]


def write(
    memory: MemoryService, sidecar_service: SidecarService | None, request: WriteMemory
) -> Json:
    """Write, as a step of the run where this server tells it."""
    attributes = write_attributes(request.model_dump(mode="json"))

    def work(located: WriteMemory) -> Json:
        return memory.write(located).json()

    return _in_step(sidecar_service, request, attributes, work, record_write)


def read(
    memory: MemoryService, sidecar_service: SidecarService | None, request: ReadMemory
) -> Json:
    """Read, as a step of the run where this server tells it."""
    attributes = read_attributes(request.model_dump(mode="json"))

    def tell(made: OpenSpan, body: Json) -> None:
        if request.text:
            made.keep_text(MEMORY_QUERY, request.text)
        record_read(made, body["items"])

    return _in_step(
        sidecar_service,
        request,
        attributes,
        lambda located: read_answer(located, memory.read(located)),
        tell,
    )


def invalidate(
    memory: MemoryService,
    sidecar_service: SidecarService | None,
    request: EndMemory | EndApprovedMemory,
) -> Json:
    """Say that a record does not hold, as a step of the run where this server tells it."""
    attributes = end_attributes(request.model_dump(mode="json"))

    def work(located: EndMemory | EndApprovedMemory) -> Json:
        if isinstance(located, EndApprovedMemory):
            return {"memory": memory_json(memory.invalidate_approved(located))}
        return {"memory": memory_json(memory.invalidate(located))}

    return _in_step(sidecar_service, request, attributes, work, record_write)


def _in_step(
    sidecar_service: SidecarService | None,
    request: _T,
    attributes: Attributes,
    work: Callable[[_T], Json],
    tell: Callable[[OpenSpan, Json], None],
) -> Json:
    """Do it, and tell the step where the run is one that this server tells."""
    begun = _begun(sidecar_service, request, attributes)
    if begun is None:
        return {**work(request), "step_id": request.step_id}
    made, save = begun
    step_id = f"{made.trace_id}-{made.span_id}"
    failure: BaseException | None = None
    try:
        result = work(request.model_copy(update={"step_id": step_id}))
        tell(made, result)
        return {**result, "step_id": step_id}
    except BaseException as error:
        failure = error
        raise
    finally:
        if made.claim():
            made.close(outcome_of(None, failure))
        # Memory is committed already: telling of it fails open.
        with suppress(HansardError):
            save()


def _begun(
    sidecar_service: SidecarService | None, request: MemoryActor, attributes: Attributes
) -> tuple[OpenSpan, Callable[[], None]] | None:
    """Return a step of memory, and what saves it; None where another program records the run."""
    if sidecar_service is None or request.run is None:
        return None
    try:
        place = sidecar_service.place(request.run, request.step_id)
        recording = sidecar_service.outlet.recording(place.resource)
        made = recording.begin(
            str(attributes[OPERATION_NAME]),
            trace_id=place.trace_id,
            span_id=os.urandom(8).hex(),
            parent_span_id=place.span_id,
            attributes=attributes,
        )
    except HansardError:
        return None  # the SDK tells its own steps; memory goes on without
    return made, recording.save


STATES = (
    "current",
    "superseded",
    "review",
    "invalidated",
    "expired",
    "purged",
    "hidden",
    "all",
)


_ACCESSES = 200


_READS = ("read", "candidate")


def read_memory_filter(
    connection: apsw.Connection,
    *,
    run: str | None = None,
    approval: str | None = None,
    fresh_since: str | None = None,
    unread_since: str | None = None,
    min_confidence: float | None = None,
    **fields: str | None,
) -> MemoryFilter:
    """Return the filter of a list of memory; an empty value is no filter."""
    filters: dict[str, Any] = {name: value for name, value in fields.items() if value}
    read_word("state", filters.get("state"), STATES)
    read_word("layer", filters.get("layer"), ("working", "durable"))
    read_word("type", filters.get("memory_type"), get_args(MemoryType))
    read_word("writer", filters.get("writer"), get_args(Writer))
    fresh_ns, unread_ns = read_times(fresh_since, unread_since)
    return MemoryFilter(
        **filters,
        run=trace_id_of(run, lambda: nullcontext(connection)) if run else None,
        approval=find_key(connection, "approval", approval).hex() if approval else None,
        min_confidence=min_confidence,
        fresh_since_ns=fresh_ns,
        unread_since_ns=unread_ns,
    )


def memory_detail(connection: apsw.Connection, memory_id: str, *, now_ns: int) -> MemoryDetail:
    """Return everything that is known of a record; raises NotFoundError, AmbiguousIdError."""
    one = get_memory(connection, memory_id, now_ns=now_ns)
    versions = versions_of(connection, one.line, now_ns=now_ns)
    numbers = [each.id for each in versions]
    touched = accesses_of(connection, numbers, limit=_ACCESSES)
    return body_of(
        MemoryDetail,
        memory=memory_json(one),
        conflicts=[each.json() for each in contradicted_by(connection, one, now_ns=now_ns)],
        versions=[memory_json(each) for each in versions],
        supersessions=[supersession_json(each) for each in links_of(connection, numbers)],
        written_by=[access_json(one) for one in touched if one.kind not in _READS],
        read_by=[access_json(one) for one in touched if one.kind in _READS],
        used_in=[use_json(each) for each in uses_of(connection, one.memory_id)],
    )
