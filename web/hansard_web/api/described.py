"""The OpenAPI document, made when it is asked for.

The models of answers describe what routes answer and check nothing while a server runs. To load
180 of them and to work out their schemas took 0.1 s of each start and 5 MiB, for a document that
few ask for. So routes name the models of their answers, and they are loaded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

Responses = dict[int | str, dict[str, Any]]

_NAMED: Final = "models"  # FastAPI's own key is "model": it would load them for every route
_ERROR: Final = {_NAMED: ("models.Error",)}


def answers(*models: str, status: int = 200, **told: str) -> Responses:
    """Return how a route answers: `module.Model` of this package, one of those named."""
    return {status: {_NAMED: models, **told}}


def model_of(response: Mapping[str, Any]) -> Any:
    """Return the model, or the union of models, that a response names."""
    return reduce(or_, map(_load, response[_NAMED]))


def openapi_of(app: FastAPI, told: Sequence[BaseRoute]) -> dict[str, Any]:
    """Return the document of the routes told of; takes a third of a second the first time."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=[_twin(route) for route in told if isinstance(route, APIRoute)],
        )
    return app.openapi_schema


def _twin(route: APIRoute) -> APIRoute:
    """Return the same route with the models of its answers, to be described and not served."""
    told = {"4XX": _ERROR, "5XX": _ERROR, **route.responses}
    return APIRoute(
        route.path,
        route.endpoint,
        name=route.name,
        methods=route.methods,
        tags=route.tags,
        summary=route.summary,
        description=route.description,
        deprecated=route.deprecated,
        status_code=route.status_code,
        response_class=route.response_class,
        responses={status: _with_model(response) for status, response in told.items()},
        dependencies=route.dependencies,
        openapi_extra=route.openapi_extra,
        include_in_schema=route.include_in_schema,
    )


def _with_model(response: dict[str, Any]) -> dict[str, Any]:
    if _NAMED not in response:
        return response
    told = {name: value for name, value in response.items() if name != _NAMED}
    return {"model": model_of(response), **told}


def _load(name: str) -> Any:
    module, _, model = name.partition(".")
    return getattr(import_module(f"hansard_web.api.{module}"), model)
