"""What the passes hand on: the candidates, what is known of them, and a report of each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.compile.models import CompilationRequest, Decision, Json
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.reasons import ReasonCode


class Ruling(NamedTuple):
    """A pass's ruling on one item."""

    decision: Decision
    reason: ReasonCode
    note: str | None = None
    related: str | None = None  # id of the winner, the remaining copy, the item that needs this one
    missed_tokens: int | None = None
    missed_score: int | None = None  # billionths of a point
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Report:
    """One pass's ruling on every item it saw: `usual`, except for those in `rulings`."""

    name: str
    seen: tuple[str, ...]
    usual: Ruling
    rulings: Mapping[str, Ruling]

    def __iter__(self) -> Iterator[tuple[str, Ruling]]:
        return ((item_id, self.rulings.get(item_id, self.usual)) for item_id in self.seen)


class ItemScore(NamedTuple):
    """The terms of a score in millionths, and their weighted sum in billionths of a point."""

    relevance: int
    freshness: int
    trust: int
    importance: int
    dependency: int
    pin: int
    policy_priority: int
    staleness: int
    risk: int
    total: int

    @property
    def terms(self) -> tuple[int, ...]:
        """Return the terms in the order of `scoring.TERMS`."""
        return self[:-1]


class Guarded(NamedTuple):
    """What may be shown of an item: its content without what must not be, or nothing at all."""

    text: str
    content: Any
    original: Any  # without secrets, before any rule: what the record keeps
    withheld: ReasonCode | None = None
    rules: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()  # `rule:fingerprint` of every secret cut out
    by_policy: bool = False  # a rule requires the redaction
    priority: int = 0  # of the rules that hold for it, in millionths


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the layout."""

    name: str
    item_ids: tuple[str, ...]
    tokens: int
    hash: str
    entries: tuple[Mapping[str, Any], ...]

    def json(self) -> Json:
        return {
            "name": self.name,
            "hash": self.hash,
            "tokens": self.tokens,
            "item_ids": list(self.item_ids),
        }


class Receipt(NamedTuple):
    """What a compile did with one item. Scores are billionths of a point."""

    item_id: str
    kind: str
    decision: Decision
    pass_name: str
    reason: ReasonCode
    score: ItemScore | None
    original_tokens: int | None  # None: it left before tokens were counted
    final_tokens: int  # 0 when nothing of it was sent
    section: str | None
    source: str
    original_ref: str  # payload of its content without secrets, before compression
    final_ref: str | None  # payload of what was sent of it
    missed_by_tokens: int | None = None
    missed_by_score: int | None = None
    related_item_id: str | None = None
    rule_ids: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class CompileState:
    """Everything known between two passes. `live` are the candidates still in."""

    request: CompilationRequest
    ports: Ports
    now_us: int
    items: tuple[CandidateItem, ...] = ()
    live: tuple[CandidateItem, ...] = ()
    reports: tuple[_Report, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)  # dropped copy -> remaining one
    required: Mapping[str, ReasonCode] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # larger than one only
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # live dependencies
    guarded: Mapping[str, Guarded] = field(default_factory=dict)
    scores: Mapping[str, ItemScore] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)  # of what may be shown
    allotted: Mapping[str, int] = field(default_factory=dict)  # to be compressed to this
    shortened: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # text and tokens
    remarks: Mapping[str, str] = field(default_factory=dict)  # on how items were shortened
    classes: Mapping[str, int] = field(default_factory=dict)  # budget class of what went in
    sections: tuple[Section, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] = ()
    originals: Mapping[str, Any] = field(default_factory=dict)  # contents without secrets

    def after(
        self, name: str, usual: Ruling, rulings: Mapping[str, Ruling] | None = None, **changes: Any
    ) -> CompileState:
        """Return the state after a pass: its report added, what it excluded no longer live."""
        rulings = rulings or {}
        live: Sequence[CandidateItem] = changes.pop("live", self.live)
        seen = self.reports[-1].seen if self.reports else ()
        if len(seen) != len(live):  # they only ever get fewer: as many are the same ones
            seen = tuple([item.id for item in live])
        report = _Report(name, seen, usual, rulings)
        out = {item_id for item_id, one in rulings.items() if one.decision == "exclude"}
        if out:
            live = [item for item in live if item.id not in out]
        return replace(self, live=tuple(live), reports=(*self.reports, report), **changes)
