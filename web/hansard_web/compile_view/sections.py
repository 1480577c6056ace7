"""The parts of a prompt with their hashes, beside those of the compile before."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_store.compilations.queries import Compilation
from hansard_web.compile_view.labels import SECTIONS, SWATCHES
from hansard_web.compile_view.record import Record


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A part of the prompt; `same` None: there is nothing to compare it with."""

    label: str
    swatch: str
    items: int
    tokens: int
    hash: str  # "" where it is not told
    same: bool | None


def section_rows(record: Record, before: Compilation | None) -> tuple[SectionRow, ...]:
    """Return the parts of the prompt; hashes come from the stored result, else from the span."""
    row = record.compilation.row
    told = {section.name: section.hash for section in record.result.sections}
    hashes = {
        "stable_prefix": row.stable_prefix_hash or told.get("stable_prefix", ""),
        "task_context": told.get("task_context", ""),
        "volatile_suffix": row.volatile_suffix_hash or told.get("volatile_suffix", ""),
    }
    earlier = {
        "stable_prefix": before.row.stable_prefix_hash if before else None,
        "volatile_suffix": before.row.volatile_suffix_hash if before else None,
    }
    found = []
    for name, label in SECTIONS.items():
        of_it = [
            one for one in record.receipts if one.section == name and one.decision != "exclude"
        ]
        then = earlier.get(name)
        found.append(
            SectionRow(
                label=label,
                swatch=SWATCHES[name],
                items=len(of_it),
                tokens=sum(one.tokens_after or 0 for one in of_it),
                hash=hashes[name],
                same=None if then is None or not hashes[name] else then == hashes[name],
            )
        )
    return tuple(found)
