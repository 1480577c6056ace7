"""What a sidecar route gets: the app's sidecar, its ids and its idempotency keys."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, HTTPException
from starlette.requests import Request

from hansard_store.content.retention import Retention
from hansard_store.database.idempotency_keys import IdempotencyKeys
from hansard_store.principals.model import Scope
from hansard_web.app.site import Site
from hansard_web.principals.dependencies import principal_of
from hansard_web.sidecar.errors import RecordingDisabled
from hansard_web.sidecar.idempotency import Once
from hansard_web.sidecar.recorder import Outlet
from hansard_web.sidecar.runs import Ids, Sidecar


@dataclass(frozen=True, slots=True)
class SidecarService:
    """The sidecar of one app; made with the app."""

    sidecar: Sidecar
    keys: IdempotencyKeys
    key: bytes
    site: Site

    def once(self, route: str, key: str | None, body: bytes, *, repeats: bool = True) -> Once:
        """Return a request that is done once."""
        return Once(self.keys, route, key, body, repeats)

    def ids(self, route: str, key: str | None) -> Ids:
        """Return what makes a request's ids: the same for the same key."""
        return Ids(self.key, None if key is None else f"{route}\n{key}".encode())


def make_sidecar(site: Site) -> SidecarService | None:
    """Return the sidecar of an app; None where the app stores nothing."""
    if site.ingest is None:
        return None
    retention = Retention.of(site.folder, site.settings.retention)
    outlet = Outlet(site.folder, site.ingest, retention)
    return SidecarService(
        Sidecar(site.readers, outlet), IdempotencyKeys(site.folder), retention.key, site
    )


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
