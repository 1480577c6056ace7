"""How often commands draw a warning before they run: too often, or almost never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

from hansard_store.detection.rules import Finding, Occurrence, Rule
from hansard_store.heartbeat.hook_rates import hook_rates

COMPONENT: Final = "escalation"


def frequent_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is at the threshold or above it."""
    rates = hook_rates(connection, now_ns - rule.window_ns, before_ns=now_ns + 1)
    checked, warned = rates.evaluated, rates.warned
    if checked >= max(rule.least, 1) and 100 * warned >= rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def rare_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is below the threshold."""
    rates = hook_rates(connection, now_ns - rule.window_ns, before_ns=now_ns + 1)
    checked, warned = rates.evaluated, rates.warned
    if checked >= max(rule.least, 1) and 100 * warned < rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def _finding(rule: Rule, checked: int, warned: int, *, now_ns: int) -> Finding:
    at_ns = now_ns - now_ns % rule.window_ns  # counts once in a window
    said = f"{warned:,} of {checked:,} checked commands drew a warning"
    found = Occurrence(at_ns, at_ns, "figure", said)
    return Finding(rule, "component", COMPONENT, "", [found], opens_at=1)
