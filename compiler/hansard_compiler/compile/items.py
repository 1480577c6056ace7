"""A candidate inside the compiler: one plain record, whatever it was before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import AwareDatetime, TypeAdapter

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.models import (
    EXTERNAL,
    ContextItem,
    Json,
    MemoryRecord,
    SourceRef,
    Utc,
    item_hash,
)

MICRO = 1_000_000
CONVERSATION = frozenset({"user_msg", "assistant_msg", "tool_result"})

# Of the zone object that every checked time has: of one zone, Python asks neither for its offset,
# which takes three times as long as the difference itself.
_EPOCH = TypeAdapter(Utc).validate_python("1970-01-01T00:00:00Z")
_TOOL_SOURCE = "tool-spec:"
_NO_LINKS: tuple[tuple[str, ...], tuple[str, ...], bool] = ((), (), False)
_NO_TAGS: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = {}


class CandidateItem(NamedTuple):
    """One candidate. Times are Unix microseconds; shares are millionths."""

    id: str
    kind: str
    position: int  # in the request: context items, then memories, then tools
    content: Json | str
    text: str  # the content as text: what is rated, counted and shown
    source: SourceRef | None
    created_us: int
    fresh_us: int
    trust: int
    stable_hash: str
    expires_us: int | None = None
    importance: int = MICRO // 2
    sensitivity: str = "internal"
    scope: Mapping[str, Any] = _NOTHING
    dependencies: tuple[str, ...] = ()
    token_estimate: int | None = None
    tags: frozenset[str] = _NO_TAGS
    metadata: Mapping[str, Any] = _NOTHING
    calls: tuple[str, ...] = ()  # ids of tool calls made in it
    answers: tuple[str, ...] = ()  # ids of tool calls answered in it
    is_reasoning: bool = False  # nothing but reasoning: belongs to what follows it
    also: tuple[str, ...] = ()  # where else exactly this was found, as its header names it

    @property
    def where(self) -> str | None:
        """What its header names: the title or the address of its source."""
        return (self.source.title or self.source.uri) if self.source else None

    @property
    def subject(self) -> str | None:
        found = self.metadata.get("subject")
        return found if isinstance(found, str) else None


def unix_us(at: AwareDatetime) -> int:
    """Return a time as whole microseconds since 1970."""
    past = at - _EPOCH
    return (past.days * 86_400 + past.seconds) * MICRO + past.microseconds


def micro(share: float) -> int:
    """Return a share of 0 to 1 in millionths."""
    return round(share * MICRO)


def from_context_item(item: ContextItem, position: int) -> CandidateItem:
    """Return the candidate of a context item."""
    content = item.content
    created_us = unix_us(item.created_at)
    fresh_us = created_us if item.freshness_ts is None else unix_us(item.freshness_ts)
    ttl = item.ttl_seconds
    is_spoken = item.kind in CONVERSATION
    links = _links(item.kind, content, item.metadata) if is_spoken else _NO_LINKS
    return CandidateItem(
        item.id,
        item.kind,
        position,
        content,
        content if isinstance(content, str) else text_of(content),
        item.source_ref,
        created_us,
        fresh_us,
        round(item.trust_score * MICRO),
        item.stable_hash,
        None if ttl is None else fresh_us + ttl * MICRO,
        round(item.importance_score * MICRO),
        item.sensitivity,
        item.scope,
        tuple(item.dependencies),
        item.token_estimate,
        frozenset(item.tags) if item.tags else _NO_TAGS,
        item.metadata,
        *links,
    )


def from_memory(record: MemoryRecord, *, position: int, now_us: int) -> CandidateItem:
    """Make a candidate of a memory: its confidence is its trust, its subject stays beside it."""
    fresh_us = now_us if record.freshness_ts is None else unix_us(record.freshness_ts)
    content = record.content
    return CandidateItem(
        id=record.id,
        kind="memory",
        position=position,
        content=content,
        text=content if isinstance(content, str) else text_of(content),
        source=source_of_memory(record),
        created_us=fresh_us,
        fresh_us=fresh_us,
        trust=micro(record.confidence),
        stable_hash=item_hash("memory", content),
        expires_us=None if record.expires_at is None else unix_us(record.expires_at),
        scope=record.scope,
        tags=frozenset((*record.tags, record.memory_type)),
        metadata={"subject": record.subject, **record.metadata},
    )


def source_of_memory(record: MemoryRecord) -> SourceRef:
    """Return where a memory comes from: the store or, of what came from outside, that place."""
    is_external = record.metadata.get("origin") == EXTERNAL
    url = record.metadata.get("url") if is_external else None
    return SourceRef(
        source_type="external_api" if is_external else "memory",
        uri=url if isinstance(url, str) else f"memory:{record.id}",
        title=record.subject,
        metadata={"run_id": record.source_run_id, "step_ids": record.source_step_ids},
    )


def from_tool(spec: Json, *, position: int) -> CandidateItem:
    """Make a candidate of a tool definition; `hansard.compile`'s own name for it is `tool:<name>`.

    It has no time of its own: 1970 keeps it in place from turn to turn.
    """
    name = tool_name(spec)
    return CandidateItem(
        id=f"tool:{name}",
        kind="tool_schema",
        position=position,
        content=spec,
        text=canonical_json(spec),
        source=SourceRef(source_type="app_state", uri=_TOOL_SOURCE + name, title=name),
        created_us=0,
        fresh_us=0,
        trust=MICRO,
        stable_hash=item_hash("tool_schema", spec),
    )


def tool_name(spec: Mapping[str, Any]) -> str:
    """Return a tool definition's name, wherever the provider's form puts it."""
    inner = spec.get("function")
    found = spec.get("name") or (inner.get("name") if isinstance(inner, Mapping) else None)
    return str(found or spec.get("type") or "unnamed")


def text_of(content: Mapping[str, Any]) -> str:
    """Return the text of a structured content: a message's texts, anything else as JSON."""
    parts = content.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return canonical_json(content)
    return "\n".join(_part_text(part) for part in parts)


def counted_text(content: Mapping[str, Any]) -> tuple[str, int]:
    """Return what of a structured content is paid for as text, and how many media it holds."""
    parts = content.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return text_of(content), 0
    texts = [
        part for part in parts if not (isinstance(part, Mapping) and part.get("type") == "media")
    ]
    return text_of({"parts": texts}), len(parts) - len(texts)


def _part_text(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") in ("text", "reasoning"):
        return str(part.get("text", ""))
    if isinstance(part, Mapping) and part.get("type") == "tool_result":
        result = part.get("content")
        return result if isinstance(result, str) else canonical_json(result)
    return canonical_json(part)


def _links(
    kind: str, content: Json | str, metadata: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return which tool calls an item makes and answers, and whether it is only reasoning."""
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        call_id = metadata.get("call_id")
        answered = (str(call_id),) if kind == "tool_result" and call_id else ()
        return (), answered, False
    known = [part for part in parts if isinstance(part, dict)]
    types = {part.get("type") for part in known}
    return (
        _ids(known, "tool_call"),
        _ids(known, "tool_result"),
        types == {"reasoning"},
    )


def _ids(parts: Sequence[Mapping[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(str(part["id"]) for part in parts if part.get("type") == kind and part.get("id"))
