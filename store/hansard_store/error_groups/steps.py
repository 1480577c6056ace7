"""The row of each failed step: which group of errors it is of, and whether it counts.

An error counts once. It counts for the innermost tool or model call that failed on its way up;
where none did, for the innermost step. A failed step passes the error of a failed child on, and is
not counted, where its message is or holds that of the child, where it has none, or where it ended
within 50 ms of the child: nothing else was tried in between. Each attempt of a retry, and each of
several steps that fail beside one another, is an error of its own.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import Any, Final

import apsw

from hansard_compiler.canonical import canonical_bytes
from hansard_store.detection.rules import SubjectKind
from hansard_store.detection.signatures import MOST_CHARS, signature_of
from hansard_store.error_groups import changes
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.steps.flags import SpanFlag

# Part of every fingerprint. A change of what a fingerprint is made of, or of `signature_of`, needs
# another version: no group is taken for one of other errors.
FINGERPRINT_VERSION: Final = 1
HIDDEN: Final = SpanFlag.DUPLICATE | SpanFlag.PENDING | SpanFlag.FOLDED
TOOLS: Final = ("tool", "mcp")
MODELS: Final = ("llm", "embedding")
_CALLS: Final = str((*TOOLS, *MODELS))
_FINGERPRINT_BYTES: Final = 16
_NAME_CHARS: Final = 200
_TYPE_CHARS: Final = 120
_MESSAGE_CHARS: Final = 300
_FEWEST_CHARS: Final = 8  # of a message that is looked for within another
_PASSED_WITHIN_NS: Final = 50_000_000
_MOST_LEVELS: Final = 16  # of steps that an error is followed through
_MOST_BELOW: Final = 1_000  # steps that are looked at
_CUT: Final = "…"


def subject_of(
    role: str, tool: str | None, model: str | None, name: str
) -> tuple[SubjectKind, str]:
    """Return what an error is counted for: a tool, a model, or a step by its name."""
    if role in TOOLS and tool:
        return "tool", tool
    if role in MODELS:
        return "model", (model or name)[:_NAME_CHARS]
    return "step", name[:_NAME_CHARS]


@lru_cache(maxsize=2_048)
def fingerprint_of(key: bytes, kind: SubjectKind, subject: str, message: str) -> bytes:
    """Return the group of an error: keyed, as it outlives the words that it is made of."""
    parts = ["error", FINGERPRINT_VERSION, kind, subject, signature_of(message)]
    return hmac.digest(key, canonical_bytes(parts), hashlib.sha256)[:_FINGERPRINT_BYTES]


def _passes(walked: str, *, up: bool) -> str:
    """Return the SQL of whether, of two failed steps, the upper passes the lower one's error on."""
    reached, walker = (
        ("error_step.message", "next.end_ns"),
        (f"{walked}.message", f"{walked}.end_ns"),
    )
    (said, ended), (says, ends) = (walker, reached) if up else (reached, walker)
    return f"""(coalesce({says}, '') = '' OR {says} = {said}
      OR (length({said}) >= {_FEWEST_CHARS} AND instr({says}, rtrim({said}, '{_CUT}')) > 0)
      OR {ends} - {ended} BETWEEN 0 AND {_PASSED_WITHIN_NS})"""


_STEP: Final = """
  SELECT span.id, span.trace_id, span.span_id, span.parent_span_id, span.role, span.end_ns,
    error_step.message, 0
  FROM span JOIN error_step ON error_step.span = span.id WHERE span.id = :span
"""
_COLUMNS: Final = "(id, trace_id, span_id, parent_span_id, role, end_ns, message, depth)"


def _walk(name: str, *, up: bool, passing: bool) -> str:
    """Return a table of a failed step, and of the failed ones above or below it."""
    index = "span_identity" if up else "span_parent"
    joined = (
        f"next.span_id = {name}.parent_span_id" if up else f"next.parent_span_id = {name}.span_id"
    )
    condition = f" AND next.flags & {HIDDEN} = 0 AND {_passes(name, up=up)}" if passing else ""
    return f"""{name}{_COLUMNS} AS ({_STEP}
  UNION
  SELECT next.id, next.trace_id, next.span_id, next.parent_span_id, next.role, next.end_ns,
    error_step.message, {name}.depth + 1
  FROM {name} CROSS JOIN span AS next INDEXED BY {index}
    ON next.trace_id = {name}.trace_id AND {joined}
    CROSS JOIN error_step ON error_step.span = next.id
  WHERE {name}.depth < {_MOST_LEVELS}{condition}
  LIMIT {_MOST_BELOW})"""


# The failed steps whose place in this may follow from one: itself, those above it, those below.
_NEAR: Final = f"""
WITH RECURSIVE {_walk("above", up=True, passing=False)}, {_walk("below", up=False, passing=False)}
SELECT id FROM above UNION SELECT id FROM below
"""
_SETTLE: Final = f"""
WITH RECURSIVE {_walk("above", up=True, passing=True)}, {_walk("below", up=False, passing=True)},
  judged (counted) AS (
    SELECT span.flags & {HIDDEN} = 0 AND NOT EXISTS (
      SELECT 1 FROM below WHERE depth > 0 AND (role IN {_CALLS} OR span.role NOT IN {_CALLS}))
    AND (span.role IN {_CALLS} OR NOT EXISTS (
      SELECT 1 FROM above WHERE depth > 0 AND role IN {_CALLS}))
    FROM span WHERE span.id = :span)
UPDATE error_step SET counted = judged.counted FROM judged
WHERE error_step.span = :span AND error_step.counted <> judged.counted
"""
_ADD: Final = """
INSERT INTO error_step (span, run, time_ns, fingerprint, counted, error_type, message)
VALUES (?, ?, ?, ?, 0, ?, ?)
"""
_DROP: Final = "DELETE FROM error_step WHERE span = ?"
_COUNTED: Final = "SELECT 1 FROM error_step WHERE span = ? AND counted = 1"


def settle(connection: apsw.Connection, span: int) -> None:
    """Count a failed step, those above it and those below it, as they are now."""
    near: list[Any] = connection.execute(_NEAR, {"span": span}).fetchall()
    connection.executemany(_SETTLE, [{"span": one} for (one,) in near])


def message_of(made: SpanProjection) -> str:
    """Return what a failed step says, on one line, as far as a signature reads; "" nothing."""
    text = next((one.text for one in made.texts if one.field == "error"), "")
    return " ".join(text[: 2 * MOST_CHARS].split())[:MOST_CHARS]


class ErrorStepWriter:
    """Writes the rows of failed steps inside the caller's transaction; of others nothing."""

    def __init__(self, connection: apsw.Connection, key: bytes) -> None:
        self._connection = connection
        self._key = key
        self._added: dict[int, tuple[bytes, int]] = {}  # span -> its group, and when it failed

    def add(self, number: int, span: ReceivedSpan, made: SpanProjection, *, run: int) -> None:
        """Write the row of a step that failed, and count its neighbours again."""
        message = message_of(made)
        shown = (
            message if len(message) <= _MESSAGE_CHARS else f"{message[: _MESSAGE_CHARS - 1]}{_CUT}"
        )
        kind, subject = subject_of(made.role, made.tool_name, made.model, made.label or span.name)
        fingerprint = fingerprint_of(self._key, kind, subject, message)
        error_type = (made.error_type or "")[:_TYPE_CHARS] or None
        row = (number, run, span.sort_ns, fingerprint, error_type, shown or None)
        self._connection.execute(_ADD, row)
        settle(self._connection, number)
        self._added[number] = (fingerprint, max(span.end_ns or 0, span.sort_ns))

    def drop(self, number: int) -> None:
        """Remove the row of a step, whose span is still there; count its neighbours again."""
        near: list[Any] = self._connection.execute(_NEAR, {"span": number}).fetchall()
        self._connection.execute(_DROP, (number,))
        others = [{"span": one} for (one,) in near if one != number]
        self._connection.executemany(_SETTLE, others)
        self._added.pop(number, None)

    def reopen_groups(self, *, now_ns: int) -> None:
        """Open the closed groups again of which a step came that failed after they were closed."""
        for span, (fingerprint, failed_ns) in self._added.items():
            if changes.is_closed_before(self._connection, fingerprint, failed_ns) and (
                self._connection.execute(_COUNTED, (span,)).get is not None
            ):
                changes.reopen(self._connection, fingerprint, span=span, now_ns=now_ns)
