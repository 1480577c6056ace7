"""Where a candidate came from, as the stored request of a compile tells it.

All of it is hostile text. The request is JSON that anybody may have sent under its digest; what
does not fit is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

import apsw

from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_compiler.compile.models import EXTERNAL
from hansard_store.content.payloads import folder_of, read_payload
from hansard_store.errors import StoreCorruptError
from hansard_web.compile_view.record import stored_payload
from hansard_web.compile_view.result import any_json

_STEP_ID = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}(?:\.server)?", re.ASCII)
_RUN_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LONGEST: Final = 400
_MOST: Final = 8  # of a list
_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}]")

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OriginFact:
    """A line about an item; `href` leads to a page of ours, or to a place elsewhere."""

    label: str
    text: str
    href: str = ""
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class RequestRecords:
    """What a stored request tells of its candidates, without their content."""

    items: Mapping[str, Fields]
    memories: Mapping[str, Fields]


NO_RECORDS: Final = RequestRecords({}, {})


def request_records(connection: apsw.Connection, ref: str | None) -> RequestRecords:
    """Return what the stored request of a compile tells; nothing where it is not here."""
    payload = stored_payload(connection, ref)
    if payload is None or payload.size > READ_BYTES:
        return NO_RECORDS
    try:
        return _read(read_payload(folder_of(connection), payload))
    except StoreCorruptError:
        return NO_RECORDS


@lru_cache(maxsize=8)
def _read(data: bytes) -> RequestRecords:
    document = any_json(data)
    if not isinstance(document, dict):
        return NO_RECORDS
    return RequestRecords(
        items=_by_id(document.get("context_items")),
        memories=_by_id(document.get("memory_records")),
    )


def _by_id(records: Any) -> dict[str, Fields]:
    found = records if isinstance(records, list) else []
    return {
        one["id"]: {key: value for key, value in one.items() if key != "content"}
        for one in found
        if isinstance(one, dict) and isinstance(one.get("id"), str)
    }


def facts_of(request: RequestRecords, item_id: str) -> Iterator[OriginFact]:
    """Yield what is known of where an item came from."""
    item, memory = request.items.get(item_id, {}), request.memories.get(item_id, {})
    source = _map(item.get("source_ref"))
    remembered = {**_map(memory.get("metadata")), **memory}
    yield from _source_facts(source or _outside(remembered))
    yield from _maker_facts(_map(item.get("metadata")), _map(source.get("metadata")), remembered)
    trust = [_short(item.get("trust_score")), _short(item.get("sensitivity"))]
    for label, text in (
        ("trust, sensitivity", ", ".join(one for one in trust if one)),
        ("importance", _short(item.get("importance_score"))),
        ("created", _short(item.get("created_at"))),
        ("fresh as of", _short(item.get("freshness_ts") or memory.get("freshness_ts"))),
        ("writer", _short(remembered.get("writer"))),
        ("tags", _joined(item.get("tags"))),
        ("depends on", _joined(item.get("dependencies"))),
        ("scope", _joined([f"{key}: {value}" for key, value in _map(item.get("scope")).items()])),
    ):
        if text:
            yield OriginFact(label, text)


def _outside(remembered: Fields) -> Fields:
    """Return the source of a memory that came from outside, as its receipt names it."""
    if remembered.get("origin") != EXTERNAL:
        return {}
    return {"source_type": "external_api", "uri": remembered.get("url")}


def _source_facts(source: Fields) -> Iterator[OriginFact]:
    kind, title, uri = (_short(source.get(key)) for key in ("source_type", "title", "uri"))
    if kind or title:
        yield OriginFact("source", ", ".join(one for one in (kind.replace("_", " "), title) if one))
    if uri:
        yield OriginFact("address", uri, safe_address(source.get("uri")), is_elsewhere=True)
    for label, text in (
        ("query", _short(source.get("retrieval_query"))),
        ("place", _joined(source.get("positions"))),
        ("version", _short(source.get("version"))),
        ("checksum", _short(source.get("checksum"))),
        ("author", _short(source.get("author"))),
    ):
        if text:
            yield OriginFact(label, text)


def _maker_facts(*records: Fields) -> Iterator[OriginFact]:
    """Yield the steps, runs and memories that an item names as where it was made."""
    done: set[str] = set()
    for label, keys, form, path in (
        ("made by step", ("step_id", "source_step_id", "source_step_ids"), _STEP_ID, "/steps/"),
        ("made in run", ("run_id", "source_run_id"), _RUN_ID, "/runs/"),
    ):
        for one in (one for each in records for key in keys for one in _ids(each.get(key))):
            if one not in done:
                done.add(one)
                yield OriginFact(
                    label, one[:_LONGEST], f"{path}{one}" if form.fullmatch(one) else ""
                )
    memories = [one for each in records for one in _ids(each.get("memory_id"))]
    for one in dict.fromkeys(memories):
        yield OriginFact(
            "memory", one[:_LONGEST], f"/memory/{one}" if _RUN_ID.fullmatch(one) else ""
        )
    confidence = [_short(each.get("confidence")) for each in records if "confidence" in each]
    yield from (OriginFact("confidence", one) for one in confidence)


def safe_address(uri: object) -> str:
    """Return a web address that may be a link; "" for anything else, which is shown as text."""
    if not isinstance(uri, str) or len(uri) > 2_000 or _NOT_IN_A_URL.search(uri):
        return ""
    try:
        parts = urlsplit(uri)
        has_credentials = parts.username is not None or parts.password is not None
    except ValueError:
        return ""
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    return uri if is_web and not has_credentials else ""


def _ids(value: Any) -> list[str]:
    found = value if isinstance(value, list) else [value]
    return [one for one in found[:_MOST] if isinstance(one, str) and one]


def _map(value: Any) -> Fields:
    return value if isinstance(value, dict) else {}


def _short(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _joined(value: Any) -> str:
    found = [_short(one) for one in value] if isinstance(value, list) else []
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ", ".join(one for one in found[:_MOST] if one) + more
