"""hansard approvals, events and repl: on the data folder, with no server."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from hansard_store.approvals.records import Action, Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_web.cli import commands
from tests.store.by_hand import triggers_dropped
from tests.web.cli.conftest import Cli

EMAIL = {
    "to": "alice@company.com",
    "subject": "Q3 report",
    "body": "Hi Alice, please find the Q3 report attached.",
}
Talk = Callable[..., list[str]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def desk(data: Path) -> Iterator[ApprovalService]:
    with ApprovalService(DataFolder(data)) as made:
        made.head()
        yield made


@pytest.fixture
def run(anywhere: Cli, data: Path) -> Cli:
    def ask(*arguments: str) -> Result:
        return anywhere(*arguments, HANSARD_DATA=str(data))

    return ask


@pytest.fixture
def talk(data: Path) -> Talk:
    """Say lines to the repl and return what it answers."""
    group = click.Group("hansard")
    commands(group)

    def say(*lines: str) -> list[str]:
        ended = CliRunner().invoke(
            group, ["repl", "--data", str(data)], input="\n".join(lines) + "\n", env={}
        )
        assert ended.exit_code == 0, ended.output
        return [line for line in ended.output.splitlines() if not line.startswith("you> ")]

    return say


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.covers("CF-22", "CF-24", "CF-25", "CF-26", "CF-27", "CF-28")
def test_the_transcript_of_the_harness_has_its_shape(talk: Talk) -> None:
    created, expires = talk(f"/plan send_email {json.dumps(EMAIL)}")
    found = re.fullmatch(r"bot> Created pending action ([0-9a-f]{8})… \(send_email\)", created)
    assert found is not None
    assert expires == "bot> Expires in 1h. Use /approve or /revise."
    note = "Make it less formal, add a greeting"

    revised, heading, pending, first, second = talk(
        f"/revise {found[1]} {note}", "/pending", "/events"
    )

    assert revised == f"bot> Revised {found[1]}… — note: {note}"
    assert heading == "bot> Revised:"
    assert pending == f"{found[1]}… send_email — {json.dumps(EMAIL)}"
    time = r"bot> \[\d\d:\d\d:\d\d\]"
    assert re.fullmatch(rf"{time} action\.created by agent — send_email", first)
    assert re.fullmatch(rf'{time} action\.revised by me — "{re.escape(note)}"', second)


@pytest.mark.covers("CF-24", "CF-14", "CF-21")
def test_a_new_repl_goes_on_where_the_last_one_ended(talk: Talk, desk: ApprovalService) -> None:
    talk('/plan send_email {"to": "a"}', '/plan pay {"sum": 5}')
    first, second = (one.approval_id[-8:] for one in reversed(desk.approvals()))

    answers = talk(
        f"/revise {first} warmer",
        f'/repropose {first} {{"to": "b"}}',
        f"/approve {first}",
        f"/reject {second} too much",
        "/pending",
    )

    assert answers == [
        f"bot> Revised {first}… — note: warmer",
        f"bot> Reproposed {first}… — draft 2",
        f"bot> Approved {first}…",
        f"bot> Rejected {second}… — reason: too much",
        "bot> Nothing is pending.",
    ]


@pytest.mark.covers("CF-25", "CF-28")
def test_the_repl_refuses_in_words_and_goes_on(talk: Talk, desk: ApprovalService) -> None:
    made = desk.propose(Proposal("t", {})).approval.approval_id
    connection = desk._connections.get()
    connection.execute(
        "UPDATE approval SET approval_id = x'70045045aa0000000000000000000001' WHERE number = 1"
    )
    other = desk.propose(Proposal("t", {})).approval.approval_id
    connection.execute(
        "UPDATE approval SET approval_id = x'70045045bb0000000000000000000002' WHERE number = 2"
    )
    assert made != other

    answers = talk(
        "/approve 70045045", "/revise 70045045aa", "/plan x {", "/plan", "/dance", "", "/help"
    )

    assert "begins more than one approval" in answers[0]
    assert "a note is needed" in answers[1]
    assert "the arguments cannot be read" in answers[2]
    assert answers[3] == "bot> Usage: /plan TOOL JSON"
    assert "I know no '/dance'" in answers[4]
    assert len(answers) == 5 + 8


@pytest.mark.covers("CF-02")
def test_an_action_is_listed_shown_and_decided(run: Cli, desk: ApprovalService) -> None:
    made = desk.propose(Proposal("send_email", EMAIL, agent="clerk")).approval.approval_id

    listed = run("approvals", "list")
    whole = told(run("approvals", "list", "--json"))
    revised = told(run("approvals", "revise", made[-8:], "warmer", "--by", "ann", "--json"))
    desk.repropose(made, {**EMAIL, "body": "Hey"})
    shown = run("approvals", "show", made[-8:])
    granted = run("approvals", "approve", made[-8:], "--by", "ann", "--revision", "2")
    lost = run("approvals", "reject", made[-8:], "--by", "bob")

    assert made[-8:] in listed.stdout
    assert [one["approval_id"] for one in whole["items"]] == [made]
    assert (revised["status"], revised["note"]) == ("revised", "warmer")
    for text in (
        "sent back by me:ann (claimed): warmer",
        "draft 2",
        "changed",
        "action.reproposed by agent",
    ):
        assert text in shown.stdout
    assert "is approved by ann" in granted.stdout
    assert "not run yet" in granted.stdout
    assert lost.exit_code == 1
    assert "is approved already, by ann" in lost.output
    assert told(run("approvals", "list", "--json"))["items"] == []
    assert len(told(run("approvals", "list", "--status", "all", "--json"))["items"]) == 1


def test_an_approved_action_says_what_runs_it_until_it_ran(run: Cli, desk: ApprovalService) -> None:
    made = desk.propose(Proposal("send_email", EMAIL)).approval.approval_id
    waiting = run("approvals", "show", made).stdout
    desk.approve(made, by="ann")

    approved = run("approvals", "show", made).stdout
    claimed = desk.claim(made)
    begun = run("approvals", "show", made).stdout

    assert claimed.arguments == EMAIL
    assert (
        "hansard.approvals.run_all_approved() in the program that has send_email, until" in approved
    )
    assert "run_all_approved" not in waiting + begun


def test_arguments_are_edited_on_approval(run: Cli, desk: ApprovalService) -> None:
    made = desk.propose(Proposal("send_email", EMAIL)).approval.approval_id

    bad = run("approvals", "approve", made, "--arguments", '{"a": 1, "a": 2}')
    edited = told(
        run("approvals", "approve", made, "--arguments", '{"to": "bob@company.com"}', "--json")
    )

    assert (bad.exit_code, "a key stands twice" in bad.output) == (2, True)
    assert (edited["revision"], edited["arguments"]) == (2, {"to": "bob@company.com"})
    assert desk.claim(made).arguments == {"to": "bob@company.com"}


def test_a_table_says_what_the_pages_say_and_json_what_programs_read(
    run: Cli, desk: ApprovalService
) -> None:
    made = desk.propose(Proposal("send_email", EMAIL)).approval.approval_id

    listed, shown = run("approvals", "list"), run("approvals", "show", made)
    sent_back = run("approvals", "revise", made, "warmer")

    assert "waiting for a decision" in listed.stdout
    assert "waiting for a decision" in shown.stdout
    assert "is sent back by" in sent_back.stdout
    assert told(run("approvals", "show", made, "--json"))["status"] == "revised"


@pytest.mark.covers("CG-27", "CG-28")
def test_a_batch_is_approved_and_what_ran_is_undone(run: Cli, desk: ApprovalService) -> None:
    made = [
        one.approval.approval_id
        for one in desk.propose_batch([Proposal("add", {"n": n}) for n in range(3)])
    ]

    many = told(run("approvals", "approve", made[0], "--batch", "--json"))
    desk.finish(desk.claim(made[0]), ok=True, undo=Action("remove", {"n": 0}))
    undoing = told(run("approvals", "undo", made[0], "--json"))
    never = run("approvals", "undo", made[1])

    assert len(many["items"]) == 3
    assert (undoing["tool"], undoing["undo_of"], undoing["status"]) == (
        "remove", made[0], "awaiting",
    )  # fmt: skip
    assert never.exit_code == 1


def redrafted(desk: ApprovalService, **fields: Any) -> str:
    """Propose an action, send it back and draft it anew; return its id."""
    made = desk.propose(Proposal("mail", {"to": "ann@acme.com"}, **fields)).approval.approval_id
    desk.revise(made, note="warmer")
    desk.repropose(made, {"to": "eve@evil.example"})
    return made


def test_what_is_approved_is_shown_first_and_a_later_draft_takes_its_revision(
    run: Cli, desk: ApprovalService
) -> None:
    first = desk.propose(Proposal("mail", {"to": "ann@acme.com"})).approval.approval_id
    second = redrafted(desk)

    one = run("approvals", "approve", first)
    blind = run("approvals", "approve", second)
    standing = desk.approval(second).status
    known = run("approvals", "approve", second, "--revision", "2")

    assert "to: ann@acme.com" in one.stderr
    assert (one.exit_code, known.exit_code) == (0, 0)
    assert blind.exit_code == 1
    assert "to: eve@evil.example" in blind.stderr
    assert "has had 2 drafts" in blind.stderr
    assert standing == "awaiting"


def test_of_a_batch_exactly_what_is_listed_is_approved(run: Cli, desk: ApprovalService) -> None:
    batch_id = "ab" * 16
    made = desk.propose(Proposal("add", {"n": 1}, batch_id=batch_id)).approval.approval_id
    later = redrafted(desk, batch_id=batch_id)

    ended = run("approvals", "approve", made, "--batch")

    assert f"{made[-8:]} add\n  n: 1\n" in ended.stderr
    assert f"{later[-8:]} mail, draft 2\n  to: eve@evil.example" in ended.stderr
    assert f"{later[-8:]} is not approved: it has draft 2" in ended.stderr
    assert (desk.approval(made).status, desk.approval(later).status) == ("approved", "awaiting")
    assert run("approvals", "approve", made, "--batch", "--yes").exit_code == 0
    assert desk.approval(later).status == "approved"


@pytest.mark.parametrize(
    "more", [("--arguments", '{"n": 9}'), ("--note", "ok"), ("--revision", "1")]
)
def test_a_batch_is_approved_as_it_is_listed_or_not_at_all(
    run: Cli, desk: ApprovalService, more: tuple[str, str]
) -> None:
    [made] = desk.propose_batch([Proposal("add", {"n": 1})])

    ended = run("approvals", "approve", made.approval.approval_id, "--batch", *more)

    assert ended.exit_code == 2, ended.output
    assert desk.approval(made.approval.approval_id).status == "awaiting"


def test_a_batch_of_many_is_approved_whole(run: Cli, desk: ApprovalService) -> None:
    many = desk.propose_batch([Proposal("add", {"n": n}) for n in range(505)])

    ended = run("approvals", "approve", many[0].approval.approval_id, "--batch", "--json")

    assert len(told(ended)["items"]) == 505
    assert desk.approval(many[0].approval.approval_id).status == "approved"


@pytest.mark.slow
def test_what_joins_a_batch_while_a_person_looks_is_not_approved(desk: ApprovalService) -> None:
    batch_id = "ab" * 16
    made = desk.propose(Proposal("add", {"n": 1}, batch_id=batch_id)).approval.approval_id
    person, terminal = pty.openpty()
    command = [Path(sys.executable).with_name("hansard"), "approvals", "approve", made, "--batch"]
    with subprocess.Popen(
        [*command, "--data", desk.folder.path], stdin=terminal, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as ended:  # fmt: skip
        assert ended.stdout is not None
        asked = ended.stdout.read(len("Approve 1 action?"))
        late = desk.propose(Proposal("pay", {"n": 9}, batch_id=batch_id)).approval.approval_id
        os.write(person, b"y\n")
        ended.communicate(timeout=30)
    os.close(person)
    os.close(terminal)

    assert (asked, ended.returncode) == ("Approve 1 action?", 0)
    assert desk.approval(made).status == "approved"
    assert desk.approval(late).status == "awaiting"


@pytest.mark.covers("EV-02")
def test_events_are_listed_by_filter_and_exported(
    run: Cli, desk: ApprovalService, tmp_path: Path
) -> None:
    made = desk.propose(Proposal("send_email", EMAIL)).approval.approval_id
    desk.revise(made, note="warmer", by="ann")
    desk.failed("send_email", "boom")

    listed = run("events", "list", "--approval", made[-8:])
    mine = told(run("events", "list", "--actor", "me", "--json"))
    exported = run("events", "export", "-o", str(tmp_path / "events.jsonl"))

    assert "action.revised" in listed.stdout
    assert "'warmer'" in listed.stdout
    assert "failure" not in listed.stdout
    assert [one["who"] for one in mine["items"]] == ["ann"]
    assert exported.exit_code == 0
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [3, 2, 1]
    assert run("events", "list", "--type", "made.up").exit_code == 1


def test_an_outcome_that_nobody_knows_is_settled_by_hand(run: Cli, desk: ApprovalService) -> None:
    made = desk.propose(Proposal("pay", {"sum": 12})).approval.approval_id
    desk.approve(made)
    early = run("approvals", "settle", made[-8:], "ran", "I looked")
    desk.claim(made, lease_s=-1.0)
    desk.recover()

    settled = run("approvals", "settle", made[-8:], "did-not-run", "no such payment", "--by", "ana")
    shown = run("approvals", "show", made[-8:])

    assert early.exit_code == 1
    assert "has not begun" in early.output
    assert f"{made[-8:]} is settled: it did not run" in settled.stdout
    assert "no such payment" in shown.stdout
    assert "action.settled by me ana" in shown.stdout
    assert run("approvals", "list", "--execution", "unknown").stdout.count(made[-8:]) == 0


@pytest.mark.covers("RC-30")
def test_verify_sees_a_cut_end_by_the_heads_of_earlier_days(
    run: Cli, desk: ApprovalService
) -> None:
    for number in range(3):
        desk.failed("x", f"error {number}", time_ns=1)  # long before today
    desk.keep_head()
    sound = run("events", "verify")
    connection = desk._connections.get()

    with triggers_dropped(connection):
        connection.execute("DELETE FROM event_content WHERE event = 3")
        connection.execute("DELETE FROM event WHERE seq = 3")
    cut = run("events", "verify")

    assert "whole; by 1 head that was kept of it" in sound.stdout
    assert (sound.exit_code, cut.exit_code) == (0, 1)
    assert "the log ends at 2, before the anchor 3: its end was removed" in cut.stdout


@pytest.mark.covers("RC-30")
def test_verify_names_the_altered_row_and_a_cut_end(run: Cli, desk: ApprovalService) -> None:
    for number in range(5):
        desk.failed("x", f"error {number}")
    anchor = run("events", "head").stdout.strip()
    sound = run("events", "verify", "--anchor", anchor)
    connection = desk._connections.get()

    with triggers_dropped(connection):
        connection.execute("DELETE FROM event_content WHERE event = 5")
        connection.execute("DELETE FROM event WHERE seq = 5")
    unseen, cut = run("events", "verify"), run("events", "verify", "--anchor", anchor)
    with triggers_dropped(connection):
        connection.execute("UPDATE event SET time_ns = time_ns + 1 WHERE seq = 2")
    altered = run("events", "verify", "--json")

    assert (sound.exit_code, unseen.exit_code, cut.exit_code) == (0, 0, 1)
    assert "whole; whether its end was cut off is not known" in unseen.stdout
    assert "event 5 is missing: the log ends at 4, before the anchor 5" in cut.stdout
    assert altered.exit_code == 1
    assert json.loads(altered.stdout)["broken"]["seq"] == 2
    assert run("events", "verify", "--anchor", "x").exit_code == 1


def test_a_folder_without_a_store_is_told_in_one_line(anywhere: Cli, tmp_path: Path) -> None:
    for command in (("approvals", "list"), ("events", "verify")):
        ended = anywhere(*command, HANSARD_DATA=str(tmp_path / "none"))

        assert ended.exit_code == 1
        assert "no store in" in ended.output
