"""The table reduced to what a span has, remembered for all spans with the same keys.

Spans of one instrumentor carry the same keys, so the look-up of some 250 sources is done once a
set of keys and not once a span. Flat keys (`llm.input_messages.7.message.role`) count as their
prefix only: a longer conversation is not another set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from hansard_collector.dialects import claude_code
from hansard_collector.dialects.content import failure, prompts
from hansard_collector.dialects.engine import registry
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.sources import FieldSource
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.mappings import table

# A field and its sources that are present: evidence, reader, name of the source.
_Candidate: TypeAlias = tuple[str, Callable[[Reading, str], Any], str]
Fields: TypeAlias = tuple[tuple[str, tuple[_Candidate, ...]], ...]

_MOST_PLANS = 4096  # a few hundred in practice; forgotten all at once when a sender makes them up
_HEAD = 3  # letters by which a key finds the families it may belong to


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """The present sources of each group of fields, and the dialects they belong to."""

    dialect: str
    marks: frozenset[str]
    groups: Mapping[str, Fields]

    def group(self, name: str) -> Fields:
        return self.groups.get(name, ())


def _all_sources() -> Iterable[FieldSource]:
    for fields in table.GROUPS.values():
        for sources in fields.values():
            yield from sources


_EVIDENCE = frozenset(source.evidence for source in _all_sources())
_KEYS = frozenset(
    evidence
    for evidence in _EVIDENCE
    if not evidence.startswith(("event ", "span ", "* ")) and not evidence.endswith((".", ":"))
)
_EVENTS = {
    evidence.removeprefix("event "): evidence
    for evidence in _EVIDENCE
    if evidence.startswith("event ")
}
# Of the log records of a span all others say nothing of it: readers ask for no other names.
READ_EVENTS = frozenset(_EVENTS) | failure.EVENTS | claude_code.EVENTS
_SPANS = tuple(
    {evidence.removeprefix("span ") for evidence in _EVIDENCE if evidence.startswith("span ")}
    | {name for dialect in registry.DIALECTS for name in dialect.spans}
)


def _families_by_head() -> dict[str, tuple[str, ...]]:
    prefixes = {evidence for evidence in _EVIDENCE if evidence.endswith((".", ":"))}
    for dialect in registry.DIALECTS:
        prefixes.update(key for key in dialect.keys if key.endswith((".", ":")))
    heads: dict[str, tuple[str, ...]] = {}
    for prefix in sorted(prefixes, key=len, reverse=True):  # the longest that fits is the one
        heads[prefix[:_HEAD]] = (*heads.get(prefix[:_HEAD], ()), prefix)
    return heads


_FAMILIES = _families_by_head()
_MOST_NAMES = 4096  # of spans
_MOST_KEYS = 50_000  # flattened conversations make up a key a message and field
_UNKNOWN_FAMILY = ""
_family_of: dict[str, str | None] = {}  # keys repeat from span to span
_plans: dict[tuple[object, ...], ReadingPlan] = {}


def plan_for(view: SpanView) -> tuple[ReadingPlan, dict[str, list[str]]]:
    """Return the plan for a span, and its keys that belong to families, by prefix."""
    attributes = view.attributes
    known = [key for key in attributes if key in _KEYS]
    families = _families(attributes) if len(known) < len(attributes) else {}
    named = _named_evidence(view)
    service = view.resource.get("service.name")
    found = (
        view.scope_name,
        service if isinstance(service, str) else None,
        *known,
        *families,
        *named,
    )
    plan = _plans.get(found)
    if plan is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans[found] = _make_plan(view, evidence=(*known, *families, *named))
    return plan, families


def adds_only(plan: ReadingPlan, before: ReadingPlan, *, evidence: Sequence[str]) -> bool:
    """Return whether a plan differs from another by nothing but sources of some evidence."""
    if (plan.dialect, plan.marks) != (before.dialect, before.marks):
        return False
    return _without(plan, evidence) == _without(before, evidence)


def _without(plan: ReadingPlan, evidence: Sequence[str]) -> dict[tuple[str, str], list[_Candidate]]:
    """Return the candidates of each field that are of other evidence."""
    found = {
        (group, name): [one for one in candidates if one[0] not in evidence]
        for group, fields in plan.groups.items()
        for name, candidates in fields
    }
    return {field: candidates for field, candidates in found.items() if candidates}


def _families(attributes: Iterable[str]) -> dict[str, list[str]]:
    """Group the keys that the table does not name by the longest prefix that it does, or an end."""
    families: dict[str, list[str]] = {}
    for key in attributes:
        if key in _KEYS:
            continue
        prefix = _family_of.get(key, _UNKNOWN_FAMILY)
        if prefix is _UNKNOWN_FAMILY:
            prefix = _remember_family(key)
        if prefix is not None:
            family = families.get(prefix)
            if family is None:
                families[prefix] = [key]
            else:
                family.append(key)
    return families


def _remember_family(key: str) -> str | None:
    if len(_family_of) >= _MOST_KEYS:
        _family_of.clear()
    found = next((p for p in _FAMILIES.get(key[:_HEAD], ()) if key.startswith(p)), None)
    if found is None:
        found = next((name for name, ends in prompts.ENDS.items() if key.endswith(ends)), None)
    _family_of[key] = found
    return found


def _named_evidence(view: SpanView) -> list[str]:
    named: list[str] = []
    if view.events:
        named += {_EVENTS[event.name] for event in view.events if event.name in _EVENTS}
    if view.logs:
        named.append(prompts.LOGS)
        named += {_EVENTS[log.event_name] for log in view.logs if log.event_name in _EVENTS}
    if view.name.startswith(_SPANS):
        named += _prefixes_of(view.name)
    return sorted(named)


@lru_cache(_MOST_NAMES)
def _prefixes_of(span_name: str) -> tuple[str, ...]:
    return tuple(f"span {prefix}" for prefix in _SPANS if span_name.startswith(prefix))


def _make_plan(view: SpanView, *, evidence: Sequence[str]) -> ReadingPlan:
    marks = registry.dialects_of(
        scope_name=view.scope_name,
        service_name=view.resource.get("service.name"),
        span_name=view.name,
        keys=evidence,
    )
    present = frozenset(evidence)
    groups = {
        group: fields
        for group, rows in table.GROUPS.items()
        if (fields := _present(rows, present, frozenset(marks)))
    }
    return ReadingPlan(marks[0] if marks else registry.UNKNOWN, frozenset(marks), groups)


def _present(
    rows: Mapping[str, Sequence[FieldSource]], evidence: frozenset[str], marks: frozenset[str]
) -> Fields:
    fields = []
    for name, sources in rows.items():
        candidates = tuple(
            (source.evidence, source.read, source.name)
            for source in sources
            if source.evidence in evidence and (not source.needs or source.needs in marks)
        )
        if candidates:
            fields.append((name, candidates))
    return tuple(fields)
