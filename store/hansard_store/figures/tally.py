"""Counting runs: every figure of some runs, computed from the runs, calls and spans themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import apsw

from hansard_compiler.model_names import undated
from hansard_store.figures.histograms import Histogram, add_text, bucket_of
from hansard_store.figures.records import Figures
from hansard_store.runs.status import token_sums
from hansard_store.steps.flags import SpanFlag

ALL: Final = ""  # the dimension of all runs; its key is "", too
MERGED_MODEL: Final = "merged_model"  # models without the date of their version
_MODELS: Final[Mapping[str, Callable[[str], str]]] = {"model": str, MERGED_MODEL: undated}
_TOKENS: Final = 5
_RUNS_AT_ONCE: Final = 5_000
_NS_PER_MS: Final = 1_000_000
_HIDDEN: Final = SpanFlag.DUPLICATE | SpanFlag.FOLDED | SpanFlag.PENDING

_WANTED: Final = "FROM json_each(:runs) AS wanted CROSS JOIN"
_RUNS: Final = f"""
SELECT run.id, run.started_ns, run.ended_ns, run.status, run.agent_name, run.user_id,
  run.model_calls, run.tool_calls, run.tokens_input, run.tokens_output, run.tokens_cache_read,
  run.tokens_cache_write, run.tokens_reasoning, run.cost_usd_nano
{_WANTED} run ON run.id = wanted.value
"""
_FACETS: Final = f"""
SELECT facet.run, facet.kind, facet.value
{_WANTED} run_facet AS facet INDEXED BY run_facet_run
  ON facet.run = wanted.value AND facet.kind = 'service'
"""
_TAGS: Final = f"""
SELECT DISTINCT run.id, 'tag', annotation.name
{_WANTED} run ON run.id = wanted.value
  CROSS JOIN annotation INDEXED BY annotation_run
    ON annotation.trace_id = run.trace_id AND annotation.kind = 'tag'
WHERE annotation.ended_ns IS NULL
"""
# The cost of a call is in a sum above it, where a step tells the sum of several calls.
_CALLS: Final = f"""
SELECT call.run, coalesce(call.response_model, call.request_model),
  call.tokens_input, call.tokens_output, call.tokens_cache_read, call.tokens_cache_write,
  call.tokens_reasoning, call.cost_usd_nano, call.first_token_ms, span.end_ns - span.start_ns,
  span.flags & {int(SpanFlag.ERROR)},
  EXISTS (SELECT 1 FROM usage_sum INDEXED BY usage_sum_run
          WHERE usage_sum.run = call.run AND usage_sum.counted = 1)
{_WANTED} call INDEXED BY call_run ON call.run = wanted.value AND call.counted = 1
CROSS JOIN span ON span.id = call.span
"""
_TOOLS: Final = f"""
SELECT run.id, coalesce(span.tool_name, span.label, span.name), span.end_ns - span.start_ns,
  span.flags & {int(SpanFlag.ERROR)}
{_WANTED} run ON run.id = wanted.value
CROSS JOIN span INDEXED BY span_identity ON span.trace_id = run.trace_id
WHERE span.role = 'tool' AND NOT span.flags & {int(_HIDDEN)}
"""

Slot = int
Place = tuple[str, Slot, str]  # dimension, start of the step, key


@dataclass(slots=True)
class Tally:
    """Figures while they are counted."""

    runs: int = 0
    failed_runs: int = 0
    model_calls: int = 0
    failed_calls: int = 0
    tool_calls: int = 0
    failed_tools: int = 0
    tokens: list[int | None] = field(default_factory=lambda: [None] * _TOKENS)
    cost_usd_nano: int | None = None
    unpriced_calls: int = 0
    run_latency: dict[int, int] = field(default_factory=dict)
    call_latency: dict[int, int] = field(default_factory=dict)
    tool_latency: dict[int, int] = field(default_factory=dict)
    first_token: dict[int, int] = field(default_factory=dict)

    def figures(self) -> Figures:
        """Return them as they are now."""
        return Figures(
            self.runs,
            self.failed_runs,
            self.model_calls,
            self.failed_calls,
            self.tool_calls,
            self.failed_tools,
            token_sums(self.tokens),
            self.cost_usd_nano,
            self.unpriced_calls,
            *(Histogram(one) for one in self.histograms()),
        )

    def histograms(self) -> tuple[dict[int, int], ...]:
        return self.run_latency, self.call_latency, self.tool_latency, self.first_token

    def add_sums(self, tokens: Sequence[int | None], cost_usd_nano: int | None) -> None:
        """Add tokens and cost that something reports."""
        for number, count in enumerate(tokens):
            if count is not None:
                self.tokens[number] = (self.tokens[number] or 0) + count
        if cost_usd_nano is not None:
            self.cost_usd_nano = (self.cost_usd_nano or 0) + cost_usd_nano

    def add_stored(self, row: Sequence[Any], *, with_latency: bool = True) -> None:
        """Add a stored row: six counts, five sums of tokens, cost, unpriced, four histograms."""
        self.runs += row[0]
        self.failed_runs += row[1]
        self.model_calls += row[2]
        self.failed_calls += row[3]
        self.tool_calls += row[4]
        self.failed_tools += row[5]
        self.add_sums(row[6:11], row[11])
        self.unpriced_calls += row[12]
        if with_latency:
            for counts, text in zip(self.histograms(), row[13:17], strict=True):
                add_text(counts, text)

    def stored(self) -> tuple[Any, ...]:
        """Return the values of a stored row, in the order that `add_stored` takes them in."""
        return (
            self.runs,
            self.failed_runs,
            self.model_calls,
            self.failed_calls,
            self.tool_calls,
            self.failed_tools,
            *self.tokens,
            self.cost_usd_nano,
            self.unpriced_calls,
            *(Histogram(one).text() for one in self.histograms()),
        )


class Tallies(dict[Place, Tally]):
    """Tallies by dimension, step and key; one that is missing is empty."""

    def __missing__(self, place: Place) -> Tally:
        made = self[place] = Tally()
        return made


@dataclass(slots=True)
class _Run:
    """A run, and the tallies of dimensions whose values it has."""

    slot: Slot
    tallies: list[Tally]
    models: set[tuple[str, str]] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)


class _Counter:
    """Counts the runs of one request; `dimensions` says which tallies are made beside the total."""

    def __init__(
        self,
        connection: apsw.Connection,
        tallies: Tallies,
        *,
        step_ns: int,
        dimensions: Collection[str],
    ) -> None:
        self._connection = connection
        self._tallies = tallies
        self._step_ns = step_ns
        self._dimensions = frozenset(dimensions)

    def add(self, runs: Sequence[int]) -> None:
        """Count some runs, by their numbers."""
        wanted = {"runs": json.dumps(runs)}
        found = self._add_runs(wanted)
        self._add_calls(found, wanted)
        self._add_tools(found, wanted)

    def _add_runs(self, wanted: dict[str, str]) -> dict[int, _Run]:
        values = self._values(wanted)
        found: dict[int, _Run] = {}
        for row in self._connection.execute(_RUNS, wanted):
            number, started_ns, ended_ns, status, agent, user, calls, tools, *sums = row
            slot = started_ns // self._step_ns * self._step_ns
            places: list[Place] = [(ALL, slot, ALL)]
            if "agent" in self._dimensions:
                places.append(("agent", slot, agent or ""))
            if "user" in self._dimensions:
                places.append(("user", slot, user or ""))
            for dimension in ("service", "tag"):
                if dimension in self._dimensions:
                    keys = values.get((number, dimension), ("",))
                    places += [(dimension, slot, key) for key in keys]
            tallies = [self._tallies[place] for place in places]
            bucket = None if status == "open" else bucket_of(ended_ns - started_ns)
            for tally in tallies:
                tally.runs += 1
                tally.failed_runs += status == "error"
                tally.model_calls += calls
                tally.tool_calls += tools
                tally.add_sums(sums[:_TOKENS], sums[_TOKENS])
                _count(tally.run_latency, bucket)
            found[number] = _Run(slot, tallies)
        return found

    def _values(self, wanted: dict[str, str]) -> dict[tuple[int, str], list[str]]:
        """Return the services and tags of runs."""
        values: dict[tuple[int, str], list[str]] = {}
        for dimension, sql in (("service", _FACETS), ("tag", _TAGS)):
            if dimension in self._dimensions:
                for number, kind, value in self._connection.execute(sql, wanted):
                    values.setdefault((number, kind), []).append(value)
        return values

    def _add_calls(self, found: dict[int, _Run], wanted: dict[str, str]) -> None:
        names = [(one, name) for one, name in _MODELS.items() if one in self._dimensions]
        for row in self._connection.execute(_CALLS, wanted):
            number, model, *sums, first_token_ms, length_ns, is_failed, has_sum = row
            run = found.get(number)
            if run is None:
                continue
            tallies = run.tallies
            cost = sums[_TOKENS]
            for dimension, name in names:
                key = name(model) if model else ""
                tally = self._tallies[dimension, run.slot, key]
                if (dimension, key) not in run.models:
                    run.models.add((dimension, key))
                    tally.runs += 1
                tally.model_calls += 1
                tally.add_sums(sums[:_TOKENS], cost)
                tallies = [*tallies, tally]
            latency = None if length_ns is None else bucket_of(length_ns)
            first = None if first_token_ms is None else bucket_of(int(first_token_ms * _NS_PER_MS))
            is_unpriced = cost is None and not is_failed and not has_sum
            for tally in tallies:
                tally.failed_calls += bool(is_failed)
                tally.unpriced_calls += is_unpriced
                _count(tally.call_latency, latency)
                _count(tally.first_token, first)

    def _add_tools(self, found: dict[int, _Run], wanted: dict[str, str]) -> None:
        by_tool = "tool" in self._dimensions
        for number, name, length_ns, is_failed in self._connection.execute(_TOOLS, wanted):
            run = found.get(number)
            if run is None:
                continue
            tallies = run.tallies
            if by_tool:
                key = name or ""
                tally = self._tallies["tool", run.slot, key]
                if key not in run.tools:
                    run.tools.add(key)
                    tally.runs += 1
                tally.tool_calls += 1
                tallies = [*tallies, tally]
            latency = None if length_ns is None else bucket_of(length_ns)
            for tally in tallies:
                tally.failed_tools += bool(is_failed)
                _count(tally.tool_latency, latency)


def count_runs_into(
    connection: apsw.Connection,
    tallies: Tallies,
    runs: Iterator[int],
    *,
    step_ns: int,
    dimensions: Collection[str],
) -> None:
    """Count runs, by their numbers, into tallies of their total and of dimensions.

    Reads every run, its counted model calls and its spans: 5 to 10 µs a span.
    """
    counter = _Counter(connection, tallies, step_ns=step_ns, dimensions=dimensions)
    while some := list(islice(runs, _RUNS_AT_ONCE)):
        counter.add(some)


def _count(counts: dict[int, int], bucket: int | None) -> None:
    if bucket is not None:
        counts[bucket] = counts.get(bucket, 0) + 1
