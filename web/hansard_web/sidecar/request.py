"""What a sidecar route gets: the app's sidecar, and the run and step that a request names."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Final

import apsw
from fastapi import Depends, HTTPException
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from starlette.requests import Request

from hansard_collector.derivation.rederivation import StoredSpan, read_span
from hansard_compiler.errors import NotFoundError
from hansard_store.content.retention import Retention
from hansard_store.database.idempotency_keys import IdempotencyKeys
from hansard_store.principals.model import Scope
from hansard_store.runs.open_steps import (
    RunPlace,
    StepPlace,
    find_run_place,
    find_step_by_number,
    find_step_place,
)
from hansard_store.runs.queries import find_trace_id
from hansard_store.steps.queries import get_step
from hansard_web.app.site import Site
from hansard_web.principals.dependencies import principal_of
from hansard_web.sidecar.errors import NotOpen, NotOwner, RecordingDisabled
from hansard_web.sidecar.idempotency import IdempotentRequests, Ids
from hansard_web.sidecar.recorder import SCOPE, Outlet, Recording

_STRIPES: Final = 64


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


@dataclass(frozen=True, slots=True)
class SidecarService:
    """The sidecar of one app; made with the app.

    Of one run, one request at a time reads and writes: each lock stands for some runs, and is held
    by the worker threads that serve them.
    """

    site: Site
    outlet: Outlet
    keys: IdempotencyKeys
    locks: Sequence[threading.Lock] = field(
        default_factory=lambda: tuple(threading.Lock() for _ in range(_STRIPES))
    )

    def once(
        self, route: str, key: str | None, body: bytes, *, repeats: bool = True
    ) -> IdempotentRequests:
        """Return a request that is done once."""
        seed = None if key is None else f"{route}\n{key}".encode()
        ids = Ids(self.outlet.retention.key, seed)
        return IdempotentRequests(self.keys, route, key, body, ids, repeats)

    def place(self, run_id: str, step_id: str | None) -> Place:
        """Return where a request belongs."""
        with self.site.readers.read() as connection:
            return find_place(connection, run_id, step_id)

    @contextmanager
    def adding_to(self, run_id: str, step_id: str | None) -> Iterator[tuple[Place, Recording]]:
        """Lend an open step and what records for it; all of it is saved when the block ends.

        Raises NotFoundError or AmbiguousIdError, and what `find_place` does.
        """
        with self.site.readers.read() as connection:
            trace_id = find_trace_id(connection, run_id).hex()
        with self.locks[int(trace_id[:8], 16) % _STRIPES]:
            open_step = self.place(trace_id, step_id)
            recording = self.outlet.recording(open_step.resource)
            yield open_step, recording
            recording.save()


def make_sidecar(site: Site) -> SidecarService | None:
    """Return the sidecar of an app; None where the app stores nothing."""
    if site.ingest is None:
        return None
    retention = Retention.of(site.folder, site.settings.retention)
    outlet = Outlet(site.folder, site.ingest, retention)
    return SidecarService(site, outlet, IdempotencyKeys(site.folder))


# async: see `site_of`.
async def sidecar_of(request: Request) -> SidecarService:
    """Return the sidecar of the app that serves a request."""
    service: SidecarService | None = request.app.state.sidecar
    if service is None:
        raise RecordingDisabled("this process only shows what a collector stores; ask that one")
    return service


def may_read(request: Request) -> None:
    """Refuse a token that may tell and not read: the answer holds content."""
    token = principal_of(request)
    if token is not None and not token.allows(Scope.READ):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "this token may not read, and the answer holds content"
        )


SidecarDep = Annotated[SidecarService, Depends(sidecar_of)]
MayRead = Depends(may_read)
