"""What a run or a step claimed, and what the record shows: a part of their pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.evaluation.words import evidence_words, normal_words
from hansard_store.evaluation.verdicts import VerdictRow, memory_ids, verdicts_of_run
from hansard_web.ui.format import plural

_MOST: Final = 200
_MOST_SHOWN: Final = 3  # contradictions that stand open at the top of a run
_LABELS: Final = {
    "contradicted": "contradicted",
    "confirmed": "confirmed",
    "claimed": "without evidence",
    "unknown": "outcome unknown",
}
# Marks of the sprite that exist; the word beside it says the same.
ICONS: Final = {
    "contradicted": "error",
    "confirmed": "verified",
    "claimed": "missing",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """One claim. Its sentence is hostile text, as everything recorded is."""

    row: VerdictRow
    label: str
    icon: str
    verb: str  # said, wrote
    claim: str  # in Hansard's own words
    record: str  # what the record shows
    correction_href: str


@dataclass(frozen=True, slots=True)
class ClaimPanel:
    """`open` are the contradictions, always in sight; `more` is behind a summary."""

    say: str
    open: tuple[ClaimLine, ...]
    more: tuple[ClaimLine, ...]


def panel_of_run(connection: apsw.Connection, run_id: str) -> ClaimPanel | None:
    """Return the panel of a run; None where it claimed nothing that was understood."""
    return _panel(connection, verdicts_of_run(connection, bytes.fromhex(run_id), limit=_MOST))


def panel_of_step(connection: apsw.Connection, run_id: str, step_id: str) -> ClaimPanel | None:
    """Return the panel of a step; None where it claimed nothing that was understood."""
    found = verdicts_of_run(connection, bytes.fromhex(run_id), limit=_MOST)
    plain = step_id.removesuffix(".server")
    return _panel(connection, [one for one in found if one.step_id == plain], is_step=True)


def _panel(
    connection: apsw.Connection, rows: Sequence[VerdictRow], *, is_step: bool = False
) -> ClaimPanel | None:
    if not rows:
        return None
    names = memory_ids(connection, rows)
    lines = [_line(one, names) for one in rows]
    bad = [one for one in lines if one.row.verdict == "contradicted"]
    shown = bad if is_step else bad[:_MOST_SHOWN]
    rest = [one for one in lines if one not in shown]
    counts: Counter[str] = Counter(one.verdict for one in rows)
    counts_text = [f"{counts[name]:,} {word}" for name, word in _LABELS.items() if counts[name]]
    return ClaimPanel(
        say=f"{plural(len(rows), 'claim')}: {', '.join(counts_text)}",
        open=tuple(shown),
        more=tuple(rest),
    )


def _line(row: VerdictRow, names: dict[int, str]) -> ClaimLine:
    correction = None if row.correction is None else names.get(row.correction)
    return ClaimLine(
        row=row,
        label=_LABELS[row.verdict],
        icon=ICONS[row.verdict],
        verb="wrote to memory" if row.source == "memory" else "claimed",
        claim=normal_words(row),
        record=evidence_words(row),
        correction_href=f"/memory/{correction}" if correction else "",
    )
