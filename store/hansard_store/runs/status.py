"""Status of runs and steps, as it is stored and as it is shown; and token sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.runs.projection import ROOT_FLAGS, RunState
from hansard_store.steps.flags import SpanFlag

# A span or run that is open and of which nothing came for so long gets no end any more (DESIGN §6).
SILENCE_NS = 15 * 60 * 1_000_000_000
# Until when a run that is open may be believed to be: by the keepalives of its processes, if any.
ALIVE_UNTIL = f"coalesce(run.alive_until_ns, run.last_received_ns + {SILENCE_NS})"
# Until when an approval of a run waits for somebody, noticed as over or not; 0 none.
WAITS_UNTIL = """coalesce((SELECT max(approval.expires_ns) FROM approval INDEXED BY approval_waits
  WHERE approval.trace_id = run.trace_id AND approval.status IN ('awaiting', 'revised')), 0)"""
# The same of one step: of the approval that it requested.
STEP_WAITS_UNTIL = """coalesce((SELECT max(approval.expires_ns)
  FROM approval INDEXED BY approval_step
  WHERE approval.trace_id = span.trace_id AND approval.span_id = span.span_id
    AND approval.status IN ('awaiting', 'revised')), 0)"""
# As plain integers: `&` with an enum costs a microsecond, a tree has 50,000 rows.
_TIME_HUGE, _ERROR = int(SpanFlag.TIME_HUGE), int(SpanFlag.ERROR)
_CANCELLED = int(SpanFlag.CANCELLED)


@dataclass(frozen=True, slots=True)
class TokenSums:
    """The five figures of a call; None = no call reported it. `input` includes cached tokens."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int:
        """Input and output; the three others are parts of these."""
        return (self.input or 0) + (self.output or 0)


def token_sums(columns: Sequence[int | None]) -> TokenSums | None:
    """Return the five token columns as one value, None when no call reported any."""
    if all(column is None for column in columns):
        return None
    return TokenSums(*columns)


def run_status(stored: str, *, alive_until_ns: int, now_ns: int, waits_until_ns: int = 0) -> str:
    """Return ok, error, open, no_end or blocked.

    An open run that nobody is alive for gets no end. A run is blocked while an approval of it waits
    for somebody, unless it failed.
    """
    if waits_until_ns > now_ns and stored not in ("error", "cancelled"):
        return "blocked"
    if stored == "open" and alive_until_ns < now_ns:
        return "no_end"
    return stored


def step_status(
    status_code: int,
    *,
    flags: int,
    end_ns: int | None,
    alive_until_ns: int,
    now_ns: int,
    waits_until_ns: int = 0,
) -> str:
    """Return ok, unset, error, cancelled, open, no_end or blocked.

    `alive_until_ns` is how long its process may be believed to live (ALIVE_UNTIL). A step is
    blocked while the approval that it requested waits for somebody (STEP_WAITS_UNTIL), whether the
    call waits with it or has returned; unless it failed.
    """
    if end_ns is not None or flags & _TIME_HUGE:
        if flags & _CANCELLED:
            return "cancelled"
        if flags & _ERROR or status_code == 2:
            return "error"
    if waits_until_ns > now_ns:
        return "blocked"
    if end_ns is None and not flags & _TIME_HUGE:
        return run_status("open", alive_until_ns=alive_until_ns, now_ns=now_ns)
    return "ok" if status_code == 1 else "unset"


def status_of_root(flags: int, *, is_open: bool) -> str:
    """Return the status that is stored of a run: that of its root span, by its flags."""
    if is_open:
        return "open"
    if flags & SpanFlag.CANCELLED:
        return "cancelled"
    return "error" if flags & SpanFlag.ERROR else "ok"


def take_root(run: RunState, number: int, span: ReceivedSpan, made: SpanProjection) -> None:
    """Give a run the name and status of its earliest root agent, else of its earliest root.

    Until a root has come, the earliest span stands in: a parent starts before its children.
    """
    rank = 2 if span.parent_span_id is not None else (0 if made.role == "agent" else 1)
    better = (rank, span.sort_ns) < (run.root_rank, run.root_sort_ns)
    if not better and run.root_span != number:
        return
    run.root_span, run.root_rank, run.root_sort_ns = number, rank, span.sort_ns
    run.name = made.label or span.name
    run.status = status_of_root(span.flags | made.flags, is_open=span.is_open)
    run.root_flags = made.flags & ROOT_FLAGS
