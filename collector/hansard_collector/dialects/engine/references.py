"""Content in a payload: a span's attribute `<key>_ref` names the bytes by digest.

Upstream's convention for content stored elsewhere, and our SDK's way for anything over 1 KiB. A
dialect reads such a span as if the content stood in it: the view that it gets has the text of the
payload under `<key>`. What was sent stays as it was sent: attributes, filters and exports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import apsw

from hansard_collector.dialects.engine.item_views import SpanView
from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import (
    Payload,
    folder_of,
    get_payload,
    parse_payload_ref,
    read_payload,
)
from hansard_store.errors import InvalidQueryError, StoreCorruptError

# Upstream's and our own; under other names a reference is listed and not read.
CONTENT_OF: Mapping[str, str] = {
    f"{key}_ref": key
    for key in (
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.retrieval.documents",
        "hansard.input",
        "hansard.output",
        "hansard.run.goal",
        "gen_ai.tool.description",
    )
}
# Of one span. Rows hold each message once, but the ingest thread must not stand still for a
# prompt of megabytes; what is read on a page costs only who looks.
WRITTEN_BYTES = 1024 * 1024
READ_BYTES = 16 * 1024 * 1024
_REF_CHARS = len("sha256:") + 64


def references(attributes: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the digests of content that is stored elsewhere, by the key it would have.

    Content that the span holds as well needs no payload. Never raises.
    """
    found: dict[str, bytes] = {}
    for ref_key in attributes.keys() & CONTENT_OF.keys():
        ref, key = attributes[ref_key], CONTENT_OF[ref_key]
        if isinstance(ref, str) and len(ref) == _REF_CHARS and key not in attributes:
            digest = _digest_of(ref)
            if digest is not None:
                found[key] = digest
    return found


def with_contents(connection: apsw.Connection, view: SpanView, *, most_bytes: int) -> SpanView:
    """Return a span as its sender meant it; the same view where nothing is to be had.

    Payloads are read up to `most_bytes` in all. Missing, damaged or binary ones are left out.
    """
    contents = read_contents(connection, references(view.attributes), most_bytes=most_bytes)
    return add_contents(view, contents)


def add_contents(view: SpanView, contents: Mapping[str, str]) -> SpanView:
    """Return the view with these texts among its attributes."""
    return view._replace(attributes={**view.attributes, **contents}) if contents else view


def read_contents(
    connection: apsw.Connection, named: Mapping[str, bytes], *, most_bytes: int
) -> dict[str, str]:
    """Return the texts of the payloads that are here, by the key they would have."""
    found: dict[str, str] = {}
    left = most_bytes
    for key, payload in stored_payloads(connection, named.items()):
        if payload.size <= left:
            text = _text_of(connection, payload)
            if text is not None:
                found[key] = text
                left -= payload.size
    return found


def stored_payloads(
    connection: apsw.Connection, named: Iterable[tuple[str, bytes]]
) -> Iterable[tuple[str, Payload]]:
    """Yield those of some payloads that are here, each with its name."""
    for name, digest in named:
        try:
            yield name, get_payload(connection, digest)
        except NotFoundError:
            continue


def _text_of(connection: apsw.Connection, payload: Payload) -> str | None:
    try:
        return read_payload(folder_of(connection), payload).decode("utf-8")
    except (StoreCorruptError, UnicodeDecodeError):
        return None  # listed with the step's payloads, where its state is said


def _digest_of(ref: str) -> bytes | None:
    try:
        return parse_payload_ref(ref)
    except InvalidQueryError:
        return None
