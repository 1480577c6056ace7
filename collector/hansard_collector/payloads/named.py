"""The payloads that a step names, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

import apsw

from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.references import CONTENT_OF
from hansard_compiler.calls import MediaPart
from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import (
    Payload,
    blob_path,
    folder_of,
    get_payload,
    parse_payload_ref,
)
from hansard_store.errors import BadQueryError

MOST = 200  # of one step; a compile names one an item
OF_ITEMS = "hansard.item."  # how the attributes begin that are a compile's receipts
_KEYED = "hmac-sha256:"
_REF_CHARACTERS = frozenset({len("sha256:") + 64, len(_KEYED) + 64})
_REF_FORM = re.compile(f"(?:{_KEYED}|sha256:)[0-9a-f]{{64}}", re.ASCII)
# A digest under another key may be of anything: it is listed only when its bytes are here.
_REFERRING = ("_ref", ".ref", "_refs", ".refs")


class PayloadStanding(StrEnum):
    """Whether the bytes that a span names are here."""

    STORED = "stored"
    REDACTED = "redacted"  # stored, without what retention took out
    MISSING = "missing"  # not arrived yet, lost on the way, or deleted
    WITHHELD = "withheld"  # metadata_only: neither the bytes nor their digest were kept


@dataclass(frozen=True, slots=True)
class NamedPayload:
    """A payload as a step names it; `payload` is what is stored of it."""

    name: str  # of the content: "gen_ai.input.messages"
    attribute: str | None  # the key that names it; None: a part of a message does
    ref: str  # as sent
    standing: PayloadStanding
    size: int | None  # bytes: of what is stored, else as the sender tells it
    payload: Payload | None = None


def named_payloads(
    connection: apsw.Connection, view: SpanView, normal: Normalised, *, with_items: bool = True
) -> list[NamedPayload]:
    """Return the payloads that a step's attributes and messages name, at most MOST.

    Not those of a compile's items, on request: of 5,000 items they are most of a page's time.
    """
    named = _named(view, normal, with_items=with_items)
    found = (_look_up(connection, view, *one) for one in islice(named, MOST * 2))
    return list(islice((one for one in found if one is not None), MOST))


_Naming = tuple[str, str | None, str]  # name, attribute, ref


def _named(view: SpanView, normal: Normalised, *, with_items: bool) -> Iterator[_Naming]:
    for key, value in view.attributes.items():
        if not with_items and key.startswith(OF_ITEMS):
            continue
        if isinstance(value, str):
            if _is_ref(value):
                yield _name_of(key), key, value
        elif isinstance(value, list):
            for at, one in enumerate(value):
                if isinstance(one, str) and _is_ref(one):
                    yield f"{_name_of(key)}[{at}]", key, one
    call = normal.call
    for number, message in enumerate((*call.input, *call.output) if call else (), 1):
        for part in message.parts:
            if isinstance(part, MediaPart) and part.payload and _is_ref(part.payload):
                yield f"media of message {number}", None, part.payload


def _is_ref(value: str) -> bool:
    return len(value) in _REF_CHARACTERS and _REF_FORM.fullmatch(value) is not None


def _name_of(key: str) -> str:
    known = CONTENT_OF.get(key)
    if known is not None:
        return known
    ending = next((one for one in _REFERRING if key.endswith(one)), "")
    return key.removesuffix(ending)


def _look_up(
    connection: apsw.Connection, view: SpanView, name: str, key: str | None, ref: str
) -> NamedPayload | None:
    refers = key is None or key.endswith(_REFERRING)
    standing, payload = standing_of(connection, ref)
    if payload is None:
        size = _told_size(view.attributes, name)
        return NamedPayload(name, key, ref, standing, size) if refers else None
    return NamedPayload(name, key, ref, standing, payload.size, payload)


def standing_of(connection: apsw.Connection, ref: str) -> tuple[PayloadStanding, Payload | None]:
    """Return whether the bytes of a reference are here, and what is stored of them."""
    if ref.startswith(_KEYED):
        return PayloadStanding.WITHHELD, None
    payload = _stored(connection, ref)
    if payload is None:
        return PayloadStanding.MISSING, None
    return PayloadStanding.REDACTED if payload.redacted else PayloadStanding.STORED, payload


def _stored(connection: apsw.Connection, ref: str) -> Payload | None:
    try:
        payload = get_payload(connection, parse_payload_ref(ref))
    except (NotFoundError, BadQueryError):
        return None
    if payload.inline is None and not blob_path(folder_of(connection), payload.digest).exists():
        return None
    return payload


def _told_size(attributes: Mapping[str, Any], name: str) -> int | None:
    told = attributes.get(f"{name}_size")
    return told if type(told) is int and told >= 0 else None
