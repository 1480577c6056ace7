"""The memory of an app, and the steps that are told of it for programs without the SDK."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar

from fastapi import Depends
from opentelemetry.util.types import AttributeValue
from starlette.requests import Request

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
from hansard_compiler.errors import HansardError
from hansard_compiler.models.memory import (
    EndApprovedMemory,
    EndMemory,
    ReadMemory,
    Told,
    WriteMemory,
)
from hansard_store.memory.json import memory_json
from hansard_store.memory.service import MemoryService, read_answer
from hansard_web.principals.requests import principal_of
from hansard_web.sidecar.request import SidecarService

_T = TypeVar("_T", bound=Told)
Attributes: TypeAlias = Mapping[str, AttributeValue | None]


def write(book: MemoryService, sidecar_service: SidecarService | None, asked: WriteMemory) -> Json:
    """Write, as a step of the run where this server tells it."""
    attributes = write_attributes(asked.model_dump(mode="json"))

    def work(told: WriteMemory) -> Json:
        return book.write(told).json()

    return _in_step(sidecar_service, asked, attributes, work, record_write)


def read(book: MemoryService, sidecar_service: SidecarService | None, asked: ReadMemory) -> Json:
    """Read, as a step of the run where this server tells it."""
    attributes = read_attributes(asked.model_dump(mode="json"))

    def tell(made: OpenSpan, answer: Json) -> None:
        if asked.text:
            made.keep_text(MEMORY_QUERY, asked.text)
        record_read(made, answer["items"])

    return _in_step(
        sidecar_service, asked, attributes, lambda told: read_answer(told, book.read(told)), tell
    )


def invalidate(
    book: MemoryService,
    sidecar_service: SidecarService | None,
    asked: EndMemory | EndApprovedMemory,
) -> Json:
    """Say that a record does not hold, as a step of the run where this server tells it."""
    attributes = end_attributes(asked.model_dump(mode="json"))

    def work(told: EndMemory | EndApprovedMemory) -> Json:
        if isinstance(told, EndApprovedMemory):
            return {"memory": memory_json(book.invalidate_approved(told))}
        return {"memory": memory_json(book.invalidate(told))}

    return _in_step(sidecar_service, asked, attributes, work, record_write)


def _in_step(
    sidecar_service: SidecarService | None,
    asked: _T,
    attributes: Attributes,
    work: Callable[[_T], Json],
    tell: Callable[[OpenSpan, Json], None],
) -> Json:
    """Do it, and tell the step where the run is one that this server tells."""
    step = _Step.begin(sidecar_service, asked, attributes)
    if step is None:
        return {**work(asked), "step_id": asked.step_id}
    try:
        answer = work(asked.model_copy(update={"step_id": step.step_id}))
        tell(step.made, answer)
    except BaseException as error:
        step.end(error)
        raise
    step.end(None)
    return {**answer, "step_id": step.step_id}


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of memory that this server tells."""

    made: OpenSpan
    save: Callable[[], None]

    @property
    def step_id(self) -> str:
        return f"{self.made.trace_id}-{self.made.span_id}"

    @classmethod
    def begin(
        cls, sidecar_service: SidecarService | None, asked: Told, attributes: Attributes
    ) -> _Step | None:
        """Begin one; None where the run is told by another program, or by none."""
        if sidecar_service is None or asked.run is None:
            return None
        try:
            place = sidecar_service.sidecar.place(asked.run, asked.step_id)
            recording = sidecar_service.sidecar.outlet.recording(place.resource)
            made = recording.begin(
                str(attributes[OPERATION_NAME]),
                trace_id=place.trace_id,
                span_id=os.urandom(8).hex(),
                parent_span_id=place.span_id,
                attributes=attributes,
            )
        except HansardError:
            return None  # the SDK tells its own steps; memory goes on without
        return cls(made, recording.save)

    def end(self, error: BaseException | None) -> None:
        if self.made.claim():
            self.made.close(outcome_of(None, error))
        # Memory is committed already: telling of it fails open.
        with suppress(HansardError):
            self.save()


# async: see `site_of`.
async def book_of(request: Request) -> MemoryService:
    """Return the memory of the app, as the principal of a request uses it."""
    book: MemoryService = request.app.state.memory
    return book.acting(principal_of(request))


async def recorder_of(request: Request) -> SidecarService | None:
    """Return the sidecar of the app; None where it stores no telemetry."""
    sidecar_service: SidecarService | None = request.app.state.sidecar
    return sidecar_service


BookDep = Annotated[MemoryService, Depends(book_of)]
DoorDep = Annotated[SidecarService | None, Depends(recorder_of)]
