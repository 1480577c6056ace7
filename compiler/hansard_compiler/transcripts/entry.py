"""The way of a message into a transcript: brought into shape, redacted, clipped.

All of it happens once, before the message is stored. What is stored is what the agent goes on
with, so that the prefix of its prompts never changes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from hansard_compiler.calls import Json, Message, message_json
from hansard_compiler.canonical import canonical_json, ref_of
from hansard_compiler.compile.models import first_problem
from hansard_compiler.transcripts.errors import InvalidMessage
from hansard_compiler.transcripts.messages import ROLES, message_type

CLIP_BYTES: Final = 32 * 1024  # of a tool result; about 8,000 tokens
MIN_CLIP_BYTES: Final = 1024
MESSAGE_BYTES: Final = 4 * 1024 * 1024  # after clipping
_HEAD_SHARE = 0.75  # of what is stored; the rest is from the end, where errors stand
_MARKER_CHARACTERS = 80  # that a mark of redaction has at most

Clean = Callable[[str], str]  # takes secrets out of a text, JSON stays JSON
AnyMessage = Mapping[str, Any] | Message


@dataclass(frozen=True, slots=True)
class Original:
    """The whole of what was clipped, as it is stored by reference; redacted like the message."""

    data: bytes
    media_type: str

    @property
    def ref(self) -> str:
        return ref_of(self.data)


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A message as it will be stored."""

    id: bytes
    role: str
    content: str  # canonical JSON without the role
    originals: tuple[Original, ...] = ()
    payloads: tuple[str, ...] = ()  # references that it names
    trace_id: bytes | None = None
    span_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that is to be appended. An id makes it safe to send twice."""

    message: AnyMessage
    id: bytes | None = None
    trace_id: bytes | None = None
    span_id: bytes | None = None
    is_evidence: bool = False  # never clipped; refused where it is too large


def enter(new: NewMessage, clean: Clean | None, *, clip_bytes: int = CLIP_BYTES) -> TranscriptEntry:
    """Return a message as it will be stored; raises InvalidMessage."""
    body = _checked(cleaned(shaped(new.message), clean))
    role, originals = body.pop("role"), []
    if role == "tool" and not new.is_evidence:
        originals = _clip_results(body["parts"], max(clip_bytes, MIN_CLIP_BYTES))
    content = canonical_json(body)
    size = len(content.encode("utf-8"))
    if size > MESSAGE_BYTES:
        raise InvalidMessage(f"a message has {size:,} bytes; at most {MESSAGE_BYTES:,} are kept")
    return TranscriptEntry(
        id=new.id or secrets.token_bytes(16),
        role=role,
        content=content,
        originals=tuple(originals),
        payloads=tuple(dict.fromkeys(_payloads_of(body["parts"]))),
        trace_id=new.trace_id,
        span_id=new.span_id,
    )


def shaped(message: AnyMessage) -> Json:
    """Return a message with its parts, from the short forms too; raises InvalidMessage.

    `{"role": "user", "content": "text"}` and the same for an assistant; of a tool
    `{"role": "tool", "id": …, "content": any}`.
    """
    if not isinstance(message, Message | Mapping):
        raise InvalidMessage("a message is an object or a Message; several are appended one by one")
    body = message_json(message) if isinstance(message, Message) else dict(message)
    role = body.get("role")
    if role not in ROLES:
        raise InvalidMessage(f"the role is {role!r:.40}; a transcript holds {', '.join(ROLES)}")
    if "parts" in body or "content" not in body:
        return body
    content = body.pop("content")
    if role == "tool":
        result = {"type": "tool_result", "id": body.pop("id", None), "content": content}
        return {**body, "parts": [result]}
    if not isinstance(content, str):
        raise InvalidMessage(f"the content of a {role} message is text, or there are parts")
    return {**body, "parts": [{"type": "text", "text": content}]}


def cleaned(body: Json, clean: Clean | None) -> Json:
    """Return a message without its secrets, with nothing that JSON cannot hold; InvalidMessage."""
    try:
        text = canonical_json(body)
        if "\\ud" in text:
            text = canonical_json(_well_formed(body))
        value = json.loads(text if clean is None else clean(text))
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, TypeError) else "it cannot be written as JSON"
        raise InvalidMessage(f"no message: {why}") from None
    if not isinstance(value, dict) or value.get("role") != body.get("role"):
        raise InvalidMessage("the message is secret from end to end; nothing of it can be kept")
    return value


def _checked(body: Json) -> Json:
    """Return a message in its one form, absent fields left out; raises InvalidMessage."""
    try:
        message = message_type().validate_python(body)
    except ValidationError as error:
        raise InvalidMessage(first_problem(error)) from None
    return message.model_dump(exclude_unset=True)


def _well_formed(value: Any) -> Any:
    """Replace halves of surrogate pairs: no provider takes them, and no UTF-8 holds them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_well_formed(key): _well_formed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_well_formed(one) for one in value]
    return value


def _payloads_of(parts: Sequence[Json]) -> Iterator[str]:
    for part in parts:
        held = part.get("clip") or part
        if held.get("payload"):
            yield held["payload"]


# ---- clipping


def _clip_results(parts: list[Json], limit: int) -> list[Original]:
    """Clip the results among the parts in place, and return the wholes of those."""
    found = []
    for part in parts:
        content = part.get("content")
        is_text = isinstance(content, str)
        text: str = content if isinstance(content, str) else canonical_json(content)
        data = text.encode("utf-8")
        if len(data) <= limit or part.get("clip"):
            continue
        original = Original(data, "text/plain" if is_text else "application/json")
        shown, shown_bytes = clipped(text, len(data), original.ref, limit=limit)
        part["content"] = shown
        part["clip"] = {
            "payload": original.ref,
            "media_type": original.media_type,
            "size_bytes": len(data),
            "kept_bytes": shown_bytes,
        }
        found.append(original)
    return found


def clipped(text: str, size_bytes: int, ref: str, *, limit: int) -> tuple[str, int]:
    """Return the beginning and the end of a text with a mark between them, and their bytes."""
    head_bytes = int(limit * _HEAD_SHARE)
    data = text.encode("utf-8")
    head = _without_cut_mark(data[:head_bytes].decode("utf-8", "ignore"), at_end=True)
    tail = _without_cut_mark(data[head_bytes - limit :].decode("utf-8", "ignore"), at_end=False)
    kept_bytes = len(head.encode()) + len(tail.encode())
    left_out = size_bytes - kept_bytes
    mark = f"\n‹clipped: {left_out:,} of {size_bytes:,} bytes are left out; whole: {ref}›\n"
    return head + mark + tail, kept_bytes


def _without_cut_mark(text: str, *, at_end: bool) -> str:
    """Leave out half a mark of redaction at a cut."""
    if at_end:
        start = text.rfind("‹", max(len(text) - _MARKER_CHARACTERS, 0))
        return text[:start] if start >= 0 and "›" not in text[start:] else text
    end = text.find("›", 0, _MARKER_CHARACTERS)
    return text[end + 1 :] if end >= 0 and "‹" not in text[:end] else text
