"""The bytes of media in recorded content: shown only where declared and found type agree."""

from __future__ import annotations

import re
import time
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Path
from pydantic import WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.errors import NotFoundError
from hansard_store.content.messages import find_text
from hansard_store.content.payloads import (
    checked_file,
    get_payload,
    parse_payload_ref,
    read_payload,
)
from hansard_store.content.retention import BINARY
from hansard_store.steps.queries import get_step
from hansard_web.api.files import StoredFile
from hansard_web.api.parameters import PayloadRef
from hansard_web.api.router import NounRouter
from hansard_web.app.site import Site, SiteDep
from hansard_web.media.recorded import Recorded, media_in, media_in_part
from hansard_web.media.types import HEAD_BYTES, MediaKind, kind_of
from hansard_web.steps.values import io_value
from hansard_web.ui.json_tree import parsed

router = NounRouter("media")

_SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}
_PINNED: Final = "private, max-age=31536000, immutable"  # the address holds a digest
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_OF_CALL: Final = re.compile(r"(sent|answer)-(\d{1,6})", re.ASCII)
_ANSWER: Final = {
    200: {"content": {BINARY: {}}, "description": "the bytes; inline for images and sound"},
    206: {"content": {BINARY: {}}, "description": "the range that was requested"},
    304: {"description": "not changed"},
    416: {"description": "no such range"},
}
Number = Annotated[str, WithJsonSchema({"type": "integer", "minimum": 0}), Path()]


@router.get("/v1/payloads/{ref}/media", response_class=Response, responses=_ANSWER)
def payload_media(request: Request, site: SiteDep, ref: PayloadRef) -> Response:
    """Give a payload as an image or sound where its stored type and its bytes agree."""
    with site.readers.read() as connection:
        payload = get_payload(connection, parse_payload_ref(ref))
    digest = payload.digest.hex()
    if payload.inline is not None:
        data = read_payload(site.folder, payload)
        kind = kind_of(data[:HEAD_BYTES], payload.media_type, len(data))
        return _answer(request, data, kind, digest, cache=_PINNED)
    path = checked_file(site.folder, payload)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    kind = kind_of(head, payload.media_type, payload.size)
    headers = _headers(kind, digest, cache=_PINNED)
    if _is_known(request, digest):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return StoredFile(path, media_type=kind.media_type, headers=headers)


@router.get(
    "/v1/messages/{digest}/media/{part}/{number}", response_class=Response, responses=_ANSWER
)
def message_media(
    request: Request, site: SiteDep, digest: str, part: Number, number: Number
) -> Response:
    """Give media of a part of a message; both are counted from 0."""
    with site.readers.read() as connection:
        message = find_text(connection, digest)
    at = _number(part)
    if message is None or at is None or at >= len(message.parts):
        raise NotFoundError("media", f"{part}/{number} of message {digest}")
    found = media_in_part(message.parts[at])[1]
    return _recorded(request, found, number, f"message {digest}", cache=_PINNED)


@router.get("/v1/steps/{step_id}/media/{part}/{number}", response_class=Response, responses=_ANSWER)
def step_media(
    request: Request, site: SiteDep, step_id: str, part: str, number: Number
) -> Response:
    """Give media of an input or output of a step: `arguments`, `result`, `input` or `output`."""
    return _of_step(request, site, step_id, part, number)


@router.get(
    "/v1/steps/{step_id}/media/{message}/{part}/{number}",
    response_class=Response,
    responses=_ANSWER,
)
def step_message_media(
    request: Request, site: SiteDep, step_id: str, message: str, part: Number, number: Number
) -> Response:
    """Give media of a message of a call that has no row: `sent-0`, `answer-0`, counted from 0."""
    return _of_step(request, site, step_id, message, number, of=_number(part))


def _of_step(
    request: Request, site: Site, step_id: str, part: str, number: str, *, of: int | None = None
) -> Response:
    with site.readers.read() as connection:
        step = get_step(connection, step_id, now_ns=time.time_ns())
        reading = read_step(connection, step.id)
    call = reading.normal.call
    spoken = _OF_CALL.fullmatch(part)
    found: list[Recorded] = []
    if spoken and call and of is not None:
        messages = call.input if spoken[1] == "sent" else call.output
        at = int(spoken[2])
        if at < len(messages) and of < len(messages[at].parts):
            found = media_in_part(messages[at].parts[of])[1]
    elif not spoken:
        found = media_in(parsed(io_value(reading, part)))[1]
    return _recorded(request, found, number, f"{part} of {step_id}", cache="private, no-cache")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _recorded(
    request: Request, found: list[Recorded], number: str, where: str, *, cache: str
) -> Response:
    at = _number(number)
    if at is None or at >= len(found):
        raise NotFoundError("media", f"{number} of {where}")
    one = found[at]
    return _answer(request, one.data, one.kind, one.digest, cache=cache)


def _answer(request: Request, data: bytes, kind: MediaKind, digest: str, *, cache: str) -> Response:
    headers = _headers(kind, digest, cache=cache)
    if _is_known(request, digest):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    status = HTTPStatus.OK
    asked = request.headers.get("range")
    match = _RANGE.fullmatch(asked) if asked else None
    condition = request.headers.get("if-range")
    if match and (match[1] or match[2]) and condition in (None, f'"{digest}"'):
        size = len(data)
        first = int(match[1]) if match[1] else max(size - int(match[2]), 0)
        last = min(int(match[2]), size - 1) if match[1] and match[2] else size - 1
        if first >= size or last < first:
            headers["Content-Range"] = f"bytes */{size}"
            return Response(status_code=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=headers)
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        data, status = data[first : last + 1], HTTPStatus.PARTIAL_CONTENT
    return Response(data, status, headers, kind.media_type)


def _is_known(request: Request, digest: str) -> bool:
    sent = request.headers.get("if-none-match", "")
    return f'"{digest}"' in sent[:4_000]


def _headers(kind: MediaKind, digest: str, *, cache: str) -> dict[str, str]:
    way = "attachment" if kind.view == "file" else "inline"
    name = f"sha256-{digest[:12]}.{kind.extension}"
    return {
        **_SAFE,
        "Cache-Control": cache,
        "ETag": f'"{digest}"',
        "Content-Disposition": f'{way}; filename="{name}"',
    }
