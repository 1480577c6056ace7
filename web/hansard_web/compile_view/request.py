"""What was sent, as far as it is stored: the compiled request, and the bytes of the model call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_store.content.payloads import Payload, folder_of, peek_payload, read_payload
from hansard_store.errors import PayloadAlteredError, StoreCorruptError
from hansard_web.compile_view.record import Record, stored_payload
from hansard_web.ui.format import file_size
from hansard_web.ui.json_tree import JsonNode, json_tree, parsed

_PREVIEW_BYTES: Final = 16 * 1024
_PARSED_BYTES: Final = 1024 * 1024
_SENT_KEYS: Final = ("hansard.request.ref", "hansard.request_ref")


@dataclass(frozen=True, slots=True)
class Shown:
    """One form of the request: a bounded look at it, and all its bytes."""

    title: str
    say: str
    href: str  # of the exact bytes; "" where they are not here
    ref: str
    size: str
    tree: JsonNode | None = None
    text: str = ""  # where it is no JSON, or too much of it
    is_cut: bool = False


def shown_requests(
    connection: apsw.Connection, record: Record, *, whole: bool
) -> tuple[Shown, ...]:
    """Return what is stored of the request, the bytes that were sent first.

    `whole` adds a look at it; without, there is only where its bytes are.
    """
    return (
        *_sent(connection, record, whole=whole),
        *_compiled(record, whole=whole),
    )


def _sent(connection: apsw.Connection, record: Record, *, whole: bool) -> Iterator[Shown]:
    for call in record.calls[:1]:
        attributes = read_step(connection, call.id).view.attributes
        ref = next((attributes[key] for key in _SENT_KEYS if key in attributes), None)
        if not isinstance(ref, str):
            continue
        payload = stored_payload(connection, ref)
        title = f"Sent by {call.name}"
        if payload is None:
            yield Shown(title, "Its bytes are not here: withheld, lost, or on their way.", "",
                        ref[:80], "not stored")  # fmt: skip
        else:
            yield _wire(connection, payload, title, ref, whole=whole)


def _wire(
    connection: apsw.Connection, payload: Payload, title: str, ref: str, *, whole: bool
) -> Shown:
    say = "The bytes that left for the provider."
    if payload.redacted:
        say = "The bytes that left for the provider, but for secrets that were taken out."
    folder = folder_of(connection)
    value: Any = None
    try:
        if whole and payload.size <= _PARSED_BYTES:
            value = parsed(read_payload(folder, payload).decode("utf-8", "replace"))
        head = peek_payload(folder, payload, most_bytes=_PREVIEW_BYTES if whole else 0)
    except PayloadAlteredError:
        return Shown(
            title, "Its stored bytes were altered; they are not shown.", "", ref, "altered"
        )
    except StoreCorruptError:
        return Shown(title, "The file of its bytes is gone.", "", ref, "not stored")
    is_json = isinstance(value, dict | list)
    text = head.decode("utf-8", "replace")
    return Shown(
        title=title,
        say=say,
        href=f"/v1/payloads/{ref}",
        ref=ref,
        size=file_size(payload.size),
        tree=json_tree(value) if is_json else None,
        text="" if is_json or "\0" in text else text,
        is_cut=whole and not is_json and payload.size > _PREVIEW_BYTES,
    )


def _compiled(record: Record, *, whole: bool) -> Iterator[Shown]:
    result = record.result
    if result.rendered is None:
        return
    yield Shown(
        title="As compiled",
        say="Before the provider's own form: system, tools, messages, and where sections end.",
        href=f"/v1/payloads/{result.ref}",
        ref=result.ref,
        size=f"{file_size(result.size)}, with all receipts",
        tree=json_tree(result.rendered) if whole else None,
    )
