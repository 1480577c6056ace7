"""Policy checks that a span tells: one a row, column by column (DESIGN §9).

Whoever sends spans can send any columns: what is missing or of the wrong type is left empty, and
nothing of it fails. A check without an effect is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard_collector.dialects.engine.item_views import SpanView
from hansard_store.policy.checks import CheckRow

SPAN_NAME = "hansard.policy.check"
MOST_CHECKS = 4_000  # as many as our SDK writes into one span
_POLICY = "hansard.policy."
_CHARS = 512
_MOST_NS = (1 << 63) - 1


def checks_of(view: SpanView) -> tuple[CheckRow, ...]:
    """Return the checks of a span of our name; none of any other. Never raises."""
    attributes = view.attributes
    if view.name != SPAN_NAME:
        return ()
    effects = _column(attributes.get(_POLICY + "effects"))
    names = ("actions", "subjects", "rule_ids", "rule_sets", "versions", "reasons", "obligations")
    columns = {name: _column(attributes.get(_POLICY + name)) for name in names}
    policy_hash = _text(attributes.get(_POLICY + "hash")) or ""

    def cell(name: str, at: int) -> str | None:
        column = columns[name]
        return _text(column[at]) if at < len(column) else None

    rows = []
    for at, effect in enumerate(effects[:MOST_CHECKS]):
        told = _text(effect)
        if told is None:
            continue
        rows.append(
            CheckRow(
                time_ns=min(view.start_ns, _MOST_NS),
                action=cell("actions", at) or "",
                effect=told,
                reason_code=cell("reasons", at) or "",
                reason=None,
                rule_id=cell("rule_ids", at),
                rule_set=cell("rule_sets", at),
                rule_version=cell("versions", at),
                rules=(),
                obligations=[one for one in (cell("obligations", at) or "").split(",") if one],
                agent=None,
                subject=cell("subjects", at),
                inputs={},
                policy_hash=policy_hash,
            )
        )
    return tuple(rows)


def _column(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value[:_CHARS] if isinstance(value, str) and value else None
