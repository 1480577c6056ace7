"""Pass 10: place what went in into stable prefix, task context and volatile suffix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.items import CONVERSATION, CandidateItem, text_of
from hansard_compiler.compile.models import Json
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling, Section


def run(state: CompileState) -> CompileState:
    """Lay out the live items; each gets its section."""
    laid_out = sections(state)
    rulings = {
        item_id: Ruling("include", PLACED[section.name])
        for section in laid_out
        for item_id in section.item_ids
    }
    usual = Ruling("include", PLACED[laid_out[1].name])
    return state.after("layout", usual, rulings, sections=laid_out)


# Where each item stands: stable prefix, task context, volatile suffix, and what is sent of it.
#
# The prefix holds only what stays the same from turn to turn, in an order that does not depend on
# scores, so its bytes stay the same as well. The payload is provider-neutral: messages in the
# normal form of `calls.py`; an adapter makes its request of it.

STABLE, TASK, VOLATILE = "stable_prefix", "task_context", "volatile_suffix"
SECTIONS = (STABLE, TASK, VOLATILE)
PLACED = {
    STABLE: ReasonCode.PLACED_STABLE_PREFIX,
    TASK: ReasonCode.PLACED_TASK_CONTEXT,
    VOLATILE: ReasonCode.PLACED_VOLATILE_SUFFIX,
}
_STABLE_KINDS = frozenset({"system", "tool_schema", "policy"})
_STABLE_TAGS = frozenset({"profile", "workspace"})
_PERSISTENT = frozenset({"memory", "summary"})
_VOLATILE_TAGS = frozenset({"changed", "ephemeral"})
_KIND_ORDER = (
    "system", "tool_schema", "policy", "memory", "constraint", "task", "plan", "handoff",
    "summary", "retrieval_doc", "artifact", "file", "code_diff", "other",
)  # fmt: skip
_ORDER = {kind: number for number, kind in enumerate(_KIND_ORDER)}
_ROLE = {"user_msg": "user", "assistant_msg": "assistant", "tool_result": "tool"}
_FRAME_TOKENS = 4
_MOST_PLACES = 8  # that a header names beside the first


def section_of(item: CandidateItem, *, since_us: tuple[int, int] | None) -> str:
    """Return an item's section. `since_us`: time and position of the latest user request."""
    if item.kind in _STABLE_KINDS:
        return STABLE
    if item.tags & _VOLATILE_TAGS:
        return VOLATILE
    if is_persistent(item):
        return STABLE
    if item.kind in CONVERSATION and since_us is not None:
        return VOLATILE if (item.created_us, item.position) >= since_us else TASK
    return TASK


def is_persistent(item: CandidateItem) -> bool:
    """Return whether an item is a profile or a workspace summary, which outlast the turn."""
    return item.kind in _PERSISTENT and bool(item.tags & _STABLE_TAGS)


def sections(state: CompileState) -> tuple[Section, ...]:
    """Lay out what went in. A group is in one section: the last of its members' sections."""
    placed = _placed(state)
    return tuple(_section(state, name, placed[name]) for name in SECTIONS)


def _placed(state: CompileState) -> dict[str, list[CandidateItem]]:
    latest = latest_user_request(state.live)
    since = None if latest is None else (latest.created_us, latest.position)
    of_item = {item.id: section_of(item, since_us=since) for item in state.live}
    for group in {group for item in state.live if (group := state.groups.get(item.id))}:
        furthest = max((of_item[one] for one in group if one in of_item), key=SECTIONS.index)
        of_item.update((one, furthest) for one in group if one in of_item)
    placed: dict[str, list[CandidateItem]] = {name: [] for name in SECTIONS}
    for item in state.live:
        placed[of_item[item.id]].append(item)
    return {name: _ordered(items) for name, items in placed.items()}


def latest_user_request(items: Sequence[CandidateItem]) -> CandidateItem | None:
    """Return the latest message of the user, None where there is none."""
    requests = [item for item in items if item.kind == "user_msg"]
    return max(requests, key=lambda item: (item.created_us, item.position), default=None)


def _ordered(items: list[CandidateItem]) -> list[CandidateItem]:
    """Put reference material first, by kind; then what was said, as it was said.

    Results stand directly after the call they answer, whatever else happened between.
    """
    material = [item for item in items if item.kind not in CONVERSATION]
    material.sort(key=lambda item: (_ORDER[item.kind], item.created_us, item.id))
    spoken = [item for item in items if item.kind in CONVERSATION]
    spoken.sort(key=lambda item: (item.created_us, item.position))
    results = {call_id: item for item in spoken for call_id in item.answers}
    made = {call_id for item in spoken for call_id in item.calls}
    done: dict[str, CandidateItem] = {}
    for item in spoken:
        if any(call_id in made for call_id in item.answers):
            continue  # comes with its call
        done.setdefault(item.id, item)
        for call_id in item.calls:
            if call_id in results:
                done.setdefault(results[call_id].id, results[call_id])
    return [*material, *done.values()]


def _section(state: CompileState, name: str, items: list[CandidateItem]) -> Section:
    entries = tuple(_entry(state, item) for item in items)
    tokens = sum(shown_tokens(state, item.id) for item in items)
    # Of what is sent: an item's id is no part of it.
    sent = [{key: one for key, one in entry.items() if key != "item_id"} for entry in entries]
    digest = "sha256:" + stable_hash(sent).hex()
    return Section(name, tuple(item.id for item in items), tokens, digest, entries)


def shown_tokens(state: CompileState, item_id: str) -> int:
    """Return what an item costs as it is sent."""
    shortened = state.shortened.get(item_id)
    return shortened[1] if shortened else state.tokens[item_id]


def header(item: CandidateItem) -> str:
    """Return the line that names, for a reader of the prompt, what is below it, and where else.

    `PASS` of two tests is sent once and says of which: `[file: login.txt; refund.txt]`.
    """
    places = [item.where, *item.also[:_MOST_PLACES]] if item.where else [*item.also[:_MOST_PLACES]]
    if more := len(item.also) - _MOST_PLACES:
        places += [f"{more} more"] * (more > 0)
    return f"[{item.kind}: {'; '.join(map(str, places))}]" if places else f"[{item.kind}]"


def frame_tokens(item: CandidateItem) -> int:
    """Return an estimate of what the header and the message around an item cost."""
    has_header = item.kind not in _ROLE or (item.kind == "tool_result" and not item.answers)
    return _FRAME_TOKENS + len(header(item)) // 3 if has_header else _FRAME_TOKENS


def _entry(state: CompileState, item: CandidateItem) -> Json:
    """Return an item as it is sent, without anything that changes from turn to turn by itself."""
    guarded = state.guarded[item.id]
    shortened = state.shortened.get(item.id)
    if item.kind == "tool_schema" and not isinstance(guarded.content, str):
        return {"item_id": item.id, "kind": item.kind, "tool": guarded.content}
    if item.kind not in _ROLE:
        text = shortened[0] if shortened else guarded.text
        text = text if item.kind == "system" else f"{_clean_header(state, item)}\n{text}"
        return {"item_id": item.id, "kind": item.kind, "text": text}
    parts = _parts(state, item, shortened[0] if shortened else None)
    return {"item_id": item.id, "kind": item.kind, "role": _ROLE[item.kind], "parts": parts}


def _clean_header(state: CompileState, item: CandidateItem) -> str:
    return state.ports.redactor.redact_text(header(item)).text


def _parts(state: CompileState, item: CandidateItem, shortened: str | None) -> list[Any]:
    content = state.guarded[item.id].content
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if item.kind == "tool_result" and item.answers:
        return _result_parts(item, content, parts, shortened)
    if isinstance(parts, list) and shortened is None:
        return parts
    text = shortened or (content if isinstance(content, str) else text_of(content))
    if item.kind == "tool_result":  # of no call that is known: shown as material
        text = f"{_clean_header(state, item)}\n{text}"
    return [{"type": "text", "text": text}]


def _result_parts(
    item: CandidateItem, content: Any, parts: Any, shortened: str | None
) -> list[Any]:
    if isinstance(parts, list) and shortened is None:
        return parts
    text = content if shortened is None else shortened
    return [{"type": "tool_result", "id": call_id, "content": text} for call_id in item.answers]


@dataclass(slots=True)
class _Payload:
    system: list[Json] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)
    material: list[Json] | None = None  # parts of the message that material is being added to

    def add(self, entry: Mapping[str, Any], *, is_stable: bool) -> None:
        if "tool" in entry:
            self.tools.append(entry["tool"])
        elif "role" in entry:
            self._say(entry["role"], list(entry["parts"]))
        elif is_stable:
            self.system.append({"type": "text", "text": entry["text"]})
        else:
            self._show({"type": "text", "text": entry["text"]})

    def _say(self, role: str, parts: list[Any]) -> None:
        if role == "tool" and all(part.get("type") != "tool_result" for part in parts):
            role = "user"
        self.messages.append({"role": role, "parts": parts})
        self.material = None

    def _show(self, part: Json) -> None:
        if self.material is None:
            self.material = []
            self.messages.append({"role": "user", "parts": self.material})
        self.material.append(part)


def payload(laid_out: Sequence[Section]) -> Json:
    """Return the provider-neutral request: system texts, tools, messages, and where sections end.

    `sections[i].system`, `.tools` and `.messages` count what of each list is at most in section i:
    the stable prefix ends at `system[:n]` and `tools[:n]`, which is where a cache breakpoint goes.
    """
    made = _Payload()
    ends = []
    for section in laid_out:
        for entry in section.entries:
            made.add(entry, is_stable=section.name == STABLE)
        made.material = None
        ends.append(
            {
                **section.json(),
                "system": len(made.system),
                "tools": len(made.tools),
                "messages": len(made.messages),
            }
        )
    return {"system": made.system, "tools": made.tools, "messages": made.messages, "sections": ends}
