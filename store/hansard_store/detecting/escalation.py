"""How often commands draw a warning before they run: too often, or almost never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import apsw

from hansard_store.detecting.rules import Finding, Occurrence, Rule

COMPONENT: Final = "escalation"
_HOOK: Final = "hook"  # the component that writes a diagnostic for each command it checks
# Newest first, and no further back than the window: numbers of diagnostics rise with time.
_CHECKS: Final = """
SELECT time_ns, level FROM diagnostic INDEXED BY diagnostic_component
WHERE component = ? ORDER BY id DESC
"""


def hook_rates(connection: apsw.Connection, since_ns: int) -> tuple[int, int]:
    """Return how many commands were checked since a time, and how many drew a warning."""
    checked = warned = 0
    rows: Any = connection.execute(_CHECKS, (_HOOK,))
    for time_ns, level in rows:
        if time_ns <= since_ns:
            break
        checked += 1
        warned += level == "warning"
    return checked, warned


def frequent_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is at the threshold or above it."""
    checked, warned = hook_rates(connection, now_ns - rule.window_ns)
    if checked >= max(rule.least, 1) and 100 * warned >= rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def rare_warnings(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield that the share of warnings is below the threshold."""
    checked, warned = hook_rates(connection, now_ns - rule.window_ns)
    if checked >= max(rule.least, 1) and 100 * warned < rule.threshold * checked:
        yield _finding(rule, checked, warned, now_ns=now_ns)


def _finding(rule: Rule, checked: int, warned: int, *, now_ns: int) -> Finding:
    at_ns = now_ns - now_ns % rule.window_ns  # counts once in a window
    said = f"{warned:,} of {checked:,} checked commands drew a warning"
    found = Occurrence(at_ns, at_ns, "figure", said)
    return Finding(rule, "component", COMPONENT, "", [found], opens_at=1)
