"""Refusals and previews of a replay in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable
from hansard_store.ids import short_id
from hansard_store.replays import ReplayRow, list_replays, replay_that_made
from hansard_store.steps.queries import StepSkeleton
from hansard_web.compile_view.labels import DECISIONS, meaning
from hansard_web.diff.labels import signed
from hansard_web.diff.page.detail import PathRow
from hansard_web.replay.descriptions import text_of_value
from hansard_web.replay.json import reason_text
from hansard_web.ui.format import money, shorten

_NANO: Final = 1_000_000_000
_MOST_PATHS: Final = 100
_DID: Final[Mapping[str, str]] = {
    "included": "goes in",
    "excluded": "falls out",
    "added": "is new",
    "removed": "is no candidate any more",
    "compressed": "is shortened",
    "redacted": "has parts cut out",
    "tokens": "takes another number of tokens",
    "reason": "is decided the same way, for another reason",
    "content": "says something else",
}
_CUT: Final[Mapping[str, str]] = {"compressed": "shortened", "redacted": "with parts cut out"}
_FLIPS: Final = ("included", "excluded", "added", "removed", "compressed", "redacted")


@dataclass(frozen=True, slots=True)
class RefusalLabel:
    """Why something is not sent: the typed reason, and what was found."""

    code: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Flip:
    """What becomes of one item."""

    item_id: str
    name: str
    decision: str
    label: str
    text: str
    tag: str
    detail: str
    is_verified: bool
    change: str


# ---- refusals


def refusal_sentence(why: NotReplayable) -> RefusalLabel:
    """Return a refusal with its typed reason in words."""
    return RefusalLabel(why.reason.value, sentence(why.reason.meaning), why.detail)


def blocked_refusal(report: Json) -> RefusalLabel:
    """Return why a preview says that it cannot be sent from here."""
    meaning = reason_text(report["reason"]) or ""
    detail = str(report["message"]).removeprefix(meaning).removeprefix(": ")
    return RefusalLabel(report["reason"], sentence(meaning), detail)


def sentence(text: str) -> str:
    """Return a text that begins as a sentence does."""
    return text[:1].upper() + text[1:]


# ---- previews


def flips_sentence(compiled: Json | None) -> list[Flip]:
    """Return what becomes of the items that a preview decides otherwise, the greatest first."""
    if compiled is None:
        return []
    changed = [one for one in compiled["items"] if one["change"] not in ("same", "score")]
    return [_flip(one) for one in sorted(changed, key=_weight)]


def _weight(one: Json) -> tuple[bool, int, str]:
    return one["change"] not in _FLIPS, -abs(one["tokens_delta"] or 0), one["item_id"]


def _flip(one: Json) -> Flip:
    right, because = one["right"], one["cause"] or {}
    decision = "dropped" if right is None else right["decision"]
    label = DECISIONS.get(decision, decision)
    did = _DID.get(one["change"], "differs")
    if one["change"] in _CUT and one["left"] is not None and one["left"]["decision"] == "exclude":
        did = f"goes in, {_CUT[one['change']]}"
    is_removed = right is not None and right["reason"] == "removed_by_replay"
    tokens = signed(one["tokens_delta"])
    return Flip(
        item_id=one["item_id"],
        name=one["name"],
        decision=decision,
        label="left out" if is_removed else label,
        text=("is left out" if is_removed else did) + (f", {tokens} tokens" if tokens else ""),
        tag="removed_by_replay" if is_removed else because.get("kind", ""),
        detail=because.get("detail", "") or (meaning(right["reason"]) if right else ""),
        is_verified=because.get("basis") == "verified",
        change=one["change"],
    )


def cost_sentence(cost: Json | None, *, sends: bool) -> str:
    """Return what sending would cost."""
    if not sends:
        return "nothing is sent, $0"
    if cost is None:
        return "cost unknown: the price list does not have the model"
    if cost["source"] is None:
        return "nothing is paid"
    each = money(round(cost["each_usd"] * _NANO))
    return f"about {each}" + (f" each, {cost['times']} times" if cost["times"] > 1 else "")


def path_rows(changes: Sequence[Json]) -> tuple[PathRow, ...]:
    """Return changes by path as a table shows them."""
    return tuple(
        PathRow(
            one["path"], one["state"], shorten(text_of_value(one["left"]), 300),
            shorten(text_of_value(one["right"]), 300),
        )
        for one in changes[:_MOST_PATHS]
    )  # fmt: skip


# What steps and runs say of replays: the way to them, and that a replay made them.

_ROLES: Final = ("llm", "embedding", "compile")
_MOST: Final = 50


@dataclass(frozen=True, slots=True)
class MadeBy:
    """The replay that made a step or a run."""

    say: str
    short_id: str
    href: str
    source_href: str


@dataclass(frozen=True, slots=True)
class ReplayMark:
    """Of a step: where it is replayed, how often it was, and whether a replay made it."""

    href: str | None = None  # None: its kind cannot be replayed
    count: int = 0
    made_by: MadeBy | None = None


def replay_mark(connection: apsw.Connection, step: StepSkeleton) -> ReplayMark:
    """Return what a step says of replays."""
    made_by = replay_that_made(connection, step.run_id)
    can = step.role in _ROLES
    made = list_replays(connection, step_id=step.step_id, limit=_MOST, cursor=None) if can else None
    return ReplayMark(
        f"/replay/{step.step_id}" if can else None,
        0 if made is None else len(made.items),
        None if made_by is None else made_by_words(made_by),
    )


def made_by_words(row: ReplayRow) -> MadeBy:
    """Return a replay as what it made names it."""
    kind = {
        "exact": "an exact replay",
        "mutated": "a replay with changes",
        "forward": "a replay from a step on",
    }.get(row.mode, "a replay")
    return MadeBy(
        f"{kind}, answered from the recording" if row.is_recorded else kind,
        short_id(row.replay_id),
        f"/replays/{row.replay_id}",
        f"/steps/{row.source_step_id}",
    )


def runs_made(rows: Sequence[ReplayRow]) -> set[str]:
    """Return the runs that replays made."""
    return {row.run_id for row in rows if row.run_id is not None}
