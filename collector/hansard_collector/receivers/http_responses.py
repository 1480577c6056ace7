"""Responses of the OTLP/HTTP endpoint: in the request's encoding, errors as google.rpc.Status."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from starlette.responses import Response

from hansard_collector.pipeline.requests import Encoding
from hansard_collector.receivers.export_response import ExportRefusal, capped, status_message

_METHODS = "POST, OPTIONS"
_HEADERS = "content-type, content-encoding, authorization, x-requested-with"
_MAX_AGE_S = 7200
_HEADER_LIST = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]+")  # RFC 9110 §5.6.2: tokens


def cors_headers(request_headers: Mapping[str, str], origins: Collection[str]) -> dict[str, str]:
    """Headers for every response, errors included: without them a browser hides the status.

    Nothing when no origin is allowed at all. Otherwise Vary, so that no cache gives one origin's
    answer to another, and Allow-Origin for the origins in the list.
    """
    if not origins:
        return {}
    origin = request_headers.get("origin", "")
    if origin not in origins:
        return {"vary": "Origin"}
    return {
        "vary": "Origin",
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "retry-after",
    }


def preflight_headers(
    request_headers: Mapping[str, str], origins: Collection[str]
) -> dict[str, str] | None:
    """Headers of the response to a preflight request, or None if this is none we may grant."""
    is_preflight = "access-control-request-method" in request_headers
    if not is_preflight or request_headers.get("origin", "") not in origins:
        return None
    # The user of an allowed origin may configure any headers in its exporter.
    requested = request_headers.get("access-control-request-headers", "")
    granted = f"{_HEADERS}, {requested}" if _HEADER_LIST.fullmatch(requested) else _HEADERS
    headers = cors_headers(request_headers, origins) | {
        "access-control-allow-methods": _METHODS,
        "access-control-allow-headers": granted,
        "access-control-max-age": str(_MAX_AGE_S),
    }
    if request_headers.get("access-control-request-private-network") == "true":
        # Sent by Chrome when a page from a wider network reaches for this machine.
        headers["access-control-allow-private-network"] = "true"
    return headers


JSON_TYPE = "application/json"
PROTOBUF_TYPE = "application/x-protobuf"

_ENCODINGS: Mapping[str, Encoding] = {
    JSON_TYPE: Encoding.JSON,
    PROTOBUF_TYPE: Encoding.PROTOBUF,
    "application/protobuf": Encoding.PROTOBUF,  # what some clients write
}


def media_type_of(headers: Mapping[str, str]) -> str:
    """The request's Content-Type without its parameters, in lower case; empty if absent."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def encoding_of(headers: Mapping[str, str]) -> Encoding | None:
    """How the request's body is encoded; None for a type that OTLP does not know."""
    return _ENCODINGS.get(media_type_of(headers))


def message_response(
    request_headers: Mapping[str, str],
    message: Message,
    *,
    http_code: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A message as OTLP/HTTP sends it: same type as the request's, or JSON if that is unknown."""
    media_type = media_type_of(request_headers)
    if _ENCODINGS.get(media_type) is Encoding.PROTOBUF:
        body = message.SerializeToString()
    else:
        media_type = JSON_TYPE
        body = orjson.dumps(json_format.MessageToDict(message))
    # Not Starlette's media_type: that would add a charset to what must equal the request's type.
    all_headers = {"content-type": media_type} | dict(headers or {})
    return Response(body, status_code=http_code, headers=all_headers)


def status_response(
    request_headers: Mapping[str, str],
    *,
    http_code: int,
    grpc_code: int,
    message: str,
    headers: Mapping[str, str] | None = None,
    cors_origins: Collection[str] = (),
) -> Response:
    """A google.rpc.Status for whatever refuses a request on an OTLP path, as a middleware may.

    `request_headers` are looked up by lower-case names. Browsers see the status only if
    `cors_origins` are set and hold the page's origin.
    """
    return message_response(
        request_headers,
        Status(code=grpc_code, message=capped(message)),
        http_code=http_code,
        headers=cors_headers(request_headers, cors_origins) | dict(headers or {}),
    )


def refusal_response(
    request_headers: Mapping[str, str], refusal: ExportRefusal, *, cors_origins: Collection[str]
) -> Response:
    headers = cors_headers(request_headers, cors_origins) | dict(refusal.headers)
    if refusal.retry_after_s is not None:
        headers["retry-after"] = str(refusal.retry_after_s)
    return message_response(
        request_headers,
        status_message(refusal),
        http_code=refusal.reason.http,
        headers=headers,
    )
