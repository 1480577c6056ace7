"""What is kept of arguments: no secret, and a hash that only the same arguments have."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.errors import ClaimRefused, InvalidProposal, RecordAltered
from hansard_store.approvals.records import Approver, PolicyNote
from hansard_store.content.retention import MAX_ARGUMENTS, MAX_BYTES, MAX_NAME, Retention
from hansard_store.verification.integrity import verify_store
from tests.store.accounts import account, proposal

SECRET = "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
KEY = b"k" * 32


def keeper(mode: str = "redacted_payloads") -> Retention:
    return Retention(RetentionMode(mode), Redactor(KEY), KEY)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


ARGUMENTS = "SELECT arguments FROM approval WHERE approval_id = ?"


@pytest.mark.covers("CG-09")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 0.0}, {"a": -0.0}),
        ({"a": float("nan")}, {"a": {"$float": "nan"}}),
        ({"a": {"$float": "nan"}}, {"a": {"$$float": "nan"}}),
        ({"a": b"x"}, {"a": {"$bytes": "eA=="}}),
        ({"a": 10**400}, {"a": 10**400 + 1}),
        ({"a": 2**53}, {"a": 2**53 + 1}),
        ({"a": "\ud800"}, {"a": "\\ud800"}),
        ({"a": "\ud83d\ude00"}, {"a": "😀"}),
        ({"a": "é"}, {"a": "e\u0301"}),
        ({"a": None}, {}),
        ({"a": ""}, {"a": None}),
        ({"a": []}, {"a": {}}),
    ],
)
def test_only_the_arguments_that_were_approved_run(tmp_path: Path, one: Any, other: Any) -> None:
    with account(tmp_path) as desk:
        ids = [
            desk.propose(proposal(arguments=given)).approval.approval_id for given in (one, other)
        ]
        approved = desk.approve(ids[0], by="ana").approval_id

        with pytest.raises(ClaimRefused) as presented:
            desk.claim(approved, other)
        with closing(sqlite3.connect(desk.folder.database)) as outside:
            keys = [bytes.fromhex(one) for one in ids]
            kept = [outside.execute(ARGUMENTS, (key,)).fetchone()[0] for key in keys]
            sql = "UPDATE approval SET arguments = ? WHERE approval_id = ?"
            outside.execute(sql, (kept[1], keys[0]))
            outside.commit()
        is_altered = kept[0] != kept[1]  # what is cut out of both may leave the same
        with pytest.raises((ClaimRefused, RecordAltered)) as altered:
            desk.claim(approved)

        findings = verify_store(desk.folder).findings
        found = {one.row for one in findings if one.check == "approvals"}
        assert presented.value.code == "arguments_changed"
        assert altered.value.code in ("record_altered", "must_repropose")
        assert desk.approval(approved).execution.state == "none"
        assert found == ({approved} if is_altered else set())
        if is_altered:
            with pytest.raises(RecordAltered):
                desk.claim(approved, one)
        else:
            assert desk.claim(approved, one).approval.approval_id == approved


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.floats(), max_size=5))
def test_the_order_of_keys_does_not_matter(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))

    assert keeper().hash_of(arguments) == keeper().hash_of(turned)


@pytest.mark.parametrize(
    "arguments",
    [{"a": 10**400, "b": "\ud800", "c": 1e300, "d": ["x", {"$y": 1}]}, {}, {"a": 2**64}],
)
def test_arguments_that_can_be_written_exactly_are_kept_exactly(arguments: Any) -> None:
    kept = keeper().keep(arguments)

    assert (kept.is_exact, kept.is_redacted, kept.arguments) == (True, False, arguments)


def test_what_json_cannot_say_is_kept_for_the_eye_only() -> None:
    kept = keeper().keep({"a": float("inf")})

    assert (kept.is_exact, kept.is_redacted) == (False, False)
    assert kept.arguments == {"a": {"$float": "inf"}}


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": 10**5000},
        {"a": object()},
        {1: "x"},
        {"a": deep(100_000)},
        {"a": "x" * (MAX_BYTES + 1)},
        {"a" * (MAX_NAME + 1): 1},
        {f"a{number}": 1 for number in range(MAX_ARGUMENTS + 1)},
        ["a"],
        {"a": "‹redacted:openai:37d7c58be048›"},
        {"a": ["‹withheld:12›"]},
    ],
)
def test_arguments_that_cannot_be_bound_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidProposal):
        keeper().keep(arguments)


@pytest.mark.covers("CG-25")
@pytest.mark.parametrize("mode", ["redacted_payloads", "metadata_only"])
def test_a_secret_reaches_no_byte_of_the_store(tmp_path: Path, mode: str) -> None:
    exact = {"to": "alice@company.com", "auth": {"token": SECRET}, "note": f"use {SECRET}"}
    with account(tmp_path, retention=RetentionMode(mode)) as desk:
        made = desk.propose(proposal(arguments=exact, description=f"with {SECRET}"))
        found = made.approval.approval_id
        desk.revise(found, note=f"not {SECRET}", by="ann")
        desk.repropose(found, {**exact, "to": "bob@company.com"})
        desk.approve(found, by="ann", revision=2)
        claim = desk.claim(found, {**exact, "to": "bob@company.com"})
        desk.finish(claim, ok=False, error=f"refused {SECRET}")
        desk.failed("send", f"with {SECRET}")
        desk.message_in("c", text=SECRET, by=SECRET, ref=SECRET)
        desk.message_out("c", agent=SECRET)
        desk.tool_called("t", {SECRET: 1}, agent=SECRET, call_id=SECRET)
        desk.tool_returned("t", ok=True, result=SECRET, result_ref=SECRET, call_id=SECRET)
        desk.blocked(SECRET, {}, reason=SECRET, rule_ids=[SECRET], agent=SECRET)
        desk.receipt("t", {}, rule_ids=(SECRET,), agent=SECRET)
        desk.failed("t", "x", subject=SECRET, agent=SECRET)
        reason = f"not {SECRET} to alice@company.com"
        note = PolicyNote(rule_ids=(SECRET,), reason=reason, receipts=(SECRET,))
        told = desk.propose(proposal(arguments={SECRET: 1}, proposer_policy=note)).approval
        desk.reject(told.approval_id, by=SECRET)
        for named in ({"approvers": [Approver(SECRET)]}, {"facts": {"sensitivity": SECRET}}):
            with pytest.raises(InvalidProposal):
                desk.propose(proposal(**named))
        shown = desk.approval(found, with_drafts=True)

    assert claim.arguments["auth"]["token"] == SECRET
    assert shown.is_redacted
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file() and path.name != "key":
            assert SECRET.encode() not in path.read_bytes(), path
            if mode == "metadata_only":
                assert b"alice@company.com" not in path.read_bytes(), path


def test_only_whoever_has_the_exact_arguments_may_run_redacted_ones(tmp_path: Path) -> None:
    exact = {"token": SECRET}
    with account(tmp_path) as desk:
        found = desk.propose(proposal(arguments=exact)).approval.approval_id
        desk.approve(found)
        codes = []
        for given_arguments in (None, {"token": "another"}, desk.approval(found).arguments):
            with pytest.raises((ClaimRefused, InvalidProposal)) as refused:
                desk.claim(found, given_arguments)
            codes.append(refused.value.code)

        claim = desk.claim(found, exact)

    assert codes == ["must_repropose", "arguments_changed", "arguments_changed"]
    assert claim.arguments == exact


def test_full_payloads_keep_everything(tmp_path: Path) -> None:
    with account(tmp_path, retention=RetentionMode.FULL_PAYLOADS) as desk:
        found = desk.propose(proposal(arguments={"token": SECRET})).approval

    assert (found.is_redacted, found.arguments) == (False, {"token": SECRET})
