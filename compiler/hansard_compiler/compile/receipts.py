"""One receipt for every candidate: the ruling of the pass that decided about it.

`columns` is the form of span attributes: arrays of equal length, cut at 4,000 items. What is cut is
counted, and the whole is in the stored result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.canonical import canonical_bytes, ref_of
from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.compile.models import CompilationDecision, Json
from hansard_compiler.compile.passes.layout import shown_tokens
from hansard_compiler.compile.passes.score import breakdown, decimal_text
from hansard_compiler.compile.state import CompileState, Receipt, Ruling
from hansard_compiler.compile.visibility import without_secrets

COLUMNS_LIMIT = 4_000
UNKNOWN = -1
_DECIDING = ("compress", "policy")  # a later one outweighs, if it changed anything
_REMARKING = frozenset({"dependencies", "conflicts"})
_LEAVES = frozenset({"exclude"})
_CHANGES = frozenset({"exclude", "compress", "redact"})


def originals(state: CompileState) -> dict[str, Any]:
    """Return every candidate's content without secrets, whatever its outcome."""
    redactor, guarded = state.ports.redactor, state.guarded
    return {
        item.id: guarded[item.id].original
        if item.id in guarded
        else without_secrets(redactor, item.content, item.text)[0]
        for item in state.items
    }


def receipts_of(state: CompileState, contents: Mapping[str, Any]) -> tuple[Receipt, ...]:
    """Return the receipts of all candidates, in the order in which they came."""
    decided, by_pass = _decided(state)
    of_item = {one: section.name for section in state.sections for one in section.item_ids}
    sources, remarks = _sources(state), _remarks(state)
    return tuple(
        [
            _receipt(
                state,
                item,
                decided[item.id],
                by_pass[item.id],
                remarks=remarks.get(item.id, ()),
                section=of_item.get(item.id),
                source=source,
                original_ref=ref_of(content_bytes(contents[item.id])),
            )
            for item, source in zip(state.items, sources, strict=True)
        ]
    )


def _remarks(state: CompileState) -> dict[str, list[Ruling]]:
    """Return what passes remark of items that they leave in: it is part of their receipts too.

    A dependency that is no candidate, and a contradiction that is not certain.
    """
    found: dict[str, list[Ruling]] = {}
    for report in state.reports:
        if report.name in _REMARKING:
            for item_id, ruling in report.rulings.items():
                if ruling.note is not None and ruling.decision == "include":
                    found.setdefault(item_id, []).append(ruling)
    return found


def _decided(state: CompileState) -> tuple[dict[str, Ruling], dict[str, str]]:
    """Return what decided about each item, and in which pass.

    That is what excluded it, else the last that changed it; the budget says something of everyone.
    """
    decided: dict[str, Ruling] = {}
    by_pass: dict[str, str] = {}
    for report in state.reports:
        found = report.rulings
        if report.name != "budget":
            counting = _CHANGES if report.name in _DECIDING else _LEAVES
            found = {one: ruling for one, ruling in found.items() if ruling.decision in counting}
        decided.update(found)
        by_pass.update(dict.fromkeys(found, report.name))
    return decided, by_pass


def _receipt(
    state: CompileState,
    item: CandidateItem,
    ruling: Ruling,
    pass_name: str,
    *,
    remarks: Sequence[Ruling],
    section: str | None,
    source: str,
    original_ref: str,
) -> Receipt:
    guarded = state.guarded.get(item.id)
    shortened = state.shortened.get(item.id)
    note, related = ruling.note, ruling.related
    if ruling.decision == "redact" and shortened is not None:
        note = f"{note}; compressed as well"
    if remarks:
        note = "; ".join((*([note] if note else ()), *(one.note for one in remarks if one.note)))
        related = related or next((one.related for one in remarks if one.related), None)
    return Receipt(
        item.id,
        item.kind,
        ruling.decision,
        pass_name,
        ruling.reason,
        state.scores.get(item.id),
        state.tokens.get(item.id),
        0 if section is None else shown_tokens(state, item.id),
        section,
        source,
        original_ref,
        None if section is None else _final_ref(state, item, original_ref),
        ruling.missed_tokens,
        ruling.missed_score,
        related,
        ruling.rules or (guarded.rules if guarded is not None else ()),
        () if guarded is None else guarded.removed,
        note,
    )


def _final_ref(state: CompileState, item: CandidateItem, original_ref: str) -> str:
    """Return the reference of what was sent; the original's own when it went in as it is."""
    shortened, guarded = state.shortened.get(item.id), state.guarded[item.id]
    if shortened is not None:
        return ref_of(shortened[0].encode("utf-8", "surrogatepass"))
    if guarded.content is guarded.original:
        return original_ref
    return ref_of(content_bytes(guarded.content))


def content_bytes(content: Json | str) -> bytes:
    """Return a content as it is stored: text as UTF-8, anything else as canonical JSON."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    return canonical_bytes(content)


def _sources(state: CompileState) -> list[str]:
    """Return where each item came from in one line, without credentials that an address holds."""
    lines = [_source(item) for item in state.items]
    redactor = state.ports.redactor
    if not redactor.scan_bytes("\n".join(lines).encode("utf-8", "surrogatepass")):
        return lines
    return [redactor.redact_text(line).text for line in lines]


def _source(item: CandidateItem) -> str:
    source = item.source
    if source is None:  # refused by pass 2; for the type only
        return "other"
    where = source.uri or source.title
    return f"{source.source_type} {where}" if where else source.source_type


def decision_of(receipt: Receipt, weights: tuple[int, ...], *, scorer: str) -> CompilationDecision:
    """Return a receipt in the form in which it is stored and sent."""
    return CompilationDecision(
        item_id=receipt.item_id,
        kind=receipt.kind,  # type: ignore[arg-type]  # checked when it came in
        decision=receipt.decision,
        pass_name=receipt.pass_name,
        reason_code=receipt.reason.value,
        score_breakdown=breakdown(receipt.score, weights, scorer=scorer),
        original_tokens=receipt.original_tokens,
        final_tokens=receipt.final_tokens,
        notes=receipt.note,
        section=receipt.section,
        source=receipt.source,
        missed_by_tokens=receipt.missed_by_tokens,
        missed_by_score=receipt.missed_by_score,
        related_item_id=receipt.related_item_id,
        rule_ids=list(receipt.rule_ids),
        original_ref=receipt.original_ref,
        final_ref=receipt.final_ref,
        removed=list(receipt.removed),
    )


def columns(receipts: Sequence[Receipt], *, limit: int = COLUMNS_LIMIT) -> dict[str, Any]:
    """Return receipts as span attributes `hansard.item.*`, arrays of equal length.

    Unknown tokens are -1 and an absent score or text is empty: attribute arrays hold no nulls.
    `missed_scores` are billionths of a point; `final_refs` say only what differs from the original.
    """
    shown = receipts[:limit]
    return {
        "hansard.item.total": len(receipts),
        "hansard.item.ids": [one.item_id for one in shown],
        "hansard.item.kinds": [one.kind for one in shown],
        "hansard.item.decisions": [one.decision for one in shown],
        "hansard.item.passes": [one.pass_name for one in shown],
        "hansard.item.reasons": [one.reason.value for one in shown],
        "hansard.item.tokens_before": [_known(one.original_tokens) for one in shown],
        "hansard.item.tokens_after": [one.final_tokens for one in shown],
        "hansard.item.scores": [
            "" if one.score is None else decimal_text(one.score.total) for one in shown
        ],
        "hansard.item.sources": [one.source for one in shown],
        "hansard.item.sections": [one.section or "" for one in shown],
        "hansard.item.payload_refs": [one.original_ref for one in shown],
        "hansard.item.rule_ids": [",".join(one.rule_ids) for one in shown],
        "hansard.item.final_refs": [_other_ref(one) for one in shown],
        "hansard.item.missed_tokens": [_known(one.missed_by_tokens) for one in shown],
        "hansard.item.missed_scores": [_known(one.missed_by_score) for one in shown],
        "hansard.item.related": [one.related_item_id or "" for one in shown],
    }


def _known(amount: int | None) -> int:
    return UNKNOWN if amount is None else amount


def _other_ref(receipt: Receipt) -> str:
    """Return the reference of what was sent where that is not the original."""
    final_ref = receipt.final_ref or ""
    return "" if final_ref == receipt.original_ref else final_ref
