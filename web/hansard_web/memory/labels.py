"""How memory is worded on pages."""

from __future__ import annotations

import json
from typing import Any, Final

from hansard_compiler.models.memory import SLOTS
from hansard_store.memory.records import Ended, Memory
from hansard_store.principals.model import CLAIMED, is_same, person_text
from hansard_web.ui.format import WAITS, day_time

STATES: Final = {
    "current": "current",
    "review": WAITS,
    "superseded": "replaced",
    "invalidated": "withdrawn",
    "expired": "expired",
    "purged": "purged",
}
WRITERS: Final = {
    "app": "application",
    "approved_tool_output": "approved tool output",
    "human_approved_summary": "approved summary",
    "post_step_summarizer": "summary step",
}
TYPES: Final = {"session_summary": "summary", "artifact_index": "artifact index"}
ACCESSES: Final = {
    "read": "read", "candidate": "candidate", "write": "written", "repeat": "said again",
    "accept": "accepted",
    "invalidate": "withdrawn", "expire": "expired", "purge": "purged",
    "supersede": "superseded", "unsupersede": "stands again",
}  # fmt: skip


def type_words(memory_type: str) -> str:
    return TYPES.get(memory_type, memory_type.replace("_", " "))


def writer_words(one: Memory) -> str:
    """Return who wrote it: the claimed name, as what, and which principal sent it."""
    as_what = WRITERS.get(one.writer, one.writer)
    if one.written_by:
        as_what = f"{person_text(one.written_by, one.written_method)}, {as_what}"
    sender = one.written_principal
    is_told = sender is None or is_same(sender, one.written_by)
    return as_what if is_told else f"{as_what}, sent by {sender}"


def slot_words(slot: str) -> str:
    """Return a slot of working memory as a person calls it."""
    found: dict[str, str] = {str(key): words for key, words in SLOTS.items()}
    return found.get(slot, slot)


def title_of(one: Memory) -> str:
    """Return what a list calls a record."""
    if one.state == "purged":
        return "Purged"
    name = slot_words(one.subject) if one.is_working else one.subject
    return f"{name}: {one.attribute}" if one.attribute else name


def text_of(content: Any) -> str:
    """Return content as a person reads it: a text as it is, an object as JSON."""
    if content is None:
        return ""
    return (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
    )


def place_of(one: Memory) -> str:
    """Say whose memory it is."""
    if one.run_id:
        return f"run {one.run_id[:8]}" + (", one chain of it" if one.chain else "")
    return ", ".join(f"{part} {name}" for part, name in one.namespace.items())


def ender_of(ended: Ended) -> str:
    """Say who took a record back."""
    return person_text(ended.by, ended.method or CLAIMED.method)


def standing_of(one: Memory) -> tuple[str, str]:
    """Return what a list says of a record beside its sort, and its tone: "", warn or new."""
    match one.state:
        case "current":
            return ("replaces an older version", "new") if one.version > 1 else ("", "")
        case "invalidated" | "purged" if one.ended:
            when = day_time(one.ended.time_ns)
            return f"{STATES[one.state]} by {ender_of(one.ended)}, {when}", "warn"
        case "expired" if one.expires_ns:
            return f"expired {day_time(one.expires_ns)}", "warn"
    return STATES.get(one.state, one.state), "warn"
