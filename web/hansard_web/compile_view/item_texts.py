"""How an item begins, for those whose id says nothing: ids that were made of a hash."""

from __future__ import annotations

import re
from typing import Any, Final

import apsw

from hansard_store.compilations.receipts import Receipt
from hansard_store.content.payloads import folder_of, payload_ref, peek_payload
from hansard_store.errors import StoreCorruptError
from hansard_web.compile_view.record import stored_payload
from hansard_web.compile_view.result import any_json
from hansard_web.ui.format import shorten

# Ids that were made of a hash, and those of memory records.
_MADE_ID: Final = re.compile(r"[a-z_]+:[0-9a-f]{16}(#[0-9]+)?|[0-9a-f]{32}", re.ASCII)
_PEEK_BYTES: Final = 4_096
_CHARS: Final = 100
_FIRST_TEXT: Final = re.compile(r'"(?:text|content)":"((?:[^"\\]|\\.)*)')


def spoken_words(connection: apsw.Connection, one: Receipt) -> str:
    """Return the first words of an item whose id is a hash; "" for any other, or without text."""
    if one.original is None or not _MADE_ID.fullmatch(one.item_id):
        return ""
    payload = stored_payload(connection, payload_ref(one.original))
    if payload is None:
        return ""
    try:
        head = peek_payload(folder_of(connection), payload, most_bytes=_PEEK_BYTES)
    except StoreCorruptError:
        return ""
    text = head.decode("utf-8", "replace")
    if text.startswith("{"):
        text = _of_message(head, text)
    return "" if "\0" in text else shorten(text, _CHARS)


def _of_message(head: bytes, text: str) -> str:
    told = any_json(head)
    parts = told.get("parts") if isinstance(told, dict) else None
    said = [_of_part(part) for part in parts] if isinstance(parts, list) else []
    if any(said):
        return " ".join(one for one in said if one)
    found = _FIRST_TEXT.search(text)
    return found[1] if found else text


def _of_part(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    for key in ("text", "content", "name"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return ""
