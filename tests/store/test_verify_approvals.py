"""Approvals and claims that were changed with nothing but `sqlite3`: verify names each row."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from hansard_store.approvals.errors import ClaimRefused
from hansard_store.approvals.records import Action
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.audit.events import append
from hansard_store.database.connections import open_for_accountability
from hansard_store.verification.integrity import IntegrityFinding, verify_store
from tests.store.accounts import MINUTE, Clock, account, proposal
from tests.store.by_hand import triggers_dropped


@dataclass(frozen=True)
class Lives:
    """One approval in each state that it can be in, by its name."""

    desk: ApprovalService
    ids: dict[str, str]

    def alter(self, sql: str, name: str) -> list[IntegrityFinding]:
        """Change rows by plain SQL, `:id` the approval of a name; return what verify finds."""
        self.desk.close()
        connection = sqlite3.connect(self.desk.folder.database)
        connection.execute("PRAGMA foreign_keys = OFF")
        with triggers_dropped(connection):
            changed = connection.execute(sql, {"id": bytes.fromhex(self.ids[name])})
        assert changed.rowcount > 0
        connection.commit()
        connection.close()
        return [one for one in verify_store(self.desk.folder).findings if one.check == "approvals"]


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    clock = Clock()
    desk = account(tmp_path, clock=clock)

    def made() -> str:
        return desk.propose(proposal(undo=Action("recall_email", {"id": 7}))).approval.approval_id

    ids = {name: made() for name in ("awaiting", "revised", "rejected", "edited", "expired")}
    desk.revise(ids["revised"], note="shorter", by="ann")
    desk.reject(ids["rejected"], reason="not today", by="ann")
    desk.approve(ids["edited"], by="ann", arguments={"to": "bob@company.com"})
    for name in ("done", "failed", "lost", "settled", "open"):
        ids[name] = made()
        desk.approve(ids[name], by="ann")
    desk.finish(desk.claim(ids["done"]), ok=True, result_ref="mail:1")
    desk.finish(desk.claim(ids["failed"]), ok=False, error="no such address")
    for name in ("lost", "settled"):
        desk.claim(ids[name], lease_s=1)
    clock.advance(MINUTE)
    desk.recover()
    desk.settle_outcome(ids["settled"], "ran", note="it is in the outbox", by="bob")
    clock.advance(59 * MINUTE)
    ids["fresh"] = made()
    desk.expire_due()
    return Lives(desk, ids)


def test_approvals_of_every_life_fit_their_events(lives: Lives) -> None:
    assert verify_store(lives.desk.folder).findings == []


OF_APPROVAL = "WHERE approval_id = :id"
ALTERED = {
    "arguments of what ran": (
        f"UPDATE approval SET arguments = replace(arguments, 'alice', 'mallory') {OF_APPROVAL}",
        "done", "has arguments", ),
    "who decided": (
        f"UPDATE approval SET decided_by = 'ceo' {OF_APPROVAL}", "done",
        "has decided_by ceo, and ann by event"),
    "how it is known who decided": (
        f"UPDATE approval SET decided_method = 'token' {OF_APPROVAL}", "done",
        "has decided_method token, and claimed by event"),
    "who requested it": (
        f"UPDATE approval SET requested_by = '[]', requested_method = 'none' {OF_APPROVAL}",
        "awaiting", "has requested_method none, and claimed by event"),
    "when it was decided": (
        f"UPDATE approval SET decided_ns = decided_ns - 1 {OF_APPROVAL}", "done", "decided_ns"),
    "the tool": (f"UPDATE approval SET tool = 'wire_money' {OF_APPROVAL}", "done", "has tool"),
    "the hash": (
        f"UPDATE approval SET arguments_hash = 'hmac-sha256:00' {OF_APPROVAL}", "done",
        "arguments_hash"),
    "the draft's number": (
        f"UPDATE approval SET revision = 1 {OF_APPROVAL}", "edited", "has revision 1, and 2 by"),
    "the description": (
        f"UPDATE approval SET description = 'pay nothing' {OF_APPROVAL}", "done", "description"),
    "a rejection's reason": (
        f"UPDATE approval SET reason = 'wanted' {OF_APPROVAL}", "rejected", "has reason wanted"),
    "a rejection made an approval": (
        f"UPDATE approval SET status = 'approved' {OF_APPROVAL}", "rejected",
        "is approved, and rejected by event"),
    "an expired one waits again": (
        f"UPDATE approval SET status = 'awaiting' {OF_APPROVAL}", "expired",
        "is awaiting, and expired by event"),
    "its deadline": (
        f"UPDATE approval SET expires_ns = expires_ns * 2 {OF_APPROVAL}", "awaiting",
        "has expires_ns"),
    "the note that sent it back": (
        f"UPDATE approval SET note = 'fine' {OF_APPROVAL}", "revised", "has note fine"),
    "the run it is of": (
        f"UPDATE approval SET trace_id = zeroblob(16) {OF_APPROVAL}", "done", "has trace_id"),
    "an approval is gone": (f"DELETE FROM approval {OF_APPROVAL}", "fresh", "is gone: event"),
    "an approval with its claim is gone": (
        f"DELETE FROM approval {OF_APPROVAL}", "done", "is gone: event"),
    "an approval without an event": (
        "INSERT INTO approval SELECT 999, zeroblob(16), status, revision, version, tool, arguments,"
        " arguments_hash, is_redacted, is_exact, description, fields, effect, agent, trace_id,"
        " span_id, channel, batch_id, undo_of, undo, note, reason, created_ns, updated_ns,"
        " lifetime_ns, expires_ns, decided_by, decided_ns, approvers, asked, escalates_ns, policy,"
        " zeroblob(32), token, token_ends_ns, requested_by, requested_method,"
        f" decided_method, approvals_required, approved_by FROM approval {OF_APPROVAL}", "open",
        "the audit log knows nothing of it"),
    "a claim is gone": (
        f"DELETE FROM approval_claim {OF_APPROVAL}", "done", "by the audit log its action is done"),
    "a claim that nobody made": (
        "INSERT INTO approval_claim (approval_id, claim_id, state, holder, claimed_ns)"
        " VALUES (:id, zeroblob(16), 'done', '', 1)", "open", "that the audit log knows nothing"),
    "a failure made a success": (
        f"UPDATE approval_claim SET state = 'done' {OF_APPROVAL}", "failed",
        "is done, and failed by"),
    "what it failed with": (
        f"UPDATE approval_claim SET error = 'a fly' {OF_APPROVAL}", "failed", "has error a fly"),
    "what it returned": (
        f"UPDATE approval_claim SET result_ref = 'mail:2' {OF_APPROVAL}", "done", "mail:1 by"),
    "an unknown outcome": (
        f"UPDATE approval_claim SET state = 'not_run' {OF_APPROVAL}", "lost", "and unknown by"),
    "who settled it": (
        f"UPDATE approval_claim SET settled_by = 'ann' {OF_APPROVAL}", "settled", "and bob by"),
    "the claim's id": (
        f"UPDATE approval_claim SET claim_id = zeroblob(16) {OF_APPROVAL}", "done", "claim_id"),
}  # fmt: skip


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("name", ALTERED)
def test_what_was_altered_is_named_by_its_row_and_column(lives: Lives, name: str) -> None:
    sql, approval, message = ALTERED[name]

    found = lives.alter(sql, approval)

    row = "0" * 32 if "zeroblob(32)" in sql else lives.ids[approval]
    assert {one.row for one in found} == {row}
    assert message in " ".join(one.message for one in found)


def test_an_action_whose_claim_was_removed_does_not_run_again(tmp_path: Path) -> None:
    desk = account(tmp_path)
    made = desk.propose(proposal()).approval.approval_id
    desk.approve(made, by="ann")
    desk.finish(desk.claim(made), ok=True)
    with sqlite3.connect(desk.folder.database) as plain:
        plain.execute("DELETE FROM approval_claim")
    plain.close()

    with pytest.raises(ClaimRefused, match="the claim was removed") as refused:
        desk.claim(made)

    assert refused.value.code == "record_altered"


def test_an_action_that_was_claimed_twice_is_named(lives: Lives) -> None:
    connection = open_for_accountability(lives.desk.folder)
    [event] = [one for one in lives.desk.history(lives.ids["done"]) if one.type == "action.claimed"]
    again = Event(
        EventType.ACTION_CLAIMED, Actor.AGENT, event.action, "cli", event.subject, event.time_ns,
        approval_id=event.approval_id, body=json.loads(event.body),
    )  # fmt: skip
    append(connection, again)
    connection.close()

    found = verify_store(lives.desk.folder).findings

    assert "was claimed a second time by event" in found[0].message
    assert found[0].row == lives.ids["done"]
