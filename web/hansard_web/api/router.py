"""The router that every noun of the API has, and what its routes answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute

from hansard_store.database.cursors import Page
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import check_parameters, check_schema_version
from hansard_web.api.values import SCHEMA_VERSION, dump, page_body

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])
_Item = TypeVar("_Item")


class ApiResponse(Response):
    """A body with its schema version.

    Nothing is validated here: that would cost more than reading it from the store.
    """

    media_type = "application/json"

    def __init__(
        self, body: Mapping[str, Any], *, status_code: int = 200, headers: Mapping[str, str] = {}
    ) -> None:
        content = dump({"schema_version": SCHEMA_VERSION, **body})
        super().__init__(content, status_code=status_code, headers=dict(headers))


def page_answer(
    page: Page[_Item], body: Callable[[_Item], Mapping[str, Any]], **more: Any
) -> ApiResponse:
    """Return one page of a list as an answer, and what else is said of it."""
    return ApiResponse({**page_body(page, body), **more})


class NounRouter:
    """The routes of a noun, which name the models of what they answer.

    They refuse clients of another version of the API, and query parameters that a route does not
    declare; `any_query` is for a route that checks them itself. An application takes the routes as
    they are: a router that is included works all of its routes out once more, for the first person
    who asks for any page: 70 ms.
    """

    def __init__(
        self, noun: str, *, route_class: type[APIRoute] = APIRoute, dependencies: Sequence[Any] = ()
    ) -> None:
        self._router = APIRouter(
            tags=[noun],
            route_class=route_class,
            default_response_class=ApiResponse,
            dependencies=[Depends(check_schema_version), *dependencies],
        )

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, in the order in which they were added."""
        return self._router.routes

    def get(self, path: str, *models: str, **options: Any) -> Callable[[_Endpoint], _Endpoint]:
        """Add a route that reads, and answers with one of the bodies (`noun.bodies.Kind`)."""
        return self._add("GET", path, models, **options)

    def post(self, path: str, *models: str, **options: Any) -> Callable[[_Endpoint], _Endpoint]:
        """Add a route that changes something; `status` is that of its answer."""
        return self._add("POST", path, models, **options)

    def put(self, path: str, *models: str, **options: Any) -> Callable[[_Endpoint], _Endpoint]:
        """Add a route that puts something in the place of what was there."""
        return self._add("PUT", path, models, **options)

    def _add(
        self,
        method: str,
        path: str,
        models: Sequence[str],
        *,
        status: int = 200,
        any_query: bool = False,
        **options: Any,
    ) -> Callable[[_Endpoint], _Endpoint]:
        if path.startswith("/v1/") and not any_query:
            options["dependencies"] = [Depends(check_parameters), *options.get("dependencies", ())]
        if models:
            options |= {"status_code": status, "responses": answers(*models, status=status)}
        return self._router.api_route(path, methods=[method], **options)
