"""Decisions, reasons, kinds and passes in words and icons. A code that is not known is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.engine import PASSES
from hansard_compiler.compile.models import CompilationRequest, ContextItem
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.diff import ItemDiff
from hansard_store.compilations.receipts import StoredReceipt
from hansard_web.ui.format import shorten

DECISIONS: Final[Mapping[str, str]] = {
    "include": "included",
    "compress": "compressed",
    "redact": "redacted",
    "exclude": "excluded",
}
SECTIONS: Final[Mapping[str, str]] = {
    "stable_prefix": "Stable prefix",
    "task_context": "Task context",
    "volatile_suffix": "Volatile suffix",
}
SWATCHES: Final[Mapping[str, str]] = {
    "stable_prefix": "stable",
    "task_context": "task",
    "volatile_suffix": "volatile",
}
PASS_NUMBERS: Final[Mapping[str, int]] = {name: at for at, (name, _) in enumerate(PASSES, 1)}
_ICONS: Final[Mapping[str, str]] = {
    "system": "system", "policy": "policy", "user_msg": "user", "assistant_msg": "llm",
    "task": "task", "constraint": "constraint", "plan": "plan", "memory": "memory",
    "retrieval_doc": "retriever", "tool_schema": "tool", "tool_result": "terminal",
    "artifact": "doc", "file": "file", "code_diff": "compare", "summary": "summary",
    "handoff": "agent",
}  # fmt: skip
# What a receipt says in the table; `{}` is the item that it names. Others read as their meaning.
_SENTENCES: Final[Mapping[str, str]] = {
    "latest_user_request": "Always in: what the user asked last",
    "hard_constraint": "Always in: a hard constraint",
    "blocking_tool_result": "Always in: a result that blocks",
    "required_policy": "Always in: a rule that applies here",
    "required_kind": "Always in, as its kind is",
    "required_group": "Always in: goes with {}",
    "within_budget": "Ranked high enough to fit",
    "pinned": "Pinned",
    "dependency": "Needed by {}",
    "kept_stable": "Was in last turn, nothing better by enough",
    "compressed_to_fit": "Too long for its rank, shortened",
    "secrets_removed": "Credentials cut out",
    "policy_redacted": "A rule cut parts of it",
    "expired": "Past its time to live",
    "removed_by_replay": "Taken out for this replay",
    "out_of_scope": "Belongs to another scope",
    "duplicate": "Same content as {}",
    "conflict_lost": "Contradicts {}",
    "superseded": "Replaced by {}",
    "invalidated": "Taken back",
    "review_pending": "Contradicts {}, waits for a person",
    "below_floor": "Scores under the floor",
    "over_budget": "No room left",
    "compression_failed": "No room, and could not be shortened",
    "group_withheld": "Cannot be parted from {}, which is out",
    "sensitivity_withheld": "More sensitive than this call is cleared for",
    "policy_denied": "A rule denies it",
    "approval_required": "A rule asks for an approval first",
    "policy_failed": "Its policy could not be judged, which denies",
}
_MEANINGS: Final[Mapping[str, str]] = {code.value: code.meaning for code in ReasonCode}


@dataclass(frozen=True, slots=True)
class Why:
    """A reason as a sentence: `before`, the item that it names, `after`."""

    before: str
    related: str | None
    after: str


def why(receipt: StoredReceipt) -> Why:
    """Return the sentence of a receipt."""
    sentence = _SENTENCES.get(receipt.reason)
    if sentence is None:
        return Why(meaning(receipt.reason), receipt.related, "")
    before, _, after = sentence.partition("{}")
    if "{}" not in sentence or receipt.related is None:
        return Why(sentence.replace("{}", "another item"), None, "")
    return Why(before.rstrip(), receipt.related, after)


def plain_why(receipt: StoredReceipt) -> str:
    """Return the sentence of a receipt as one text."""
    text = why(receipt)
    return f"{text.before} {text.related or ''}{text.after}".strip()


def meaning(reason: str) -> str:
    """Return what a reason code means; unknown codes are named as such."""
    known = _MEANINGS.get(reason)
    if known is None:
        return "A reason this version does not know"
    text = known.replace("`", "")
    return text[:1].upper() + text[1:]


def missed(receipt: StoredReceipt) -> str:
    """Return how far an item was from being in: tokens where they are reported, else points."""
    if receipt.missed_tokens is not None:
        return f"{receipt.missed_tokens:,} token{'' if receipt.missed_tokens == 1 else 's'}"
    if receipt.missed_score_nano is not None:
        return f"{points(receipt.missed_score_nano)} points"
    return ""


def points(nano: int, places: int = 3) -> str:
    """Return billionths of a point in decimal, never rounded to nothing: `1.140`, `0.000000004`."""
    sign = "−" if nano < 0 else ""
    unit = 10 ** (9 - places)
    if 0 < abs(nano) < unit:
        return f"{sign}0.{abs(nano):09d}".rstrip("0")
    whole, rest = divmod((abs(nano) + unit // 2) // unit, 10**places)
    return f"{sign}{whole}.{rest:0{places}d}"


def icon_of(kind: str | None) -> str:
    return _ICONS.get(kind or "", "other")


def kind_words(kind: str | None) -> str:
    """Return a kind as words: `tool result`."""
    return (kind or "item").replace("_", " ").replace("msg", "message")


def source_words(receipt: StoredReceipt) -> str:
    """Return where an item came from in one line; its type where that says more than its kind."""
    kind, source_type = kind_words(receipt.kind), (receipt.source_type or "").replace("_", " ")
    parts = [kind] if source_type in ("", kind) else [kind, source_type]
    if receipt.source and receipt.source != receipt.item_id:
        parts.append(receipt.source)
    return " · ".join(parts)


def pass_words(name: str | None) -> str:
    """Return a pass with its number: `7 budget`."""
    number = PASS_NUMBERS.get(name or "")
    return f"{number} {name}" if number else name or ""


# What people call an item whose id is only a hash: a result by its tool, a message by its words.
#
# The names come from the stored request of a compile; where that is not here, the id has to do.

_CHARS: Final = 60
# `user_msg:6f1e…`, 16 digits, where the caller of a compile named nothing; memories have 32.
_MADE_ID: Final = re.compile(
    r"(?:[a-z_]+:(?=[0-9a-f]{16}(?:#|$))|(?=[0-9a-f]{32}$))([0-9a-f]{8})[0-9a-f]+(?:#[0-9]+)?",
    re.ASCII,
)


class ItemNames:
    """The names of the items of some compiles, each made when it is requested."""

    def __init__(self, *requests: CompilationRequest | None) -> None:
        here = [one for one in requests if one is not None]
        self._items = {item.id: item for one in here for item in one.context_items}
        self._subjects = {
            record.id: record.subject for one in here for record in one.memory_records
        }

    def of(self, one: ItemDiff) -> str:
        """Return what to call an item of a comparison."""
        side = one.right or one.left
        return self.name(one.item_id, None if side is None else side.kind)

    def name(self, item_id: str, kind: str | None) -> str:
        """Return what to call an item: its id, unless that says nothing or is a memory's."""
        if subject := self._subjects.get(item_id):
            return f"memory “{shorten(subject, _CHARS)}”"
        made = _MADE_ID.fullmatch(item_id)
        if made is None:
            return item_id
        item = self._items.get(item_id)
        return (item and self._item_text(item)) or f"{kind_words(kind)} {made[1]}"

    def _item_text(self, item: ContextItem) -> str:
        parts = _parts(item)
        text = " ".join(filter(None, map(_words, parts))) or _text(item.content)
        quoted = f"“{shorten(text, _CHARS)}”" if text.strip() else ""
        result = next((one for one in parts if one.get("type") == "tool_result"), None)
        if result is None:
            return f"{kind_words(item.kind)} {quoted}" if quoted else ""
        call_id = str(result.get("id") or "")
        tool = self._tools.get(call_id) or str(result.get("name") or "a tool")
        return " ".join(filter(None, ("result of", tool, shorten(call_id, _CHARS), quoted)))

    @cached_property
    def _tools(self) -> dict[str, str]:
        """The tool of each call that is made in the conversation, by its id."""
        return {
            str(part["id"]): str(part.get("name") or "")
            for item in self._items.values()
            for part in _parts(item)
            if part.get("type") == "tool_call" and part.get("id")
        }


def _words(part: Mapping[str, Any]) -> str:
    """Return what a part of a message says; a call as `get {"k":7}`."""
    if part.get("type") == "tool_call":
        return f"{part.get('name')} {_text(part.get('arguments'))}".rstrip()
    return _text(part.get("text") or part.get("content"))


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, dict) and set(content) == {"path"}:
        return str(content["path"])
    return content if isinstance(content, str) else canonical_json(content)


def _parts(item: ContextItem) -> list[Mapping[str, Any]]:
    content = item.content
    parts = content.get("parts") if isinstance(content, dict) else None
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []
