"""Where the messages of a prompt came from, as far as hashes, call ids and equal texts show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of a call's input, as far as comparing needs it."""

    hash: bytes  # of the whole normal form: equal means equal bytes to a prompt cache
    match_hash: bytes  # of what was said: equal means the same message
    role: str  # of the message; "tools" for the list of tool definitions, sent before all
    text: str  # everything said, calls and results included
    call_ids: tuple[str, ...] = ()  # of the tool calls requested or answered


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from, as far as it can be shown."""

    kind: Literal["tool list", "system prompt", "user", "output", "result", "memory", "unknown"]
    step_id: str | None = None  # of the step that made it
    step_name: str | None = None


UNKNOWN = Origin("unknown")


@dataclass(frozen=True, slots=True)
class OriginEvidence:
    """What earlier steps of the run are known to have produced."""

    outputs: Mapping[bytes, Origin] = field(default_factory=dict)  # by match_hash of the answer
    asks: Mapping[str, Origin] = field(default_factory=dict)  # call id -> the asking model step
    ran: Mapping[str, Origin] = field(default_factory=dict)  # call id -> the tool step
    results: Mapping[str, Origin] = field(default_factory=dict)  # text, by `squeezed` -> step


def origins_of(messages: Sequence[Sent], evidence: OriginEvidence) -> list[Origin]:
    """Say where each message came from, as far as hashes, call ids and equal texts show it."""
    opening = True
    origins = []
    for message in messages:
        opening = opening and message.role in {"tools", "system", "developer"}
        origins.append(_origin(message, evidence, opening=opening))
    return origins


def _origin(message: Sent, evidence: OriginEvidence, *, opening: bool) -> Origin:
    if message.role == "tools":
        return Origin("tool list")
    if opening:
        return Origin("system prompt")
    if message.role == "assistant":
        found = evidence.outputs.get(message.match_hash)
        return found or _by_call_id(message, evidence.asks) or UNKNOWN
    same_text = evidence.results.get(squeezed(message.text)) if message.text else None
    if message.role == "tool":
        return _by_call_id(message, evidence.ran) or same_text or UNKNOWN
    if same_text is not None:
        return same_text
    return Origin("user") if message.role == "user" else UNKNOWN


def _by_call_id(message: Sent, steps: Mapping[str, Origin]) -> Origin | None:
    for call_id in message.call_ids:
        if call_id in steps:
            return steps[call_id]
    return None


def squeezed(text: str) -> str:
    """Return a text without white space: dialects lay results out differently."""
    return "".join(text.split())
