"""What is read of a transcript: everything, or what the next call needs.

The log is one; the views differ. A fold stands in front of what follows it as one message; a marked
message shows its mark. Both are the same bytes each time they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes, ref_of
from hansard_compiler.transcripts.errors import ResultWithoutCall
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import StoredMessage

HANDOFF: Final = "handoff"  # the name that the message of a fold has
MarkKind = Literal["redacted", "superseded", "restored"]
EndStatus = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that has a transcript."""

    id: ConversationId
    name: str  # gen_ai.conversation.id of its spans
    created_ns: int
    number: int = 0  # in the order they were made


@dataclass(frozen=True, slots=True)
class Fold:
    """A summary that replaces all messages up to a position."""

    log: LogId
    message_position: int
    summary: str
    actor: str
    created_ns: int


@dataclass(frozen=True, slots=True)
class Mark:
    """What is shown in place of a message, and who marked it."""

    position: int
    kind: MarkKind
    reason: str
    actor: str
    created_ns: int
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A sub-agent: its own log, and the place in its parent's where it began."""

    id: BranchId
    conversation: ConversationId
    parent: LogId
    parent_position: int  # -1: before the first message
    name: str
    created_ns: int
    messages: int
    ended: EndStatus | None  # None: never, or resumed since


@dataclass(frozen=True, slots=True)
class Active:
    """The messages of the next call."""

    messages: tuple[Json, ...]
    fold: Fold | None
    head: int  # position of the last message of the log; -1: none
    open_calls: tuple[str, ...]  # ids of tool calls without a result


def handoff(fold: Fold) -> Json:
    """Return the one message that a fold becomes at load."""
    count = fold.message_position + 1
    text = f"Summary of the first {count} messages of this conversation:\n\n{fold.summary}"
    return {"role": "user", "name": HANDOFF, "parts": [{"type": "text", "text": text}]}


def active_view(
    messages: Sequence[StoredMessage], fold: Fold | None, marks: Mapping[int, Mark]
) -> Active:
    """Return what follows the fold, with its summary in front. `messages` are those after it."""
    shown = [veiled(one.body, marks.get(one.position)) for one in messages]
    front = [] if fold is None else [handoff(fold)]
    head = messages[-1].position if messages else fold.message_position if fold else -1
    return Active((*front, *shown), fold, head, tuple(open_calls(shown)))


def current_marks(marks: Iterable[Mark]) -> dict[int, Mark]:
    """Return the marks in force by position; `marks` come oldest first."""
    newest = {mark.position: mark for mark in marks}
    return {at: mark for at, mark in newest.items() if mark.kind != "restored"}


def veiled(body: Json, mark: Mark | None) -> Json:
    """Return a message as it is shown under a mark.

    Its shape stays: a result that vanished would leave its call open, which providers refuse.
    """
    if mark is None:
        return body
    text = "‹message removed: redacted›"
    if mark.kind == "superseded":
        by = "" if mark.superseded_by is None else f" by message {mark.superseded_by}"
        text = f"‹message removed: superseded{by}›"
    parts = list(_veiled_parts(body["parts"], text))
    return {"role": body["role"], "parts": parts or [{"type": "text", "text": text}]}


def _veiled_parts(parts: Sequence[Json], text: str) -> Iterator[Json]:
    is_noted = False
    for part in parts:
        if part["type"] == "tool_call":
            yield {"type": "tool_call", "id": part.get("id"), "name": part["name"], "arguments": {}}
        elif part["type"] == "tool_result":
            yield {"type": "tool_result", "id": part.get("id"), "content": text}
        elif not is_noted:
            is_noted = True
            yield {"type": "text", "text": text}


def open_calls(messages: Iterable[Json]) -> list[str]:
    """Return the ids of tool calls that have no result."""
    waiting: dict[str, None] = {}
    for message in messages:
        for part in message["parts"]:
            call_id = part.get("id")
            if part["type"] == "tool_call" and call_id is not None:
                waiting[call_id] = None
            elif part["type"] == "tool_result":
                waiting.pop(call_id, None)
    return list(waiting)


def refuse_orphans(message: Json, before: Iterable[Json]) -> None:
    """Raise ResultWithoutCall where a message has a result that answers no open call.

    `before` are the messages before it, the newest first; they are read as far as needed. A result
    and a call belong together by id, or in order where one of them has none.
    """
    unmatched = [one.get("id") for one in message["parts"] if one["type"] == "tool_result"]
    answered: list[str | None] = []  # by results in between
    earlier = iter(before)
    while unmatched and (one := next(earlier, None)) is not None:
        for part in reversed(one["parts"]):
            if part["type"] == "tool_result":
                answered.append(part.get("id"))
            elif part["type"] == "tool_call" and not _take(answered, part.get("id")):
                _take(unmatched, part.get("id"))
    if unmatched:
        raise ResultWithoutCall(unmatched)


def _take(results: list[str | None], call_id: str | None) -> bool:
    """Take away the result of a call: by its id, in order where one of them has none."""
    for at in reversed(range(len(results))):
        if call_id is None or results[at] in (call_id, None):
            del results[at]
            return True
    return False


def prompt_bytes(messages: Iterable[Json]) -> bytes:
    """Return messages as bytes, a line each: a later prompt begins with those of an earlier one."""
    return b"".join(canonical_bytes(message) + b"\n" for message in messages)


def prefix_hash(messages: Iterable[Json]) -> str:
    """Return `sha256:<hex>` over `prompt_bytes`."""
    return ref_of(prompt_bytes(messages))
