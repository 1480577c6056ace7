"""Approvals and claims against the audit log: the log alone says what each row must hold.

Every change of an approval or a claim is one chained event in the same transaction. The events of
an approval are folded, in order, into the row that they must have left; what differs is named by
its column. Nothing is restored from the log: this only compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw
import orjson

from hansard_compiler.canonical import canonical_json
from hansard_store.audit.event_types import EventType
from hansard_store.principals.model import distinct, is_same, looks_like

_AT_ONCE = 200  # approvals whose events are in memory at a time

_OF_APPROVAL = (
    "number", "approval_id", "status", "revision", "tool", "arguments", "arguments_hash",
    "description", "trace_id", "span_id", "batch_id", "undo_of", "note", "reason", "created_ns",
    "expires_ns", "decided_by", "decided_method", "decided_ns", "token_ends_ns", "requested_by",
    "requested_method", "approvers", "approvals_required", "approved_by",
)  # fmt: skip
_APPROVALS = f"""
SELECT {", ".join(_OF_APPROVAL)} FROM approval WHERE number > ? ORDER BY number LIMIT ?
"""
_EVENTS = """
SELECT approval_id, seq, time_ns, type, actor, who, action, trace_id, span_id, body
FROM event INDEXED BY event_approval
WHERE approval_id IN (SELECT unhex(value) FROM json_each(?)) ORDER BY approval_id, seq
"""
_CONTENTS = """
SELECT event, name, body FROM event_content
WHERE event IN (SELECT value FROM json_each(?))
"""
_OF_CLAIM = (
    "approval_id", "claim_id", "state", "claimed_ns", "finished_ns", "result_ref", "error",
    "settled_ns", "settled_by", "settled_method", "settled_note",
)  # fmt: skip
_CLAIMS = f"""
SELECT {", ".join(_OF_CLAIM)} FROM approval_claim
WHERE approval_id IN (SELECT unhex(value) FROM json_each(?))
"""
_GONE = """
SELECT lower(hex(approval_id)), seq FROM event INDEXED BY event_approval
WHERE approval_id IS NOT NULL AND type = 'action.created'
  AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.approval_id = event.approval_id)
ORDER BY seq
"""
_STRAY_CLAIMS = """
SELECT lower(hex(approval_id)) FROM approval_claim
WHERE NOT EXISTS (
  SELECT 1 FROM approval WHERE approval.approval_id = approval_claim.approval_id)
"""
_TEXT_LIMIT = 60  # characters of a value in a finding

Found = Iterator[tuple[str, str, str]]  # table, row, message


@dataclass(frozen=True, slots=True)
class _Event:
    """What of an event bears on its approval."""

    seq: int
    time_ns: int
    type: str
    name: str  # who it was, as the record has it
    tool: str
    trace_id: bytes | None
    span_id: bytes | None
    body: Mapping[str, Any]
    contents: Mapping[str, Any]


@dataclass(slots=True)
class _Expected:
    """The rows that the events of one approval must have left; an absent column is not known."""

    approval: dict[str, Any] = field(default_factory=dict)
    claim: dict[str, Any] | None = None
    problems: list[str] = field(default_factory=list)
    seqs: dict[str, int] = field(default_factory=dict)  # column: the event that says so


def check_approvals(connection: apsw.Connection) -> Found:
    """Yield every approval and claim that its events contradict, and every one that is gone."""
    after = 0
    while True:
        rows = _dicts(connection, _APPROVALS, _OF_APPROVAL, (after, _AT_ONCE))
        if not rows:
            break
        yield from _page(connection, rows)
        after = rows[-1]["number"]
    for approval_id, seq in connection.execute(_GONE):
        yield "approval", str(approval_id), f"is gone: event {seq} created it"
    for (approval_id,) in connection.execute(_STRAY_CLAIMS):
        yield "approval_claim", str(approval_id), "claims an approval that is not there"


def _page(connection: apsw.Connection, rows: Sequence[dict[str, Any]]) -> Found:
    ids = orjson.dumps([row["approval_id"].hex() for row in rows]).decode()
    events = _events_of(connection, ids)
    claims = {row["approval_id"]: row for row in _dicts(connection, _CLAIMS, _OF_CLAIM, (ids,))}
    for row in rows:
        key = row["approval_id"]
        history = events.get(key, [])
        if not history or history[0].type != EventType.ACTION_CREATED:
            message = f"is {row['status']}, and the audit log knows nothing of it"
            yield "approval", key.hex(), message
            continue
        expected = expected_of(history)
        row = row | {
            "arguments": _as_content(row["arguments"]),
            "requested_by": _json(row["requested_by"] or "[]"),
            "approved_by": _json(row["approved_by"] or "[]"),
            "approvers": _names(_json(row["approvers"])),
        }
        yield from (("approval", key.hex(), one) for one in expected.problems)
        yield from _differences("approval", key, row, expected.approval, expected.seqs)
        yield from _claim_problems(key, claims.get(key), expected)


def expected_of(events: Sequence[_Event]) -> _Expected:
    """Fold the events of an approval, in order, into the rows they must have left. Pure."""
    expected = _Expected()
    for event in events:
        change = _CHANGES.get(event.type)
        if change is not None:
            change(expected, event)
    return expected


def _set(expected: _Expected, event: _Event, **columns: Any) -> None:
    expected.approval |= columns
    expected.seqs |= dict.fromkeys(columns, event.seq)


def _draft(expected: _Expected, event: _Event) -> None:
    revision = event.body.get("revision")
    _set(
        expected, event, status="awaiting", revision=revision, tool=event.tool, note=None,
        decided_by=None, decided_method=None, decided_ns=None, approved_by=[],
        requested_by=event.body.get("requested_by", []), arguments_hash=event.body.get("arguments"),
        expires_ns=_number(event.body.get("expires_ns")), token_ends_ns=None, reason=None,
    )  # fmt: skip
    # Events of earlier versions say neither, and a new draft changes them where rules do.
    changes = {name: event.body[name] for name in ("approvers", "approvals_required")
            if name in event.body}  # fmt: skip
    _set(expected, event, **changes)
    draft = event.contents.get("draft")
    for name in ("arguments", "description"):
        expected.approval.pop(name, None)
        if isinstance(draft, dict) and name in draft:
            _set(expected, event, **{name: draft[name]})


def _requested(expected: _Expected, event: _Event) -> None:
    _set(expected, event, requested_by=event.body.get("requested_by", []))


def _created(expected: _Expected, event: _Event) -> None:
    if expected.approval:
        expected.problems.append(f"event {event.seq} creates it a second time")
        return
    _draft(expected, event)
    _set(
        expected, event, created_ns=event.time_ns, trace_id=event.trace_id, span_id=event.span_id,
        requested_method=event.body.get("auth_method"),
        batch_id=_bytes(event.body.get("batch_id")), undo_of=_bytes(event.body.get("undo_of")),
    )  # fmt: skip
    expected.approval.setdefault("approvals_required", 1)
    expected.seqs.setdefault("approvals_required", event.seq)


def _decided(status: str, content: str | None = None, **more: Any) -> Any:
    def change(expected: _Expected, event: _Event) -> None:
        _set(
            expected, event, status=status, decided_by=event.name, decided_ns=event.time_ns,
            decided_method=event.body.get("auth_method"), **more,
        )  # fmt: skip
        if content is not None:
            _set(expected, event, **{content: event.contents.get(content)})

    return change


def _sent_back(expected: _Expected, event: _Event) -> None:
    _decided("revised", "note")(expected, event)
    _set(expected, event, approved_by=[])


def _approval_added(expected: _Expected, event: _Event) -> None:
    """One person's approval of a draft: of the draft that is there, and each counted once."""
    _check_approval(expected, event)
    if _required(expected) == 1:
        return
    grant = {
        "name": event.name, "method": event.body.get("auth_method"), "at_ns": str(event.time_ns),
    }  # fmt: skip
    grants = expected.approval.get("approved_by", [])
    if any(looks_like(one["name"], event.name) for one in grants):
        problem = f"event {event.seq} approves in the name {_shown(event.name)} a second time"
        expected.problems.append(problem)
    _set(expected, event, approved_by=[*grants, grant])


def _approved(expected: _Expected, event: _Event) -> None:
    _approval_added(expected, event)
    _decided("approved")(expected, event)
    _set(expected, event, token_ends_ns=_number(event.body.get("token_ends_ns")))
    required, grants = _required(expected), expected.approval.get("approved_by", [])
    people = distinct(one["name"] for one in grants)
    if len(people) < required != 1:
        expected.problems.append(
            f"was approved by event {event.seq} with {len(people)} of {required} approvals"
        )


def _check_approval(expected: _Expected, event: _Event) -> None:
    """Note what is wrong with an approval by itself: another draft, or a person who may not."""
    stands, body = expected.approval, event.body
    if body.get("arguments") != stands.get("arguments_hash"):
        expected.problems.append(f"event {event.seq} approves arguments that no draft has")
    if body.get("revision") != stands.get("revision"):
        expected.problems.append(f"event {event.seq} approves another draft than the one there was")
    approvers = stands.get("approvers", [])
    if approvers and not any(is_same(event.name, one) for one in approvers):
        expected.problems.append(f"event {event.seq} approves, and its name is no approver's")


def _required(expected: _Expected) -> int:
    found = expected.approval.get("approvals_required", 1)
    return found if isinstance(found, int) else 1


def _claimed(expected: _Expected, event: _Event) -> None:
    if expected.claim is not None:
        expected.problems.append(f"was claimed a second time by event {event.seq}: it ran twice")
    if expected.approval.get("status") != "approved":
        expected.problems.append(f"was claimed by event {event.seq}, and nobody had approved it")
    expected.claim = {
        "claim_id": _bytes(event.body.get("claim_id")), "state": "claimed",
        "claimed_ns": event.time_ns, "finished_ns": None, "result_ref": None, "error": None,
        "settled_ns": None, "settled_by": None, "settled_method": None, "settled_note": None,
    }  # fmt: skip


def _outcome(expected: _Expected, event: _Event, **columns: Any) -> None:
    if expected.claim is None:
        expected.problems.append(f"ended by event {event.seq}, and nobody had claimed it")
        return
    expected.claim |= columns


def _executed(expected: _Expected, event: _Event) -> None:
    is_ok = bool(event.body.get("ok"))
    _outcome(
        expected, event, state="done" if is_ok else "failed", finished_ns=event.time_ns,
        result_ref=event.body.get("result_ref"), error=event.contents.get("error"),
    )  # fmt: skip


def _lost(expected: _Expected, event: _Event) -> None:
    _outcome(expected, event, state="unknown")


def _settled(expected: _Expected, event: _Event) -> None:
    has_run = event.body.get("outcome") == "ran"
    _outcome(
        expected, event, state="done" if has_run else "not_run", settled_ns=event.time_ns,
        result_ref=event.body.get("result_ref"), settled_by=event.name,
        settled_method=event.body.get("auth_method"), settled_note=event.contents.get("note"),
    )  # fmt: skip


_CHANGES: Mapping[str, Any] = {
    EventType.ACTION_CREATED: _created,
    EventType.ACTION_REPROPOSED: _draft,
    EventType.ACTION_REQUESTED: _requested,
    EventType.ACTION_REVISED: _sent_back,
    EventType.ACTION_APPROVAL_ADDED: _approval_added,
    EventType.ACTION_APPROVED: _approved,
    EventType.ACTION_REJECTED: _decided("rejected", "reason"),
    EventType.ACTION_EXPIRED: _decided("expired", reason="expired"),
    EventType.ACTION_CLAIMED: _claimed,
    EventType.ACTION_EXECUTED: _executed,
    EventType.ACTION_UNKNOWN: _lost,
    EventType.ACTION_SETTLED: _settled,
}


def _claim_problems(key: bytes, claim: dict[str, Any] | None, expected: _Expected) -> Found:
    if expected.claim is None and claim is not None:
        yield "approval_claim", key.hex(), "is a claim that the audit log knows nothing of"
    elif expected.claim is not None and claim is None:
        stood = expected.claim["state"]
        yield "approval_claim", key.hex(), f"is gone: by the audit log its action is {stood}"
    elif expected.claim is not None and claim is not None:
        yield from _differences("approval_claim", key, claim, expected.claim, {})


def _differences(
    table: str,
    key: bytes,
    row: Mapping[str, Any],
    expected: Mapping[str, Any],
    seqs: Mapping[str, int],
) -> Found:
    for name, value in expected.items():
        if _is_same(row[name], value):
            continue
        log = f"event {seqs[name]}" if name in seqs else "the audit log"
        if name in ("status", "state"):
            yield table, key.hex(), f"is {_shown(row[name])}, and {_shown(value)} by {log}"
        else:
            difference = f"has {name} {_shown(row[name])}, and {_shown(value)} by {log}"
            yield table, key.hex(), difference


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are one to the last bit: `1`, `1.0` and `true` are three arguments."""
    if isinstance(one, bytes) or isinstance(other, bytes):
        return bool(one == other)
    return canonical_json(one) == canonical_json(other)


def _events_of(connection: apsw.Connection, ids: str) -> dict[bytes, list[_Event]]:
    rows: list[Any] = connection.execute(_EVENTS, (ids,)).fetchall()
    contents: dict[int, dict[str, Any]] = {}
    seqs = orjson.dumps([row[1] for row in rows]).decode()
    for seq, name, body in connection.execute(_CONTENTS, (seqs,)):
        contents.setdefault(seq, {})[name] = _json(body)
    found: dict[bytes, list[_Event]] = {}
    for key, seq, time_ns, type, actor, who, action, trace_id, span_id, body in rows:
        fields = _json(body)
        event = _Event(
            seq, time_ns, type, who or actor, action, trace_id, span_id,
            fields if isinstance(fields, dict) else {}, contents.get(seq, {}),
        )  # fmt: skip
        found.setdefault(key, []).append(event)
    return found


def _dicts(
    connection: apsw.Connection, sql: str, columns: Sequence[str], bindings: Sequence[Any]
) -> list[dict[str, Any]]:
    rows: list[Any] = connection.execute(sql, bindings).fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_content(text: str) -> Any:
    """Return JSON as the log's contents have it: what JSON cannot say is tagged there."""
    return _json(canonical_json(_json(text)))


def _names(approvers: Any) -> Any:
    """Return the names of approvers as events have them."""
    try:
        return [name for name, _ in approvers]
    except (TypeError, ValueError):
        return approvers


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.isdigit() else None


def _bytes(text: Any) -> bytes | None:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"
