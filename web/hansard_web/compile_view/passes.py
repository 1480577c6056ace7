"""The twelve passes: what each did in one compile, and what is known of one item's way through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_compiler.compile.engine import PASSES
from hansard_store.compilations.receipts import StoredReceipt
from hansard_web.compile_view.labels import DECISIONS, PASS_NUMBERS, meaning, plain_why
from hansard_web.compile_view.record import CompileRecord
from hansard_web.ui.format import count, file_size, plural

_BUDGET: Final = PASS_NUMBERS["budget"]
_SCORE: Final = PASS_NUMBERS["score"]


@dataclass(frozen=True, slots=True)
class PassDid:
    """A pass, and what it did, in a word or two."""

    number: int
    name: str
    did: str
    changed: bool  # it left something out, or changed it
    is_linked: bool  # some receipt names it


@dataclass(frozen=True, slots=True)
class Stage:
    """The decision of a pass on one item."""

    number: int
    name: str
    state: str  # "" let through, "done" decided, "out", "todo" never saw it
    text: str


def passes_did(record: CompileRecord) -> tuple[PassDid, ...]:
    """Return every pass with what it did."""
    by_pass: dict[str, list[StoredReceipt]] = {}
    for one in record.receipts:
        by_pass.setdefault(one.pass_name or "", []).append(one)
    return tuple(
        _did(record, number, name, by_pass.get(name, []))
        for number, (name, _) in enumerate(PASSES, 1)
    )


def _did(
    record: CompileRecord, number: int, name: str, receipts: Sequence[StoredReceipt]
) -> PassDid:
    decisions = Counter(one.decision for one in receipts)
    parts = []
    if decisions["exclude"]:
        parts.append(f"{count(decisions['exclude'])} out")
    if decisions["redact"]:
        parts.append(f"{count(decisions['redact'])} redacted")
    if decisions["compress"]:
        saved = sum(
            (one.tokens_before or 0) - (one.tokens_after or 0)
            for one in receipts
            if one.decision == "compress"
        )
        parts.append(f"{count(decisions['compress'])}, −{count(saved)} tokens")
    return PassDid(
        number=number,
        name=name,
        did=", ".join(parts) or _plain(record, name),
        changed=bool(parts),
        is_linked=bool(receipts),
    )


def _plain(record: CompileRecord, name: str) -> str:
    """Return what a pass that left everything as it was did."""
    if name == "normalize":
        return f"{count(record.compilation.row.item_total)} in"
    if name == "score":
        ranked = sum(one.score_nano is not None for one in record.receipts)
        return f"{count(ranked)} ranked"
    if name == "layout":
        filled = {one.section for one in record.receipts if one.section}
        return plural(len(filled), "section")
    if name == "render" and record.result.size:
        return f"{file_size(record.result.size)} result"
    if name == "record":
        return plural(len(record.receipts), "receipt")
    seen = record.result.passes.get(name)
    return "none out" if seen is None else f"{count(seen.seen)} seen"


def trail_of(receipt: StoredReceipt, note: str) -> tuple[Stage, ...]:
    """Return an item's way through the passes, as far as its receipt shows it.

    Whatever left in a pass was let through by all before it, and not seen by any after it.
    """
    deciding = PASS_NUMBERS.get(receipt.pass_name or "")
    is_out = receipt.decision == "exclude"
    found = []
    for number, (name, _) in enumerate(PASSES, 1):
        if number == deciding:
            word = DECISIONS.get(receipt.decision, receipt.decision)
            text = f"{word}: {plain_why(receipt)}"
            found.append(Stage(number, name, "out" if is_out else "done", _with(text, note)))
        elif deciding is None:
            found.append(Stage(number, name, "", "not recorded"))
        elif is_out and number > deciding:
            found.append(Stage(number, name, "todo", "did not see it"))
        else:
            found.append(Stage(number, name, "", _let_through(receipt, number, name)))
    return tuple(found)


def _let_through(receipt: StoredReceipt, number: int, name: str) -> str:
    if name == "score" and receipt.score_nano is not None:
        return "scored"
    if number == _BUDGET and receipt.pass_name != "budget":
        return "given room"
    if name == "layout" and receipt.section:
        return meaning(f"placed_{receipt.section}").lower()
    return {"render": "is in the payload", "record": "has its receipt"}.get(name, "let through")


def _with(text: str, note: str) -> str:
    return f"{text} ({note})" if note else text
