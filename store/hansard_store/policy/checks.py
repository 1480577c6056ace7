"""Policy checks: every one that was made, allows included.

Those made through the API are committed before they are answered, with a connection of their own;
those that spans tell of are derived from the spans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.policy.checks import PolicyCheck
from hansard_store.content.retention import Retention
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.stored_json import json_of, json_text, read_only
from hansard_store.ingest.span_input import ReceivedSpan


class CheckRow(NamedTuple):
    """A check as it is stored; JSON columns are values here."""

    time_ns: int
    action: str
    effect: str
    reason_code: str
    reason: str | None
    rule_id: str | None
    rule_set: str | None
    rule_version: str | None
    rules: Sequence[Json]
    obligations: Sequence[str]
    agent: str | None
    subject: str | None
    inputs: Json
    policy_hash: str


_COLUMNS = ", ".join(("span", "trace_id", "span_id", "ordinal", *CheckRow._fields))
_JSON = ("rules", "obligations", "inputs")
_ADD = f"""
INSERT INTO policy_check ({_COLUMNS}) VALUES ({", ".join("?" * 18)})
ON CONFLICT DO NOTHING
"""
_NEXT = """
SELECT coalesce(max(ordinal) + 1, 0) FROM policy_check WHERE trace_id = ? AND span_id = ?
"""
_LIST = f"""
SELECT id, {_COLUMNS} FROM policy_check {{index}} WHERE id < :before{{wanted}}
ORDER BY id DESC LIMIT :limit
"""
# Each filter with the index that serves it; the first one present decides which is used.
_FILTERS = {
    "trace_id": ("INDEXED BY policy_check_step", "trace_id = :trace_id"),
    "rule_id": ("INDEXED BY policy_check_rule", "rule_id = :rule_id"),
    "agent": ("INDEXED BY policy_check_agent", "agent = :agent"),
    "effect": ("INDEXED BY policy_check_effect", "effect = :effect"),
}
_DROP_OF_SPAN = "DELETE FROM policy_check WHERE span = ?"
_DROP_OF_RUN = """
DELETE FROM policy_check WHERE id IN (
  SELECT id FROM policy_check INDEXED BY policy_check_step WHERE trace_id = :trace LIMIT :most
)
"""
_ABOVE_ALL = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check with its number and the step it belongs to."""

    id: int
    trace_id: bytes | None
    span_id: bytes | None
    is_derived: bool  # derived from a span
    row: CheckRow


def record_check(
    folder: DataFolder,
    row: CheckRow,
    *,
    trace_id: bytes | None = None,
    span_id: bytes | None = None,
) -> int:
    """Keep a check that was made here, and return its number; it survives a power cut.

    Raises StoreBusyError when it cannot be written: then nothing may be allowed.
    """
    with accountability_transaction(folder) as connection:
        ordinal = 0
        if trace_id is not None and span_id is not None:
            ordinal = int(connection.execute(_NEXT, (trace_id, span_id)).get)
        add_check(connection, row, trace_id=trace_id, span_id=span_id, ordinal=ordinal)
        return connection.last_insert_rowid()


def add_check(
    connection: apsw.Connection,
    row: CheckRow,
    *,
    trace_id: bytes | None,
    span_id: bytes | None,
    ordinal: int = 0,
    span: int | None = None,
) -> None:
    """Add a check inside a transaction; one that is known of this step already stays as it is."""
    values = row._asdict() | {name: json_text(getattr(row, name)) for name in _JSON}
    connection.execute(_ADD, (span, trace_id, span_id, ordinal, *values.values()))


def add_checks_of_span(
    connection: apsw.Connection, rows: Sequence[CheckRow], *, span: int, of: ReceivedSpan
) -> None:
    """Add what a span tells, inside a transaction."""
    for ordinal, row in enumerate(rows):
        add_check(
            connection, row, trace_id=of.trace_id, span_id=of.span_id, ordinal=ordinal, span=span
        )


def drop_checks_of_span(connection: apsw.Connection, span: int) -> None:
    """Remove what was derived from a span."""
    connection.execute(_DROP_OF_SPAN, (span,))


def release_checks(connection: apsw.Connection, trace_id: bytes, *, most: int) -> int:
    """Remove checks of a run that is deleted, and return how many were."""
    connection.execute(_DROP_OF_RUN, {"trace": trace_id, "most": most})
    return connection.changes()


def list_checks(
    connection: apsw.Connection, *, before: int = _ABOVE_ALL, limit: int = 50, **filters: Any
) -> list[StoredCheck]:
    """Return checks, the newest first; `filters` are any of trace_id, rule_id, agent, effect."""
    sql, parameters = checks_query(filters)
    rows: Any = connection.execute(sql, {**parameters, "before": before, "limit": limit})
    return [_stored(row) for row in rows]


def checks_query(filters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the statement of a list of checks, and what it is filtered by."""
    parameters = {name: filters[name] for name in _FILTERS if filters.get(name) is not None}
    index = next((_FILTERS[name][0] for name in parameters), "")
    more = "".join(f" AND {_FILTERS[name][1]}" for name in parameters)
    return _LIST.format(index=index, wanted=more), parameters


def _stored(row: Sequence[Any]) -> StoredCheck:
    number, span, trace_id, span_id, _, *columns = row
    made = CheckRow(*columns)
    values = {name: read_only(json_of(getattr(made, name))) for name in _JSON}
    return StoredCheck(number, trace_id, span_id, span is not None, made._replace(**values))


# Policy checks as rows: what the retention mode lets them say.

# Names that the program's configuration gives; the rest may be a person's words.
_NAMES: Final = frozenset(
    ("agent", "task_type", "provider", "model", "environment", "sensitivity", "kind",
     "source_type", "name", "class", "effect", "arguments_hash", "tool", "item")
)  # fmt: skip


def check_row(retention: Retention, check: PolicyCheck, *, now_ns: int) -> CheckRow:
    """Return a check's row: no content, no argument, no secret."""
    inputs = _inputs(retention, check)
    item, tool = inputs.get("item"), inputs.get("tool")
    subject = tool["name"] if tool else item["id"] if item else None
    is_name = check.reason_code != "condition_error"
    return CheckRow(
        time_ns=now_ns,
        action=check.action,
        effect=str(check.effect),
        reason_code=check.reason_code,
        reason=_text(retention, check.reason, is_name=is_name),
        rule_id=check.rule_id,
        rule_set=check.rule.rule_set if check.rule else None,
        rule_version=check.rule.version if check.rule else None,
        rules=[_outcome(retention, one.json()) for one in check.outcomes],
        obligations=sorted(str(one) for one in check.obligations),
        agent=inputs.get("agent"),
        subject=subject,
        inputs=inputs,
        policy_hash=check.policy_hash,
    )


def _outcome(retention: Retention, outcome: Json) -> Json:
    if outcome.get("error"):
        return {**outcome, "error": _text(retention, outcome["error"], is_name=False)}
    return outcome


def _inputs(retention: Retention, check: PolicyCheck) -> Json:
    inputs = dict(check.inputs)
    if "tool" in check.facts:
        # Keyed: arguments are few enough to be guessed from an open hash.
        inputs["arguments_hash"] = retention.reference(check.facts["arguments"])
    cleaned: Json = _clean(retention, inputs, is_name=True)
    return cleaned


def _clean(retention: Retention, value: Any, *, is_name: bool) -> Any:
    if isinstance(value, str):
        return _text(retention, value, is_name=is_name)
    if isinstance(value, Mapping):
        return {
            key: _clean(retention, one, is_name=is_name and key in _NAMES)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean(retention, one, is_name=is_name) for one in value]
    return value


def _text(retention: Retention, text: str, *, is_name: bool) -> str:
    if retention.is_metadata_only and not is_name:
        return f"‹withheld:{len(text.encode())}›"
    return retention.clean_text(text)
