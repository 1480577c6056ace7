"""What a sidecar route gets: the app's sidecar, with its locks and idempotency keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Depends, HTTPException
from starlette.requests import Request

from hansard_store.content.retention import Retention
from hansard_store.database.idempotency_keys import IdempotencyKeys
from hansard_store.principals.model import Scope
from hansard_store.runs.queries import find_trace_id
from hansard_web.app.site import Site
from hansard_web.principals.dependencies import principal_of
from hansard_web.sidecar.addresses import Place, find_place
from hansard_web.sidecar.errors import RecordingDisabled
from hansard_web.sidecar.idempotency import Ids, Once
from hansard_web.sidecar.recorder import Outlet, Recording

_STRIPES: Final = 64


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

    def once(self, route: str, key: str | None, body: bytes, *, repeats: bool = True) -> Once:
        """Return a request that is done once."""
        seed = None if key is None else f"{route}\n{key}".encode()
        ids = Ids(self.outlet.retention.key, seed)
        return Once(self.keys, route, key, body, ids, repeats)

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
