"""Diagnostics: what components of Hansard report of their own work, in one log that SQL can query.

Tools of agents are in the same view, `diagnostics`, by their spans; rows here are of Hansard's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import apsw

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.thread_connections import OwnConnections
from hansard_store.database.transactions import transaction

Level = Literal["info", "warning", "error"]
MOST_CHARS: Final = 2_000
MOST_ROWS: Final = 100_000  # of more, the oldest are removed

_ADD: Final = """
INSERT INTO diagnostic (time_ns, component, level, signature, message, trace_id, span_id)
VALUES (:time_ns, :component, :level, :signature, :message, :trace_id, :span_id)
"""
_PRUNE: Final = "DELETE FROM diagnostic WHERE id <= (SELECT max(id) FROM diagnostic) - ?"
_LIST: Final = """
SELECT id, time_ns, component, level, signature, message, trace_id, span_id FROM diagnostic
WHERE id < :before AND time_ns >= :since ORDER BY id DESC LIMIT :limit
"""
_LIST_OF: Final = """
SELECT id, time_ns, component, level, signature, message, trace_id, span_id
FROM diagnostic INDEXED BY diagnostic_component
WHERE component = :component AND id < :before AND time_ns >= :since ORDER BY id DESC LIMIT :limit
"""
_ABOVE_ALL: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One line of the log. Times are Unix nanoseconds."""

    id: int
    time_ns: int
    component: str
    level: Level
    signature: str
    message: str
    run_id: str | None
    step_id: str | None


def list_diagnostics(
    connection: apsw.Connection,
    *,
    component: str | None = None,
    since_ns: int = 0,
    limit: int = 100,
    before: int = _ABOVE_ALL,
) -> list[Diagnostic]:
    """Return diagnostics, the newest first; `before` is the id of the last one seen."""
    given = {"component": component, "since": since_ns, "limit": limit, "before": before}
    sql = _LIST if component is None else _LIST_OF
    return [_diagnostic(row) for row in connection.execute(sql, given)]


class Line(NamedTuple):
    """A diagnostic that is to be written."""

    component: str
    level: Level
    message: str
    signature: str = ""
    run_id: str | None = None
    step_id: str | None = None


class DiagnosticLog:
    """Writes diagnostics; each call is a transaction on the caller's thread."""

    def __init__(
        self,
        folder: DataFolder,
        mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._redactor = None if mode is RetentionMode.FULL_PAYLOADS else Redactor(folder.key())
        self._connections = OwnConnections(folder)
        self._clock = clock

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def write(
        self,
        component: str,
        level: Level,
        message: str,
        *,
        signature: str = "",
        run_id: str | None = None,
        step_id: str | None = None,
    ) -> None:
        """Add a line; secrets are removed from its message. Raises StoreBusyError, StoreError."""
        self.write_all([Line(component, level, message, signature, run_id, step_id)])

    def write_all(self, lines: Iterable[Line]) -> None:
        """Add lines in one transaction, as `write` does."""
        rows = [self._row(one) for one in lines]
        connection = self._connections.get()
        with transaction(connection):
            connection.executemany(_ADD, rows)
            connection.execute(_PRUNE, (MOST_ROWS,))

    def _row(self, line: Line) -> dict[str, Any]:
        message, run_id, step_id = line.message, line.run_id, line.step_id
        clean = message if self._redactor is None else self._redactor.redact_text(message).text
        run = run_id or (step_id[:32] if step_id else None)
        return {
            "time_ns": self._clock(),
            "component": line.component[:200],
            "level": line.level,
            "signature": line.signature[:MOST_CHARS],
            "message": clean[:MOST_CHARS],
            "trace_id": bytes.fromhex(run) if run else None,
            "span_id": bytes.fromhex(step_id[33:49]) if step_id else None,
        }


def _diagnostic(row: Any) -> Diagnostic:
    number, time_ns, component, level, signature, message, trace_id, span_id = row
    run_id = None if trace_id is None else trace_id.hex()
    step_id = None if span_id is None else f"{run_id}-{span_id.hex()}"
    return Diagnostic(number, time_ns, component, level, signature, message, run_id, step_id)
