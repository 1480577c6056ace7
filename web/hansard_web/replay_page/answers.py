"""What came out of a replay beside what was recorded: answers, figures, spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hansard_compiler.calls import Json, Message, ToolCallPart
from hansard_compiler.canonical import canonical_json
from hansard_store.replays import ReplayRow
from hansard_web.api.values import plain
from hansard_web.diff.labels import say
from hansard_web.diff.page.detail import Detail, detail_of
from hansard_web.diff.page.state import DiffState
from hansard_web.diff.page.words import Piece, shown_pieces
from hansard_web.diff.steps import StepDiff, StepSide
from hansard_web.ui.format import count, shorten

_SHOWN: Final = ("tokens.input", "tokens.output", "cost_usd", "duration_ms", "status")
_LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class AnswerSide:
    """One answer. Pieces hold what only this side says as `del` or `ins`."""

    side: str
    title: str
    model: str
    href: str
    figures: tuple[tuple[str, str, str], ...]  # label, value, how it moved
    pieces: tuple[Piece, ...]
    calls: tuple[tuple[str, str], ...]  # name, arguments


@dataclass(frozen=True, slots=True)
class Beside:
    """The recorded call and one of the replay's, side by side."""

    left: AnswerSide
    right: AnswerSide
    is_same_answer: bool
    is_empty: bool  # nothing differs but times
    detail: Detail  # context, settings, tools, tool calls
    sent: Detail  # messages and request
    state: DiffState
    is_saved: bool = False  # as the templates of comparisons ask
    detail_title: str = ""
    steps: None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """Answers of a replay that say the same."""

    count: int
    text: str
    calls: tuple[str, ...]
    links: tuple[tuple[int, str], ...]  # number of the answer, its address


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the answers of n repeats lie apart."""

    answers: int
    different: int
    groups: tuple[_Group, ...]
    ranges: tuple[tuple[str, str], ...]
    dots_pct: tuple[float, ...]  # tokens of each answer
    recorded_pct: float | None
    label: str


def beside(diff: StepDiff, *, title: str) -> Beside:
    """Return two calls side by side; what their answers say is shown above the comparison."""
    state = DiffState(diff.left.step.step_id, diff.right.step.step_id)
    detail = detail_of(diff, state)
    values = tuple(
        section
        for one in detail.values
        if (section := replace(one, pieces=()) if one.title.startswith("Answer") else one).paths
        or section.pieces
    )
    pieces = _pieces(diff)
    return Beside(
        left=_side(diff.left, "left", "Recorded", pieces, diff),
        right=_side(diff.right, "right", title, pieces, diff),
        is_same_answer=diff.output.is_empty,
        is_empty=diff.is_empty,
        detail=replace(detail, values=values, messages=(), messages_same=0, messages_retold=0,
                       request=None, is_empty=False),
        sent=replace(detail, context=None, settings=(), values=(), paths=(), is_empty=False),
        state=state,
    )  # fmt: skip


def _pieces(diff: StepDiff) -> tuple[Piece, ...]:
    if any(op.kind != "same" for op in diff.output.text):
        return shown_pieces(diff.output.text)
    text = _text(diff.right.answers) or _text(diff.left.answers)
    return (Piece("same", text[:_LONGEST]),) if text else ()


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(one.text for one in messages if one.text)


def _side(
    one: StepSide, which: str, title: str, pieces: tuple[Piece, ...], diff: StepDiff
) -> AnswerSide:
    own = "del" if which == "left" else "ins"
    call = one.reading.normal.call
    figures = []
    for delta in diff.figures:
        if delta.name in _SHOWN:
            text = say(delta)
            moved = "" if which == "left" or delta.direction == "same" else text.say
            figures.append((text.label, text.left if which == "left" else text.right, moved))
    parts = [part for message in one.answers for part in message.parts]
    return AnswerSide(
        side=which,
        title=title,
        model=str(one.step.model or (call.request_model if call else "") or ""),
        href=f"/steps/{one.step.step_id}",
        figures=tuple(figures),
        pieces=tuple(piece for piece in pieces if piece.kind in ("same", "gap", own)),
        calls=tuple(
            (part.name or "", shorten(canonical_json(plain(part.arguments)), 300))
            for part in parts
            if isinstance(part, ToolCallPart)
        ),
    )


def spread_view(spread: Json | None, row: ReplayRow, recorded: int | None) -> Spread | None:
    """Return the spread of n answers as the page shows it; None for a single one."""
    if spread is None:
        return None
    tokens = [one["output_tokens"] for one in row.steps if one["output_tokens"] is not None]
    numbers = {one["step_id"]: number for number, one in enumerate(row.steps, 1)}
    path = f"/replays/{row.replay_id}?answer="
    known = tokens + ([recorded] if recorded is not None else [])
    low, high = (min(known), max(known)) if known else (0, 0)

    def place(value: int) -> float:
        return 50.0 if high == low else round(5 + 90 * (value - low) / (high - low), 1)

    ranges = (("tokens out", spread["output_tokens"], ""), ("latency", spread["latency_ms"], " ms"))
    return Spread(
        answers=spread["answers"],
        different=spread["different"],
        groups=tuple(_group(one, numbers, path) for one in spread["groups"]),
        ranges=tuple((label, _range(one, unit)) for label, one, unit in ranges if one is not None),
        dots_pct=tuple(map(place, tokens)),
        recorded_pct=None if recorded is None else place(recorded),
        label=", ".join(map(count, tokens)),
    )


def _group(one: Json, numbers: Mapping[str, int], path: str) -> _Group:
    return _Group(
        one["count"],
        shorten(one["text"], 400),
        tuple(
            f"{call['name']} {shorten(canonical_json(plain(call['arguments'])), 120)}"
            for call in one["tool_calls"]
        ),
        tuple((numbers[step], f"{path}{numbers[step]}") for step in one["step_ids"]),
    )


def _range(one: Json, unit: str) -> str:
    if one["min"] == one["max"]:
        return f"{_number(one['min'])}{unit}"
    low, middle, high = (_number(one[name]) for name in ("min", "median", "max"))
    return f"{low} to {high}{unit}, median {middle}"


def _number(value: float) -> str:
    return count(round(value)) if value >= 10 else f"{value:.2g}"
