"""Comparisons in words: figures with units and directions, for pages and terminals alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hansard_compiler.diff import Delta, ItemSide
from hansard_compiler.diff.explanations import Figure
from hansard_web.compile_view.labels import DECISIONS
from hansard_web.diff.runs import RunDiff
from hansard_web.ui import format as fmt

UNKNOWN: Final = "unknown"

_LABELS: Final[Mapping[str, str]] = {
    "status": "status",
    "model": "model",
    "cost_usd": "cost",
    "duration_ms": "time",
    "tokens.input": "tokens in",
    "tokens.output": "tokens out",
    "tokens.reasoning": "reasoning tokens",
    "cache_share": "from cache",
    "steps": "steps",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
    "errors": "errors",
}
_WHAT: Final[Mapping[str, str]] = {
    "input": "input",
    "output": "output",
    "tokens": "tokens",
    "compile": "the context",
    "context": "the context",
    "messages": "messages",
    "tools": "tools",
    "parameters": "settings of the call",
    "request": "the request",
}
STATES: Final[Mapping[str, str]] = {
    "same": "same",
    "changed": "changed",
    "only_left": "only in A",
    "only_right": "only in B",
}


@dataclass(frozen=True, slots=True)
class FigureText:
    """A headline figure in words."""

    label: str
    say: str  # "26,019 fewer, −41%"
    left: str
    right: str
    direction: str  # up, down or ""
    is_better: bool
    is_worse: bool


def say(delta: Delta) -> FigureText:
    """Return a figure of both sides in words; unknown stays unknown."""
    return FigureText(
        _LABELS.get(delta.name, delta.name),
        _moved(delta),
        value_text(delta.name, delta.left),
        value_text(delta.name, delta.right),
        {"more": "up", "less": "down"}.get(delta.direction, ""),
        delta.verdict == "better",
        delta.verdict == "worse",
    )


def value_text(name: str, value: Figure) -> str:
    """Return one value as people read it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value.replace("_", " ")
    shape = _SHAPES.get(name)
    return shape(value) if shape else fmt.count(round(value))


def what_text(what: tuple[str, ...]) -> str:
    """Return in what two steps differ."""
    return ", ".join(dict.fromkeys(_WHAT.get(one, _LABELS.get(one, one)) for one in what))


def decision_text(side: ItemSide | None) -> str:
    """Return what a compile did with an item: `compressed 1,021 → 260`."""
    if side is None:
        return "not a candidate"
    word = DECISIONS.get(side.decision, side.decision)
    return f"{word} {tokens_text(side)}".rstrip()


def tokens_text(side: ItemSide) -> str:
    """Return the tokens of what was sent: `172`, or `1,021 → 260`; nothing for what was not."""
    if side.decision == "exclude" or side.tokens_after is None:
        return ""
    if side.tokens_before is None or side.tokens_before == side.tokens_after:
        return fmt.count(side.tokens_after)
    return f"{fmt.count(side.tokens_before)} → {fmt.count(side.tokens_after)}"


def signed(number: int | None) -> str:
    """Return a difference with its sign; nothing for none."""
    if not number:
        return ""
    return f"{'+' if number > 0 else '−'}{fmt.count(abs(number))}"


def parted_text(diff: RunDiff) -> str:
    """Say where two runs part."""
    parted = diff.parted
    if parted is None:
        return "Nothing differs." if diff.is_empty else "Every step is the same."
    where = f"First difference at step {parted.number + 1}, {parted.row.step.name}: "
    if parted.left is None:
        return f"{where}only B has it."
    if parted.right is None:
        return f"{where}only A has it."
    return f"{where}{what_text(parted.what)}."


def _moved(delta: Delta) -> str:
    if delta.direction == "unknown":
        side = "A" if delta.left is None else "B"
        return f"{UNKNOWN} in {side}"
    if delta.direction == "same":
        return "the same"
    amount, share = delta.delta, delta.share
    if amount is None:
        left, right = (value_text(delta.name, one) for one in (delta.left, delta.right))
        return f"{left} → {right}"
    if delta.name == "cache_share":
        return f"{abs(amount):.0f} points {delta.direction}"
    fewer = "less" if delta.name in _SHAPES else "fewer"
    word = "more" if delta.direction == "more" else fewer
    text = f"{value_text(delta.name, abs(amount))} {word}"
    return text if share is None else f"{text}, {'+' if share > 0 else '−'}{abs(share):.0%}"


_SHAPES: Final[Mapping[str, Callable[[float], str]]] = {
    "cost_usd": fmt.usd,
    "duration_ms": fmt.milliseconds,
    "cache_share": lambda share: f"{share:.0f}%",
}
