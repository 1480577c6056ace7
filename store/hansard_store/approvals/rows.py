"""Approvals in SQLite: the current state of each, and nothing of how it came there.

It knows nothing of the audit log. Writing happens inside the caller's transaction.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import NotFoundError
from hansard_store.approvals.errors import RevisionChanged
from hansard_store.approvals.records import (
    PENDING,
    Approval,
    ApprovalFilter,
    Approver,
    Execution,
    Field,
    Grant,
    PolicyNote,
    Status,
)
from hansard_store.audit import seal_marks
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.database.id_prefixes import find_key
from hansard_store.database.stored_json import json_of, read_only
from hansard_store.errors import InvalidQueryError

_FIXED = (
    "approval_id", "tool", "effect", "agent", "trace_id", "span_id", "channel", "batch_id",
    "undo_of", "created_ns", "lifetime_ns", "proposal_key", "requested_method",
)  # fmt: skip
_CHANGING = (
    "status", "revision", "version", "arguments", "arguments_hash", "is_redacted", "is_exact",
    "description", "fields", "undo", "note", "reason", "updated_ns", "expires_ns", "decided_by",
    "decided_ns", "asked", "escalates_ns", "policy", "token", "token_ends_ns", "requested_by",
    "decided_method", "approved_by", "approvers", "approvals_required",
)  # fmt: skip
_ALL = (*_FIXED, *_CHANGING)
_ADD = f"""
INSERT INTO approval ({", ".join(_ALL)}) VALUES ({", ".join(f":{one}" for one in _ALL)})
RETURNING number
"""
_CHANGE = f"""
UPDATE approval SET {", ".join(f"{one} = :{one}" for one in _CHANGING)}
WHERE approval_id = :approval_id AND version = :version - 1
"""
_COLUMNS = f"""
approval.number, {", ".join(f"approval.{one}" for one in _ALL)},
claim.state, claim.claimed_ns, claim.finished_ns, claim.result_ref, claim.error, claim.holder,
claim.settled_ns, claim.settled_by, claim.settled_note, claim.settled_method
"""
_FROM = "FROM approval {index} LEFT JOIN approval_claim AS claim USING (approval_id)"
_NO_INDEX = _FROM.format(index="")
_ONE = f"SELECT {_COLUMNS} {_NO_INDEX} WHERE approval.approval_id = ?"
_VERSION = "SELECT version FROM approval WHERE approval_id = ?"
_OF_KEY = f"SELECT {_COLUMNS} {_NO_INDEX} WHERE approval.proposal_key = ?"
_LIST = f"""
SELECT {_COLUMNS} {_FROM} WHERE approval.number < :before{{wanted}}
ORDER BY approval.number DESC LIMIT :limit
"""
_OF_STEP = f"""
SELECT {_COLUMNS} {_FROM.format(index="INDEXED BY approval_run")}
WHERE approval.trace_id = :trace AND approval.span_id = :span ORDER BY approval.number DESC
"""
_LIST_BY_CLAIM = f"""
SELECT {_COLUMNS}
FROM approval_claim AS claim INDEXED BY approval_claim_state
CROSS JOIN approval USING (approval_id)
WHERE claim.state = :execution AND approval.number < :before{{wanted}}
ORDER BY approval.number DESC LIMIT :limit
"""
_URGENT = f"""
SELECT {_COLUMNS} {_FROM.format(index="INDEXED BY approval_due")}
WHERE approval.status IN ('awaiting', 'revised'){{wanted}}
ORDER BY approval.expires_ns LIMIT :limit
"""
_SOME_OF_STATE = """
SELECT count(*) FROM (
  SELECT 1 FROM approval_claim INDEXED BY approval_claim_state WHERE state = :state LIMIT :most
)
"""
# Each filter with the index that serves it and what it asks of a row.
_FILTERS = {
    "batch_id": ("approval_batch", "batch_id = :batch_id"),
    "run_id": ("approval_run", "trace_id = :run_id"),
    "channel": ("approval_channel", "channel = :channel"),
    "agent": ("approval_agent", "agent = :agent"),
    "tool": ("approval_tool", "tool = :tool"),
    "status": ("approval_status", "status = :status"),
    "pending": ("approval_pending", "status IN ('awaiting', 'revised')"),
}
_FEW = 10_000  # rows of an index that are counted to find the narrowest: half a millisecond
_DUE = """
SELECT approval_id FROM approval INDEXED BY approval_due
WHERE status IN ('awaiting', 'revised') AND expires_ns <= :now ORDER BY expires_ns LIMIT :limit
"""
_TO_ESCALATE = """
SELECT approval_id FROM approval INDEXED BY approval_escalates
WHERE escalates_ns <= :now ORDER BY escalates_ns LIMIT :limit
"""
_PENDING_OF_CHANNEL = """
SELECT approval_id FROM approval INDEXED BY approval_channel
WHERE channel = ? AND status IN ('awaiting', 'revised') ORDER BY number
"""
_OF_BATCH = """
SELECT approval_id FROM approval INDEXED BY approval_batch WHERE batch_id = ? ORDER BY number
"""
_UNDOING = """
SELECT approval_id FROM approval INDEXED BY approval_undo
WHERE undo_of = ? AND status IN ('awaiting', 'revised', 'approved') ORDER BY number DESC LIMIT 1
"""
_COUNTS = "SELECT count(*) FROM approval INDEXED BY approval_status WHERE status = ?"
_CURSOR = "approvals"
ABOVE_ALL = (1 << 63) - 1


def add(connection: apsw.Connection, approval: Approval) -> Approval:
    """Add a new approval and return it with its number."""
    number = int(connection.execute(_ADD, _row(approval)).get)
    return dataclasses.replace(approval, number=number)


def change(connection: apsw.Connection, approval: Approval, **changes: Any) -> Approval:
    """Compare and set: write what changed of an approval that is still as it was read.

    Raises RevisionChanged when somebody else changed it meanwhile.
    """
    changed = dataclasses.replace(approval, version=approval.version + 1, **changes)
    connection.execute(_CHANGE, _row(changed))
    if connection.changes() != 1:
        raise RevisionChanged(f"approval {approval.approval_id} was changed meanwhile")
    return changed


def get(connection: apsw.Connection, approval_id: str) -> Approval:
    """Return an approval by its id or a prefix of 8 digits or more.

    Raises NotFoundError (also for what is no id) and AmbiguousIdError.
    """
    row: Any = connection.execute(_ONE, (find_key(connection, "approval", approval_id),)).fetchone()
    return _approval(row)


def is_altered(connection: apsw.Connection, approval: Approval) -> bool:
    """Return whether an approval or its claim is not as Hansard wrote it.

    Its connection is one that marks changes.
    """
    return any(
        seal_marks.is_altered(connection, table, "approval_id", approval.key)
        for table in ("approval", "approval_claim")
    )


def version_of(connection: apsw.Connection, approval_id: str) -> int | None:
    """Return a number that grows with every change of an approval; None where there is none."""
    version: int | None = connection.execute(_VERSION, (bytes.fromhex(approval_id),)).get
    return version


def find_of_proposal(connection: apsw.Connection, proposal_key: bytes) -> Approval | None:
    """Return the approval that a proposer's key stands for, by the key's hash."""
    row: Any = connection.execute(_OF_KEY, (proposal_key,)).fetchone()
    return None if row is None else _approval(row)


def list_approvals(
    connection: apsw.Connection,
    filters: ApprovalFilter,
    *,
    before: int = ABOVE_ALL,
    limit: int = 50,
) -> list[Approval]:
    """Return approvals, the newest first, those below a number."""
    sql, parameters = _query(connection, filters)
    rows: Any = connection.execute(sql, {**parameters, "before": before, "limit": limit})
    return [_approval(row) for row in rows]


def list_of_step(connection: apsw.Connection, step_id: str) -> list[Approval]:
    """Return the approvals that name a step (`<trace>-<span>` in hex), the newest first.

    SQLite looks at every approval of the run: 0.4 µs each.
    """
    trace, _, span = step_id.partition("-")
    rows: Any = connection.execute(
        _OF_STEP, {"trace": bytes.fromhex(trace), "span": bytes.fromhex(span)}
    )
    return [_approval(row) for row in rows]


def list_urgent(
    connection: apsw.Connection, filters: ApprovalFilter, *, limit: int = 50
) -> list[Approval]:
    """Return what waits, the nearest deadline first."""
    tests, parameters = _conditions(filters)
    more = "".join(f" AND approval.{test}" for test in tests.values())
    rows: Any = connection.execute(_URGENT.format(wanted=more), {**parameters, "limit": limit})
    return [_approval(row) for row in rows]


def cursor_after(found: Sequence[Approval], *, limit: int) -> str | None:
    """Return the cursor of the page after this one, None when it is the last."""
    return encode_cursor(_CURSOR, found[-1].number) if len(found) == limit else None


def read_cursor(text: str | None) -> int:
    """Return the number that a cursor stands for; raises InvalidCursorError."""
    return ABOVE_ALL if text is None else decode_cursor(_CURSOR, text, count=1)[0]


def count_by_status(connection: apsw.Connection) -> dict[str, int]:
    """Return how many approvals wait: awaiting a person, and sent back to an agent."""
    pending = (Status.AWAITING, Status.REVISED)
    return {str(one): int(connection.execute(_COUNTS, (str(one),)).get) for one in pending}


def due_ids(connection: apsw.Connection, *, now_ns: int, limit: int = 200) -> list[str]:
    """Return pending approvals whose time is over, those that ended first."""
    return _ids(connection, _DUE, {"now": now_ns, "limit": limit})


def ids_to_escalate(connection: apsw.Connection, *, now_ns: int, limit: int = 200) -> list[str]:
    """Return approvals whose present approver did not answer in time."""
    return _ids(connection, _TO_ESCALATE, {"now": now_ns, "limit": limit})


def pending_of_channel(connection: apsw.Connection, channel: str) -> list[str]:
    """Return what waits in a channel, the oldest first."""
    return _ids(connection, _PENDING_OF_CHANNEL, (channel,))


def ids_of_batch(connection: apsw.Connection, batch_id: str) -> list[str]:
    """Return the approvals of a batch in their order; raises NotFoundError."""
    try:
        found = _ids(connection, _OF_BATCH, (bytes.fromhex(batch_id),))
    except ValueError:
        found = []
    if not found:
        raise NotFoundError("batch", batch_id)
    return found


def find_undoing(connection: apsw.Connection, approval_id: str) -> str | None:
    """Return the approval that undoes this one's action, or is to; None when there is none."""
    found = _ids(connection, _UNDOING, (bytes.fromhex(approval_id),))
    return found[0] if found else None


def _ids(connection: apsw.Connection, sql: str, bindings: Any) -> list[str]:
    return [row[0].hex() for row in connection.execute(sql, bindings)]


def _query(connection: apsw.Connection, filters: ApprovalFilter) -> tuple[str, dict[str, Any]]:
    tests, parameters = _conditions(filters)
    more = "".join(f" AND approval.{test}" for test in tests.values())
    if filters.execution is not None:
        parameters["execution"] = filters.execution
        if _are_few(connection, filters.execution):
            return _LIST_BY_CLAIM.format(wanted=more), parameters
        more += " AND coalesce(claim.state, 'none') = :execution"
    index = _narrowest(connection, tests, parameters)
    return _LIST.format(index=index, wanted=more), parameters


def _are_few(connection: apsw.Connection, state: str) -> bool:
    """Say whether the claims of a state are so few that they are gone through and sorted.

    Of many, the newest are found soon by walking back; what nobody claimed has no claim.
    """
    parameters = {"state": state, "most": _FEW}
    return state != "none" and int(connection.execute(_SOME_OF_STATE, parameters).get) < _FEW


def _conditions(filters: ApprovalFilter) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the conditions, by name of the filter, and their parameters."""
    names = [name for name in _FILTERS if name not in ("status", "pending")]
    parameters = {name: _bound(name, value) for name in names if (value := getattr(filters, name))}
    tests = {name: _FILTERS[name][1] for name in parameters}
    if set(filters.status) == PENDING:
        tests["pending"] = _FILTERS["pending"][1]
    elif len(filters.status) > 1:
        listed = ", ".join(f"'{Status(one)}'" for one in filters.status)
        tests["status"] = f"status IN ({listed})"
    elif filters.status:
        tests["status"] = _FILTERS["status"][1]
        parameters["status"] = filters.status[0]
    return tests, parameters


def _narrowest(
    connection: apsw.Connection, tests: Mapping[str, str], parameters: Mapping[str, Any]
) -> str:
    served = [name for name in tests if name in parameters or name == "pending"]
    if not served:
        return "NOT INDEXED"
    if len(served) == 1:
        return f"INDEXED BY {_FILTERS[served[0]][0]}"

    def rows(name: str) -> int:
        index = _FILTERS[name][0]
        sql = (
            f"SELECT count(*) FROM (SELECT 1 FROM approval INDEXED BY {index}"
            f" WHERE {tests[name]} LIMIT {_FEW})"
        )
        return int(connection.execute(sql, parameters).get)

    return f"INDEXED BY {_FILTERS[min(served, key=rows)][0]}"


def _bound(name: str, value: str) -> Any:
    if not name.endswith("_id"):
        return value
    try:
        return bytes.fromhex(value)
    except ValueError:
        what = name.removesuffix("_id")
        raise InvalidQueryError(what, f"{what} is {value[:40]!r}, which is no id") from None


# ---- rows


def _row(approval: Approval) -> dict[str, Any]:
    values = {name: getattr(approval, name, None) for name in _ALL}
    span = approval.step_id.partition("-")[2] if approval.step_id else ""
    return values | {
        "approval_id": approval.key,
        "status": str(approval.status),
        "arguments": _in_order(approval.arguments),
        "is_redacted": int(approval.is_redacted),
        "is_exact": int(approval.is_exact),
        "fields": canonical_json([dataclasses.asdict(one) for one in approval.fields]),
        "trace_id": bytes.fromhex(approval.run_id) if approval.run_id else None,
        "span_id": bytes.fromhex(span) if span else None,
        "batch_id": bytes.fromhex(approval.batch_id) if approval.batch_id else None,
        "undo_of": bytes.fromhex(approval.undo_of) if approval.undo_of else None,
        "undo": None if approval.undo is None else canonical_json(approval.undo),
        "approvers": canonical_json([[one.name, one.within_ns] for one in approval.approvers]),
        "policy": canonical_json(dataclasses.asdict(approval.policy)),
        "requested_by": canonical_json(list(approval.requested_by)),
        "approved_by": _grants_text(approval),
    }


def _grants_text(approval: Approval) -> str | None:
    if approval.approvals_required == 1:
        return None
    grants = [{**dataclasses.asdict(one), "at_ns": str(one.at_ns)} for one in approval.approved_by]
    return canonical_json(grants)


def _grants(text: str | None) -> tuple[Grant, ...]:
    grants = json_of(text or "[]")
    return tuple(Grant(one["name"], one["method"], int(one["at_ns"])) for one in grants)


def _in_order(value: Json) -> str:
    """Return JSON with its names in the order of the call, as a person is shown them."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def _approval(row: Sequence[Any]) -> Approval:
    columns: dict[str, Any] = dict(zip(("number", *_ALL), row, strict=False))
    trace_id, span_id = columns.pop("trace_id"), columns.pop("span_id")
    run_id = trace_id.hex() if trace_id else None
    state, *claim = row[len(_ALL) + 1 :]
    policy: dict[str, Any] = json_of(columns.pop("policy"))
    policy |= {name: tuple(one) for name, one in policy.items() if isinstance(one, list)}
    policy["facts"] = read_only(policy.get("facts", {}))
    return Approval(
        **{
            **columns,
            "approval_id": columns["approval_id"].hex(),
            "status": Status(columns["status"]),
            "arguments": read_only(json_of(columns["arguments"])),
            "is_redacted": bool(columns["is_redacted"]),
            "is_exact": bool(columns["is_exact"]),
            "fields": tuple(Field(**one) for one in json_of(columns["fields"])),
            "batch_id": columns["batch_id"].hex() if columns["batch_id"] else None,
            "undo_of": columns["undo_of"].hex() if columns["undo_of"] else None,
            "undo": None if columns["undo"] is None else read_only(json_of(columns["undo"])),
            "approvers": tuple(Approver(*one) for one in json_of(columns["approvers"])),
            "requested_by": tuple(json_of(columns["requested_by"] or "[]")),
            "approved_by": _grants(columns["approved_by"]),
        },
        run_id=run_id,
        step_id=f"{run_id}-{span_id.hex()}" if span_id else None,
        policy=PolicyNote(**policy),
        execution=Execution() if state is None else Execution(state, *claim),
    )
