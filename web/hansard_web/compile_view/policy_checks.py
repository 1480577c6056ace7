"""The policy checks of one compile, as the spans below it tell them, in arrays of equal length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_store.compilations.queries import Compilation, policy_spans_of
from hansard_store.compilations.receipts import Receipt
from hansard_web.compile_view.labels import DECISIONS
from hansard_web.compile_view.rows import receipts_href
from hansard_web.ui.format import plural

_MOST: Final = 50  # of those that are shown one by one
_EFFECTS: Final[Mapping[str, str]] = {
    "allow": "allowed",
    "deny": "denied",
    "redact": "redacted",
    "require_approval": "asked for approval",
    "require_receipt": "asked for a receipt",
}
_REASONS: Final[Mapping[str, str]] = {
    "rule": "",
    "default": "by default: no rule fitted",
    "condition_error": "a condition could not be judged, which denies",
}
_PREFIX: Final = "hansard.policy."


@dataclass(frozen=True, slots=True)
class Check:
    """One check that did more than allow."""

    effect: str
    word: str
    subject: str
    rule: str
    href: str  # receipts of the rule
    say: str


@dataclass(frozen=True, slots=True)
class Checks:
    """What policy said during a compile."""

    say: str
    rows: tuple[Check, ...]
    left_out: int


def checks_of(connection: apsw.Connection, made: Compilation, receipts: list[Receipt]) -> Checks:
    """Return the checks of a compile; where no span tells them, what its receipts show."""
    told = [
        one
        for span in policy_spans_of(connection, made)
        for one in _told(read_step(connection, span).view.attributes)
    ]
    if not told:
        return _from_receipts(receipts)
    counts = Counter(effect for effect, *_ in told)
    parts = ", ".join(f"{number:,} {_EFFECTS.get(name, name)}" for name, number in counts.items())
    rows = [_row(*one) for one in told if one[0] != "allow"]
    return Checks(
        f"{plural(len(told), 'check')}: {parts}.", tuple(rows[:_MOST]), max(len(rows) - _MOST, 0)
    )


def _told(attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield effect, subject, rule, version and reason of each check that a span tells."""
    effects = _texts(attributes, "effects")
    columns = [_texts(attributes, name) for name in ("subjects", "rule_ids", "versions", "reasons")]
    for at, effect in enumerate(effects):
        subject, rule, version, reason = (
            column[at] if len(column) == len(effects) else "" for column in columns
        )
        yield effect, subject, rule, version, reason


def _texts(attributes: Mapping[str, Any], name: str) -> list[str]:
    value = attributes.get(_PREFIX + name)
    return [str(one) for one in value] if isinstance(value, list) else []


def _row(effect: str, subject: str, rule: str, version: str, reason: str) -> Check:
    return Check(
        effect=effect,
        word=_EFFECTS.get(effect, effect),
        subject=subject,
        rule=f"{rule} v{version}" if rule and version else rule,
        href=receipts_href(rule=rule) if rule else "",
        say=_REASONS.get(reason, reason),
    )


def _from_receipts(receipts: list[Receipt]) -> Checks:
    held: dict[str, Counter[str]] = {}
    for one in receipts:
        for rule in one.rules:
            held.setdefault(rule, Counter())[one.decision] += 1
    rows = [
        Check("", "held", "", rule, receipts_href(rule=rule), _said(counts))
        for rule, counts in held.items()
    ]
    say = "No check was told; these rules stand in the receipts." if rows else ""
    return Checks(say, tuple(rows[:_MOST]), max(len(rows) - _MOST, 0))


def _said(counts: Counter[str]) -> str:
    return ", ".join(
        f"{plural(number, 'item')} {DECISIONS.get(name, name)}" for name, number in counts.items()
    )
