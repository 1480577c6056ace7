"""A stored report of a span that another one replaces, and what its run holds of it.

Counts and sums of a run are taken back exactly. Its times, its root and its facts (agent, session,
user, first input ...) are the best of what its spans report, and which span is second is not
stored; nor is why a step is marked as one above a model call. Where the new report holds less of
these than the old one, the run is stale: it has to be derived again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.runs.projection import Fact, RunState, RunWriter
from hansard_store.steps.flags import SpanFlag

_OLD = """
SELECT sort_ns, end_ns, flags, parent_span_id,
  coalesce(tokens_input, tokens_output, tokens_cache_read, tokens_cache_write, tokens_reasoning)
    IS NOT NULL,
  agent_name, model, tool_name, resource.service_name
FROM span JOIN resource ON resource.id = span.resource WHERE span.id = ?
"""
_FACETS: Final = ("agent", "model", "tool", "service")  # the last columns of _OLD


@dataclass(frozen=True, slots=True)
class ReplacedReport:
    """What a run held of a span's report before another one replaced it."""

    span: int
    sort_ns: int
    end_ns: int
    times_rank: int
    parent_span_id: bytes | None
    has_usage: bool
    is_first: bool  # its run starts with it
    is_last: bool  # its run ends with it
    root: tuple[int, int] | None  # where its run is named after it: how good a root it was
    facts: Mapping[Fact, int]  # those that the run has of it, with the times they are ordered by
    facets: tuple[str | None, ...]

    def is_covered_by(self, span: ReceivedSpan, run: RunState, *, has_usage: bool) -> bool:
        """Return whether a new report, already derived, holds at least what this one held."""
        if span.parent_span_id != self.parent_span_id or has_usage < self.has_usage:
            return False
        end_ns = max(span.end_ns or 0, span.sort_ns)
        rank = rank_of_times(span.flags)
        if (self.is_first or self.is_last) and rank > self.times_rank:
            return False
        if (self.is_first and span.sort_ns > self.sort_ns) or (
            self.is_last and end_ns < self.end_ns
        ):
            return False
        if self.root is not None and (run.root_rank, run.root_sort_ns) > self.root:
            return False
        return all(run.holds(fact, self.span, at_ns=at_ns) for fact, at_ns in self.facts.items())

    def lost_facets(self, now: Sequence[str | None]) -> Iterator[tuple[str, str]]:
        """Yield the values for narrowing lists that the new report does not have any more."""
        for kind, was, is_now in zip(_FACETS, self.facets, now, strict=True):
            if was and was != is_now:
                yield kind, was


def read_replaced(connection: apsw.Connection, run: RunState, span: int) -> ReplacedReport:
    """Return what a run holds of a stored span that is about to be replaced."""
    sort_ns, ended_ns, flags, parent, has_usage, *facets = _read(connection, span)
    end_ns = max(ended_ns or 0, sort_ns)
    rank = rank_of_times(flags)
    is_of_run = rank == run.times_rank
    return ReplacedReport(
        span=span,
        sort_ns=sort_ns,
        end_ns=end_ns,
        times_rank=rank,
        parent_span_id=parent,
        has_usage=bool(has_usage),
        is_first=is_of_run and sort_ns == run.started_ns,
        is_last=is_of_run and end_ns == run.ended_ns,
        root=(run.root_rank, run.root_sort_ns) if run.root_span == span else None,
        facts=run.facts_of(span),
        facets=tuple(facets),
    )


def settle_replaced(
    connection: apsw.Connection,
    runs: RunWriter,
    run: RunState,
    *,
    old: ReplacedReport,
    new: ReceivedSpan,
) -> None:
    """Mark a run as stale, and values of it that may be gone, after a report was replaced."""
    *_, has_usage, agent, model, tool, service = _read(connection, old.span)
    if not old.is_covered_by(new, run, has_usage=bool(has_usage)):
        run.is_stale = True
    for kind, value in old.lost_facets((agent, model, tool, service)):
        runs.may_lose_facet(run, kind, value)


def rank_of_times(flags: int) -> int:
    """Return how good a span's times are: odd ones count only while there are no others."""
    return 1 if flags & SpanFlag.TIME_ODD else 0


def _read(connection: apsw.Connection, span: int) -> tuple[Any, ...]:
    found: Any = connection.execute(_OLD, (span,)).fetchone()
    return tuple(found)
