"""The OpenAPI document, made when it is requested.

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
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from hansard_compiler.models.json_schema import FORMATS

Responses = dict[int | str, dict[str, Any]]

_NAMED: Final = "models"  # FastAPI's own key is "model": it would load them for every route
_ERROR: Final = {_NAMED: ("app.problems.Error",)}
_ERRORS: Final = ("4XX", "5XX")
_JSON: Final = "application/json"
_BODIES: Final = (
    "Bodies are I-JSON (RFC 7493): UTF-8 without halves of surrogate pairs, no key twice in one "
    "object, no number beyond a double; nested up to 100 levels, up to 16 MiB. A request that "
    "obeys its schema is refused for what is stored (404, 409), for who sends it (401, 403), or "
    "where ids of several fields do not belong together (400). Formats of this document:"
)


def answers(*models: str, status: int = 200, **response: str) -> Responses:
    """Return how a route answers: `noun.bodies.Kind`, one of those named."""
    return {status: {_NAMED: models, **response}}


def model_of(response: Mapping[str, Any]) -> Any:
    """Return the model, or the union of models, that a response names."""
    return reduce(or_, map(_load, response[_NAMED]))


def openapi_of(app: FastAPI, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    """Return the document of these routes; takes a third of a second the first time."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description="\n".join([_BODIES, *(f"- `{key}`: {it}" for key, it in FORMATS.items())]),
            routes=[_twin(route) for route in routes if isinstance(route, APIRoute)],
        )
        _describe_errors_as_json(app.openapi_schema)
    return app.openapi_schema


def _twin(route: APIRoute) -> APIRoute:
    """Return the same route with the models of its answers, to be described and not served."""
    responses: Responses = {**dict.fromkeys(_ERRORS, _ERROR), **route.responses}
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
        response_class=_described_class(route),
        responses={status: _with_model(response) for status, response in responses.items()},
        dependencies=route.dependencies,
        openapi_extra=route.openapi_extra,
        include_in_schema=route.include_in_schema,
    )


def _described_class(route: APIRoute) -> type[JSONResponse]:
    """Return a response of the same media type: FastAPI calls every other class's body a string."""
    shown = route.response_class
    media_type = getattr(shown, "media_type", None)

    class Described(JSONResponse):
        pass

    Described.media_type = media_type  # type: ignore[assignment]  # None: as `responses` tell it
    return Described


def _describe_errors_as_json(document: dict[str, Any]) -> None:
    """Errors are JSON on every route; FastAPI gives them the media type of the route's answer."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for status in _ERRORS:
                response = operation["responses"][status]
                [schema] = response["content"].values()
                response["content"] = {_JSON: schema}


def _with_model(response: dict[str, Any]) -> dict[str, Any]:
    if _NAMED not in response:
        return response
    fields = {name: value for name, value in response.items() if name != _NAMED}
    return {"model": model_of(response), **fields}


def _load(name: str) -> Any:
    module, _, model = name.rpartition(".")
    return getattr(import_module(f"hansard_web.{module}"), model)
