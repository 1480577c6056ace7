"""Answers of the OTLP/HTTP door: in the request's encoding, errors as google.rpc.Status."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from starlette.responses import Response

from hansard_collector.pipeline.submission import Encoding
from hansard_collector.receivers.cors import cors_headers
from hansard_collector.receivers.status import Refusal, capped, status_message

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
    `cors_origins` are given and hold the page's origin.
    """
    return message_response(
        request_headers,
        Status(code=grpc_code, message=capped(message)),
        http_code=http_code,
        headers=cors_headers(request_headers, cors_origins) | dict(headers or {}),
    )


def refusal_response(
    request_headers: Mapping[str, str], refusal: Refusal, *, cors_origins: Collection[str]
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
