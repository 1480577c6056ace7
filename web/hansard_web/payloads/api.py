"""Payloads by reference: the exact bytes, checked on the way in."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Annotated

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.payloads import store_payload as store_prepared
from hansard_store.bodies import Answer, Description, body_of
from hansard_store.content.payloads import (
    Payload,
    checked_file,
    get_payload,
    parse_payload_ref,
    payload_ref,
    prepare_payload,
    read_payload,
)
from hansard_store.content.retention import BINARY, Retention
from hansard_web.api.files import StoredFile
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import PayloadRef
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import Site, SiteDep
from hansard_web.errors import EncodedPayloadError, PayloadTooLargeError

router = NounRouter("payloads")

MAX_BYTES = 64 * 1024 * 1024
# What was recorded is nobody's page: it is saved, never shown, never run.
_UNTRUSTED = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=31536000, immutable",
}


class StoredPayload(Answer):
    """`stored_ref` differs from `ref` where retention took something out."""

    ref: str
    stored: bool
    stored_ref: str | None
    size: int
    redacted: str | None
    reason: Annotated[str | None, Description("why nothing was kept")]


@router.get(
    "/v1/payloads/{ref}",
    response_class=Response,
    responses={
        200: {"content": {BINARY: {}}, "description": "the bytes, as an attachment"},
        206: {"content": {BINARY: {}}, "description": "the range that was requested"},
        416: {"description": "no such range"},
    },
)
def payload_bytes(site: SiteDep, ref: PayloadRef) -> Response:
    """Give the bytes of a payload.

    `Hansard-Redacted: true` says that they are not those that were sent: what retention does not
    keep was taken out. Large ones can be read in ranges.
    Bytes that were altered since are 409 `payload_altered`; a PUT of the right ones heals them.
    """
    digest = parse_payload_ref(ref)
    with site.readers.read() as connection:
        payload = get_payload(connection, digest)
    headers = _headers(payload)
    if payload.inline is not None:
        data = read_payload(site.folder, payload)
        return Response(data, media_type=payload.media_type, headers=headers)
    path = checked_file(site.folder, payload)
    return StoredFile(path, media_type=payload.media_type, headers=headers)


def _headers(payload: Payload) -> dict[str, str]:
    name = f"sha256-{payload.digest.hex()[:12]}"
    redacted = {"Hansard-Redacted": "true"} if payload.redacted else {}
    return {
        **_UNTRUSTED,
        **redacted,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Hansard-Payload": payload.ref,
    }


# async: the body is read as it comes in, and refused as soon as it is too large.
@router.put(
    "/v1/payloads/{ref}",
    responses=answers("payloads.api.StoredPayload", description="known, or not kept")
    | answers("payloads.api.StoredPayload", status=201, description="stored"),
    openapi_extra={"requestBody": {"content": {BINARY: {}}, "required": True}},
)
async def store_payload(site: SiteDep, ref: PayloadRef, request: Request) -> ApiResponse:
    """Store bytes under their digest; sent again, they are known."""
    digest = parse_payload_ref(ref)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise EncodedPayloadError
    data = await _read_body(request)
    media_type = request.headers.get("content-type", "")
    return await to_thread.run_sync(_store, site, digest, data, media_type)


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise PayloadTooLargeError(MAX_BYTES)
    return bytes(body)


def _store(site: Site, digest: bytes, data: bytes, media_type: str) -> ApiResponse:
    retention = Retention.of(site.folder, site.settings.retention)
    made = prepare_payload(
        data,
        expected=digest,
        media_type=retention.media_type(media_type),
        received_ns=time.time_ns(),
        retain=retention.payload,
    )
    is_new = made is not None and store_prepared(site.folder, made)
    stored = None if made is None else made.payload
    body = body_of(
        StoredPayload,
        ref=payload_ref(digest),
        stored=stored is not None,
        stored_ref=None if stored is None else stored.ref,
        size=len(data) if stored is None else stored.size,
        redacted=None if stored is None else stored.redacted,
        reason=retention.mode.value if stored is None else None,
    )
    return ApiResponse(body, status_code=HTTPStatus.CREATED if is_new else HTTPStatus.OK)
