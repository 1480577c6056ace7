"""Where a fork parts from what was recorded: the first response that cannot be followed.

Recorded tool results belong to recorded tool calls. As long as the model requests the same calls,
they are its results; the first call that differs has no recorded result, and running the tool is
not a replay's to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hansard_compiler.calls import Json, Message, Part, TextPart, ToolCallPart
from hansard_compiler.canonical import canonical_json

Kind = Literal["other_arguments", "other_tool", "extra_call", "missing_call", "other_answer"]
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first thing said that was not said before. `number` counts the tool calls of the turn."""

    kind: Kind
    number: int | None = None
    expected: Json | None = None  # {name, arguments} as recorded; None: no such call was recorded
    found: Json | None = None
    differs: tuple[str, ...] = ()  # which arguments

    @property
    def sentence(self) -> str:
        """What parted, in words; never the values."""
        recorded = self.expected["name"] if self.expected else None
        name = self.found["name"] if self.found else None
        at = "" if self.number is None else f"tool call {self.number + 1}: "
        match self.kind:
            case "other_arguments":
                parts = ", ".join(self.differs[:_SHOWN]) or "its arguments"
                return f"{at}{name} was asked for with another {parts}"
            case "other_tool":
                return f"{at}{name} was asked for, recorded was {recorded}"
            case "extra_call":
                return f"{at}{name} was asked for, and was not when it was recorded"
            case "missing_call":
                return f"{at}{recorded} was not asked for any more"
        return "the answer has other words, and what came next was said to the recorded ones"

    def json(self) -> Json:
        return {**asdict(self), "differs": list(self.differs), "sentence": self.sentence}


def first_divergence(recorded: Sequence[Message], found: Sequence[Message]) -> Divergence | None:
    """Return the first tool call that is not the recorded one; None where all are the same."""
    before, now = calls_in(recorded), calls_in(found)
    for number, (was, is_now) in enumerate(zip(before, now, strict=False)):
        if was.name != is_now.name:
            return Divergence("other_tool", number, _facts(was), _facts(is_now))
        if canonical_json(was.arguments) != canonical_json(is_now.arguments):
            differs = tuple(_differing(was.arguments, is_now.arguments))
            return Divergence("other_arguments", number, _facts(was), _facts(is_now), differs)
    if len(now) > len(before):
        return Divergence("extra_call", len(before), None, _facts(now[len(before)]))
    if len(now) < len(before):
        return Divergence("missing_call", len(now), _facts(before[len(now)]), None)
    return None


def says_the_same(recorded: Sequence[Message], found: Sequence[Message]) -> bool:
    """Return whether two responses are the same: words and calls, not ids or reasoning."""
    return [one.match_hash for one in recorded] == [one.match_hash for one in found]


def calls_in(messages: Sequence[Message]) -> list[ToolCallPart]:
    """Return the tool calls of a response, in order."""
    return [
        part for message in messages for part in message.parts if isinstance(part, ToolCallPart)
    ]


def with_answer(
    messages: Sequence[Message], recorded: Sequence[Message], found: Sequence[Message]
) -> tuple[Message, ...] | None:
    """Return a later turn's messages with the new words in place of the recorded ones.

    Calls keep their recorded ids: the recorded results name them. None where the recorded answer is
    not in there.
    """
    hashed = [one.match_hash for one in recorded]
    hashes = [one.match_hash for one in messages]
    for at in range(len(hashes) - len(hashed), -1, -1):
        if hashed and hashes[at : at + len(hashed)] == hashed:
            new = _with_ids(found, calls_in(messages[at : at + len(hashed)]))
            return (*messages[:at], *new, *messages[at + len(hashed) :])
    return None


def _with_ids(found: Sequence[Message], recorded: Sequence[ToolCallPart]) -> list[Message]:
    ids = iter([part.id for part in recorded])
    return [
        replace(message, parts=tuple(_with_id(part, ids) for part in message.parts))
        for message in found
    ]


def _with_id(part: Part, ids: Any) -> Part:
    return replace(part, id=next(ids, part.id)) if isinstance(part, ToolCallPart) else part


def text_of(messages: Sequence[Message]) -> str:
    """Return the content of a response, without its tool calls."""
    texts = [part.text for one in messages for part in one.parts if isinstance(part, TextPart)]
    return "\n".join(texts)


def _facts(part: ToolCallPart) -> Json:
    return {"name": part.name, "arguments": part.arguments}


def _differing(before: Any, now: Any) -> list[str]:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return []
    names = sorted({*before, *now}, key=str)
    return [
        str(name)
        for name in names
        if canonical_json(before.get(name)) != canonical_json(now.get(name))
        or (name in before) != (name in now)
    ]
