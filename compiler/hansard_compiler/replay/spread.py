"""How much the responses of n repeats differ: an equal request may get another response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hansard_compiler.calls import Json, Message, message_json
from hansard_compiler.replay.turns import calls_in, text_of


@dataclass(frozen=True, slots=True)
class Repeat:
    """One response. Times are milliseconds; None where it was not measured."""

    step_id: str
    output: tuple[Message, ...]
    input_tokens: int | None
    output_tokens: int | None
    latency_ms: float | None


def spread_of(repeats: Sequence[Repeat]) -> Json:
    """Return the responses grouped by their text, the commonest first, and the ranges."""
    groups: dict[tuple[bytes, ...], list[Repeat]] = {}
    for one in repeats:
        groups.setdefault(tuple(message.match_hash for message in one.output), []).append(one)
    ordered = sorted(groups.values(), key=len, reverse=True)
    return {
        "answers": len(repeats),
        "different": len(groups),
        "groups": [
            {
                "count": len(group),
                "step_ids": [one.step_id for one in group],
                "text": text_of(group[0].output),
                "tool_calls": [
                    {"name": part.name, "arguments": part.arguments}
                    for part in calls_in(group[0].output)
                ],
                "output": [message_json(message) for message in group[0].output],
            }
            for group in ordered
        ],
        "input_tokens": range_of([one.input_tokens for one in repeats]),
        "output_tokens": range_of([one.output_tokens for one in repeats]),
        "latency_ms": range_of([one.latency_ms for one in repeats]),
    }


def range_of(values: Sequence[float | None]) -> Json | None:
    """Return least, middle and most of what is known; None where nothing is."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return {"min": known[0], "median": median(known), "max": known[-1]}
