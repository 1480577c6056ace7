"""The router that every noun of the API has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from hansard_web.api.parameters import check_schema_version


def noun_router(
    noun: str, *, route_class: type[APIRoute] = APIRoute, dependencies: Sequence[Any] = ()
) -> APIRouter:
    """Return the router of a noun: its routes refuse clients of another version of the API.

    An application takes the routes as they are. A router that is included works all of its routes
    out once more, for the first person who asks for any page: 70 ms.
    """
    return APIRouter(
        tags=[noun],
        route_class=route_class,
        dependencies=[Depends(check_schema_version), *dependencies],
    )
