"""What a replay would do, as its form shows it: made of the very body that the API answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import Reason
from hansard_web.api.values import Body
from hansard_web.diff.page.detail import PathRow
from hansard_web.replay.descriptions import BASES
from hansard_web.replay_page.labels import Flip, path_rows, say_cost, say_flips, sentence
from hansard_web.ui.format import count, file_size

_MOST_FLIPS: Final = 60
_MARKS: Final = {"@": "hunk", "-": "del", "+": "ins"}
_SECTIONS: Final = (
    ("stable_prefix", "stable"), ("task_context", "task"), ("volatile_suffix", "volatile"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One compile's budget as a bar. parts: (class, from %, width %)."""

    label: str
    used: str
    parts: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified diff."""

    kind: str  # hunk del ins same
    text: str


@dataclass(frozen=True, slots=True)
class PreviewView:
    """What would be sent, and what is different about it."""

    to: str
    recorded_at: str  # the address that the recorded call went to; "" where nothing is sent
    tokens: str
    counted_by: str
    cost: str
    sends: bool
    budgets: tuple[BudgetRow, ...]
    flips: tuple[Flip, ...]
    more: int
    is_compiled: bool
    request: str
    is_same: bool
    paths: tuple[PathRow, ...]
    hash: str
    notes: tuple[str, ...]
    is_rebuilt: bool
    needs_script: bool  # a scripted model is asked, and the caller has to bring its script
    basis: str
    bytes: tuple[DiffLine, ...]  # of the request, against the recorded one
    is_bytes_cut: bool
    effects: tuple[tuple[str, str], ...]  # path, what the provider does
    needs_approval: bool


def preview_view(body: Body) -> PreviewView:
    """Return a preview for the page."""
    flips = say_flips(body["compile"])
    request, tokens = body["request"], body["tokens"]
    diff = request["diff"]
    return PreviewView(
        to=_to(body),
        recorded_at=_recorded_at(body),
        tokens=f"about {count(tokens['estimated_input'])} tokens in",
        counted_by=tokens["estimated_by"],
        cost=say_cost(body["cost"], sends=body["sends"]),
        sends=body["sends"],
        budgets=_budgets(body["compile"]),
        flips=tuple(flips[:_MOST_FLIPS]),
        more=max(len(flips) - _MOST_FLIPS, 0),
        is_compiled=body["compile"] is not None,
        request=_request(request),
        is_same=request["same"],
        paths=path_rows((diff["json"] or {"changes": []})["changes"]),
        hash=request["hash"],
        notes=tuple(map(sentence, (*body["notes"], *body["omitted"]))),
        is_rebuilt=body["is_rebuilt"],
        needs_script=body["provider"] == "scripted" and _is_not_set_up(body),
        basis=BASES[body["basis"]],
        bytes=diff_lines(diff),
        is_bytes_cut=bool(diff and diff["is_unified_truncated"]),
        effects=tuple((one["path"], one["text"]) for one in body["provider_side_effects"]),
        needs_approval=body["needs_approval"],
    )


def diff_lines(diff: Json | None) -> tuple[DiffLine, ...]:
    """Return the lines of a byte diff; none where the bytes are equal or not known."""
    text = (diff or {}).get("unified") or ""
    return tuple(DiffLine(_MARKS.get(one[:1], "same"), one) for one in text.splitlines())


def _is_not_set_up(body: Body) -> bool:
    refusal = body["refusal"]
    return refusal is not None and refusal["reason"] == Reason.PROVIDER_NOT_CONFIGURED.value


def _to(body: Body) -> str:
    address = body["address"]
    model = f"{body['provider']} {body['model']}".strip()
    return f"{model}, {address}" if body["sends"] and address.startswith("http") else model


def _recorded_at(body: Body) -> str:
    if not body["sends"] or not body["address"].startswith("http"):
        return ""
    return body["recorded_address"] or "not recorded"


def _request(request: Json) -> str:
    size, diff = file_size(request["size"]), request["diff"]
    if not request["size"]:
        return "No request: only the compile is made again."
    if request["same"]:
        return f"{size}, the recorded bytes: the hash matches the record."
    if diff["left_size"] is None:
        return f"{size}; the recorded request is not stored here to be compared."
    said = f"{size} in place of {file_size(diff['left_size'])}"
    at = diff["first_difference"]
    if at is None:
        return f"{said}."
    told = diff["json"]
    if told is not None and not told["changes"] and not told["is_truncated"]:
        return (
            f"{size}: the same JSON, written otherwise (the order of keys) from byte {count(at)}."
        )
    return f"{said}; the first byte that differs is {count(at)}."


def _budgets(compiled: Json | None) -> tuple[BudgetRow, ...]:
    if compiled is None:
        return ()
    amounts = {one["name"]: one for one in compiled["budget"]}
    sections = {one["name"]: one for one in compiled["by_section"]}
    sides = ("left", "right")
    whole = max((amounts.get("budget", {}).get(side) or 0 for side in sides), default=0)
    if not whole:
        return ()
    labels = {"left": "recorded", "right": "changed"}
    rows = []
    for side in sides:
        lengths = [(css, (sections.get(name) or {}).get(side) or 0) for name, css in _SECTIONS]
        lengths += [("free", amounts.get("free", {}).get(side) or 0),
                    ("reserve", amounts.get("reserve", {}).get(side) or 0)]  # fmt: skip
        used = amounts.get("used", {}).get(side)
        told = "unknown" if used is None else count(used)
        rows.append(BudgetRow(labels[side], told, _parts(lengths, whole)))
    return tuple(rows)


def _parts(lengths: list[tuple[str, int]], whole: int) -> tuple[tuple[str, float, float], ...]:
    parts, at = [], 0
    for css, length in lengths:
        parts.append((css, round(100 * at / whole, 2), round(100 * length / whole, 2)))
        at += length
    return tuple(parts)
