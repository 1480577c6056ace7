"""The payloads of a step: what each is, whether its bytes are here, and how they begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_collector.payloads.named import OF_ITEMS, NamedPayload, PayloadStanding
from hansard_store.content.payloads import Payload, folder_of, peek_payload
from hansard_store.errors import PayloadAlteredError, StoreCorruptError
from hansard_web.ui.format import file_size, plural

_PREVIEW_BYTES: Final = 4_000
_MOST_NOTES: Final = 3
_SHORT_REF: Final = len("sha256:") + 12

_SAY: Final = {
    PayloadStanding.STORED: "",
    PayloadStanding.REDACTED: "Secrets were taken out before it was stored: it is not what was "
    "sent, byte for byte.",
    PayloadStanding.MISSING: "Its bytes are not here: they are still on their way, were lost, or "
    "were deleted.",
    PayloadStanding.WITHHELD: "Neither its bytes nor its digest were kept: the retention mode is "
    "metadata_only.",
}
_ALTERED: Final = (
    "Its stored bytes were altered: they are not those of its digest, and are shown nowhere."
)


@dataclass(frozen=True, slots=True)
class PayloadRow:
    """One payload on the Input/Output tab."""

    name: str
    attribute: str | None
    ref: str
    short_ref: str
    standing: str  # "stored", "redacted", "missing", "withheld", "altered"
    facts: tuple[str, ...]  # media type, size
    say: str
    href: str | None  # of the bytes; None where they are not given out
    preview: str | None  # how a text begins
    is_cut: bool


def payload_rows(
    connection: apsw.Connection, named: Iterable[NamedPayload]
) -> tuple[PayloadRow, ...]:
    """Return the payloads for display; of texts the beginning is read."""
    return tuple(_row(connection, one) for one in named)


def payload_notes(named: Iterable[NamedPayload]) -> Iterator[str]:
    """Yield what a person should know before believing that a step said nothing."""
    named = list(named)
    missing = [
        one
        for one in named
        # What left a compile early is never stored; its receipt says so where it stands.
        if one.standing is PayloadStanding.MISSING
        and not (one.attribute or "").startswith(OF_ITEMS)
    ]
    for one in missing[:_MOST_NOTES]:
        size = "" if one.size is None else f", {file_size(one.size)}"
        yield f"A payload is missing: {one.name} ({one.ref[:_SHORT_REF]}…{size}) is not here."
    if len(missing) > _MOST_NOTES:
        yield f"{plural(len(missing) - _MOST_NOTES, 'more payload')} of this step are missing."
    for one in named:
        if one.payload is not None and one.payload.size > READ_BYTES:
            size = file_size(one.payload.size)
            yield f"A payload is too large to be read here: {one.name} ({size})."


def _row(connection: apsw.Connection, named: NamedPayload) -> PayloadRow:
    stored = named.payload
    standing, say, preview = named.standing.value, _SAY[named.standing], None
    try:
        preview = None if stored is None else _preview(connection, stored)
    except PayloadAlteredError:
        standing, say = "altered", _ALTERED
    size = None if named.size is None else file_size(named.size)
    if stored is None and size is not None:
        size = f"{size}, says the sender"
    facts = (None if stored is None else stored.media_type, size)
    return PayloadRow(
        name=named.name,
        attribute=named.attribute,
        ref=named.ref,
        short_ref=f"{named.ref[:_SHORT_REF]}…",
        standing=standing,
        facts=tuple(fact for fact in facts if fact),
        say=say,
        href=f"/v1/payloads/{named.ref}" if stored is not None and standing != "altered" else None,
        preview=preview,
        is_cut=stored is not None and preview is not None and stored.size > _PREVIEW_BYTES,
    )


def _preview(connection: apsw.Connection, payload: Payload) -> str | None:
    """Return how a text begins; None of anything else. Raises PayloadAlteredError."""
    try:
        head = peek_payload(folder_of(connection), payload, most_bytes=_PREVIEW_BYTES)
    except PayloadAlteredError:
        raise
    except StoreCorruptError:
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        if payload.size <= _PREVIEW_BYTES or error.start < len(head) - 3:
            return None
        text = head[: error.start].decode("utf-8")
    return None if "\0" in text or not text else text
