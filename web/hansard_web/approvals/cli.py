"""`hansard approvals`: what waits for a decision, and deciding it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.replay.provider_side_effects import TOOL as REPLAY_TOOL
from hansard_store.approvals.json import (
    approval_json,
    event_json,
    is_claimed,
    progress_text,
)
from hansard_store.approvals.records import (
    EXECUTION_STATES,
    PENDING,
    Approval,
    ApprovalFilter,
    Outcome,
    Status,
)
from hansard_store.approvals.rows import ABOVE_ALL, cursor_after, read_cursor
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import StoredEvent
from hansard_store.content.retention import Retention
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.cursors import Page
from hansard_store.database.data_folder import DataFolder
from hansard_store.ids import short_id
from hansard_store.principals.model import AUTHENTICATED, CLAIMED, person_text
from hansard_store.runs.queries import find_trace_id
from hansard_web.api.queries import limit_of
from hansard_web.api.values import page_body
from hansard_web.app.readers import Readers
from hansard_web.app.strict_json import parse_json
from hansard_web.cli.base import (
    CommandGroup,
    Misused,
    by_option,
    confirm,
    json_option,
    page_options,
    print_answer,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.cli.store import reading, use_store
from hansard_web.cli.tables import Column, print_facts, print_lines, print_records, status_text
from hansard_web.policy.service import PolicyService, policy_of
from hansard_web.sidecar.errors import InvalidBody
from hansard_web.ui.format import day_time, plural, printable, shorten, status_word

# Opening approvals and the audit log from a command: on the data folder, without a server.

SETTINGS = ("data", "policy", "retention", "heads_copy")


@contextmanager
def accounting(
    options: dict[str, Any], *, source: str = "cli", creates: bool = False
) -> Iterator[ApprovalService]:
    """Open accountability for the block, judged by the rules that a server here would use.

    `options` holds the settings of the command; they are removed from it.
    """
    settings = {name: options.pop(name) for name in SETTINGS if name in options}
    config = read_config(**settings)
    if creates and not DataFolder(config.data).has_store:
        open_for_ingest(DataFolder(config.data)).close()
    folder = use_store(settings.get("data"))
    readers = Readers(folder)
    retention = Retention.of(folder, config.retention)
    rules = PolicyService(folder, readers.read, config.policy)
    policy = policy_of(rules, retention, folder)
    service = ApprovalService(
        folder,
        retention=retention.mode,
        policy=policy,
        source=source,
        heads_copy=config.heads_copy,
        decide="anyone" if config.decide == "anyone" else "claimed",
    )
    try:
        yield service.acting(CLAIMED)
    finally:
        service.close()
        readers.close()


def read_arguments(text: str) -> Json:
    """Return the arguments of a call; what could be read in two ways is refused."""
    try:
        value = parse_json(text.encode("utf-8", "surrogateescape"))
    except InvalidBody as error:
        message = str(error).replace("the body is", "they are", 1)
        raise ConfigError(f"the arguments cannot be read: {message}") from None
    if not isinstance(value, dict):
        raise ConfigError("the arguments are a JSON object: names and values")
    return value


_AT_ONCE = 500
_STATUSES = [*(str(one) for one in Status), "pending", "all"]


@click.group(cls=CommandGroup)
def approvals() -> None:
    """Approvals: list, show, approve, reject, revise, settle, undo."""


def _deciding(function: Any) -> Any:
    """Add what every decision takes, after its own options."""
    by = by_option("Who decides; the user of this terminal unless given.")
    return by(setting_options(*SETTINGS)(json_option(function)))


_revision = click.option(
    "--revision", type=int, help="The draft you looked at; another one is refused."
)


@approvals.command("list")
@setting_options(*SETTINGS)
@click.option("--status", type=click.Choice(_STATUSES), default="pending", show_default=True)
@click.option("--channel", help="Only of this channel.")
@click.option("--run", help="Only of this run: its id or a unique beginning.")
@click.option("--agent", help="Only of this agent.")
@click.option("--tool", help="Only of this tool.")
@click.option("--batch", help="Only of this batch.")
@click.option(
    "--execution",
    type=click.Choice(EXECUTION_STATES),
    help="Only where the action itself stands so; `unknown` needs a look.",
)
@page_options
def list_(
    *, status: str, run: str | None, batch: str | None, execution: Any, limit: str,
    cursor: str | None, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """List approvals, the newest first: those that are pending, unless filtered.

    Example: hansard approvals list --status all --agent clerk
    """
    run_id = None
    if run:
        with reading(options["data"]) as connection:
            run_id = find_trace_id(connection, run).hex()
    filters = ApprovalFilter(
        status=_statuses(status if execution is None else "all"),
        channel=options.pop("channel"),
        agent=options.pop("agent"),
        tool=options.pop("tool"),
        run_id=run_id,
        batch_id=batch,
        execution=execution,
    )
    many = limit_of(limit)
    with accounting(options) as service:
        found = service.approvals(filters, before=read_cursor(cursor), limit=many)
    if as_json:
        print_json(page_body(Page(found, cursor_after(found, limit=many)), approval_json))
        return
    if not found and filters.status == _statuses("pending"):
        click.echo("Nothing waits for a decision. With --status all: what was decided.", err=True)
    print_records(
        found,
        {
            Column("id"): lambda one: short_id(one.approval_id),
            Column("status"): lambda one: status_text(str(one.status)),
            Column("agent"): lambda one: one.agent or "",
            Column("action", may_cut=True): lambda one: shorten(_action(one), 160),
            Column("expires or decided"): lambda one: day_time(
                one.expires_ns if one.is_pending else one.decided_ns or one.updated_ns
            ),
            Column("ran"): _ran,
        },
    )


@approvals.command()
@click.argument("approval_id")
@setting_options(*SETTINGS)
@json_option
def show(*, approval_id: str, as_json: bool, **options: Any) -> None:
    """Show an approval: every argument, every draft with its note, and what happened.

    Example: hansard approvals show 70045045
    """
    with accounting(options) as service:
        found = service.approval(approval_id, with_drafts=True)
        events = service.history(found.approval_id)
        memories = [one.memory_id for one in service.memories(found.approval_id)]
    if as_json:
        bodies = [event_json(one) for one in events]
        print_json({**approval_json(found), "memories": memories, "events": bodies})
    else:
        _print(found, events, memories)


@approvals.command()
@click.argument("approval_id")
@click.option("--arguments", help="As you want them, as JSON: a draft that passes policy again.")
@_revision
@click.option("--batch", is_flag=True, help="What of its batch still waits, as it is listed.")
@click.option("--note", help="What you say with it; kept in the log.")
@click.option("--yes", is_flag=True, help="Do not ask about a batch, or a later draft.")
@_deciding
def approve(
    *, approval_id: str, arguments: str | None, revision: int | None, batch: bool,
    note: str | None, yes: bool, by: str, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Let an action run, once, with exactly the arguments that are shown.

    They are shown first. A later draft than the first, and a batch, are asked about at a terminal;
    elsewhere a later draft takes --revision. Of a batch exactly what was listed is approved. Where
    it takes several people, it runs once the last of them approved the same draft.

    Example: hansard approvals approve 70045045
    """
    edited = None if arguments is None else read_arguments(arguments)
    if batch and not (edited is None and revision is None and note is None):
        raise Misused("--batch approves what is listed: it goes with no other draft, nor a note")
    with accounting(options) as service:
        if batch:
            granted = _approve_batch(service, approval_id, by=by, yes=yes)
            _tell(granted, as_json=as_json)
            return
        if revision is None and edited is None:
            revision = _shown_revision(service.approval(approval_id), yes=yes)
        granted = [
            service.approve(approval_id, by=by, arguments=edited, revision=revision, comment=note)
        ]
    _tell(granted, as_json=as_json)


def _shown_revision(found: Approval, *, yes: bool) -> int | None:
    """Print a pending action and return its draft; None where a person has yet to name the draft.

    That is a later draft without a terminal, and an action that no longer waits.
    """
    if not found.is_pending:
        return None  # the refusal says how it stands
    _show([found])
    if found.revision > 1 and not yes:
        if not sys.stdin.isatty():
            return None
        confirm(f"Approve draft {found.revision}?", yes=False)
    return found.revision


def _approve_batch(
    service: ApprovalService, approval_id: str, *, by: str, yes: bool
) -> list[Approval]:
    """List what waits of a batch, and approve exactly that."""
    batch_id = service.approval(approval_id).batch_id
    if batch_id is None:
        raise Misused(f"{approval_id} is of no batch")
    found = _awaiting_of_batch(service, batch_id)
    _show(found)
    if sys.stdin.isatty() and found:
        confirm(f"Approve {plural(len(found), 'action')}?", yes=yes)
    elif not yes:  # without a terminal only first drafts, as without --batch
        for one in found:
            if one.revision > 1:
                click.echo(
                    f"{short_id(one.approval_id)} is not approved: it has draft {one.revision}; "
                    f"approve it alone, with --revision {one.revision}",
                    err=True,
                )
        found = [one for one in found if one.revision == 1]
    if not found:
        return []
    return service.approve_batch(
        batch_id, by=by, revisions={one.approval_id: one.revision for one in found}
    )


def _awaiting_of_batch(service: ApprovalService, batch_id: str) -> list[Approval]:
    """Return all of a batch that awaits a decision, the oldest first."""
    filters = ApprovalFilter(status=(str(Status.AWAITING),), batch_id=batch_id)
    found: list[Approval] = []
    before = ABOVE_ALL
    while page := service.approvals(filters, before=before, limit=_AT_ONCE):
        found += page
        before = page[-1].number
    return found[::-1]


def _show(found: Sequence[Approval]) -> None:
    """Print actions that are to be approved to stderr, with the arguments as the page has them."""
    for one in found:
        draft = f", draft {one.revision}" if one.revision > 1 else ""
        print_lines([f"{short_id(one.approval_id)} {one.tool}{draft}"], err=True)
        for field in one.fields:
            flag = f"  ({field.flag}: {field.why})" if field.flag else ""
            print_lines([printable(f"  {field.name}: {field.value}{flag}")], err=True)


@approvals.command()
@click.argument("approval_id")
@click.option("--reason", "--note", help="Why; the agent receives it.")
@_revision
@_deciding
def reject(
    *, approval_id: str, reason: str | None, revision: int | None, by: str, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """End an action: it does not run.

    Example: hansard approvals reject 70045045 --reason "not this customer"
    """
    with accounting(options) as service:
        ended = service.reject(approval_id, by=by, reason=reason, revision=revision)
    _tell([ended], as_json=as_json)


@approvals.command()
@click.argument("approval_id")
@click.argument("note")
@_revision
@_deciding
def revise(
    *,
    approval_id: str,
    note: str,
    revision: int | None,
    by: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Send an action back to its agent with a note; it comes again with a new draft.

    Example: hansard approvals revise 70045045 "less formal, add a greeting"
    """
    with accounting(options) as service:
        back = service.revise(approval_id, note=note, by=by, revision=revision)
    _tell([back], as_json=as_json)


@approvals.command()
@click.argument("approval_id")
@click.argument("outcome", type=click.Choice(["ran", "did-not-run"]))
@click.argument("note")
@click.option("--result", "result_ref", help="What it made: a reference of your own.")
@_deciding
def settle(
    *, approval_id: str, outcome: str, note: str, result_ref: str | None, by: str,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Say whether an action whose outcome nobody knows had run, and how you know; nothing runs.

    Example: hansard approvals settle 70045045 ran "the e-mail is in the sent folder"
    """
    found: Outcome = "ran" if outcome == "ran" else "did_not_run"
    with accounting(options) as service:
        settled = service.settle_outcome(
            approval_id, found, note=note, by=by, result_ref=result_ref
        )
    says = "it ran" if outcome == "ran" else "it did not run"
    _print_one(settled, f"is settled: {says}", as_json=as_json)


@approvals.command()
@click.argument("approval_id")
@_deciding
def undo(*, approval_id: str, by: str, as_json: bool, **options: Any) -> None:
    """Propose the action that undoes one that ran; it is approved like any other.

    Example: hansard approvals undo 70045045
    """
    with accounting(options) as service:
        made = service.undo(approval_id, by=by).approval
    _print_one(made, f"would undo {approval_id}", as_json=as_json)


def _print_one(one: Approval, became: str, *, as_json: bool) -> None:
    line = f"{short_id(one.approval_id)} {became}: {one.description}"
    print_answer(approval_json(one), lambda body: print_lines([line]), as_json=as_json)


def _statuses(status: str) -> tuple[str, ...]:
    if status == "all":
        return ()
    return tuple(sorted(PENDING)) if status == "pending" else (status,)


def _ran(one: Approval) -> str:
    return "" if one.execution.state == "none" else one.execution.state


def _action(one: Approval) -> str:
    progress = progress_text(one) if one.is_pending else ""
    return f"({progress}) {one.description}" if progress else one.description


def _tell(changed: list[Approval], *, as_json: bool) -> None:
    if as_json:
        bodies = [approval_json(one) for one in changed]
        print_json(bodies[0] if len(bodies) == 1 else {"items": bodies})
        return
    for one in changed:
        by = f" by {_decided_by(one)}" if one.decided_by else ""
        head = f"{short_id(one.approval_id)} is {status_word(one.status)}{by}"
        lines = [f"{head}: {shorten(one.description, 200)}"]
        if progress := progress_text(one):
            lines.append(f"{progress}, each of another person" if one.approvals_left else progress)
        if one.status == Status.APPROVED and one.execution.state == "none":
            lines.append(
                f"not run yet: {_replay_command(one)} sends it"
                if one.tool == REPLAY_TOOL
                else "not run yet: the program runs it, with wait_s= or run_all_approved()"
            )
        print_lines(lines)


def _decided_by(found: Approval) -> str:
    return _person(found.decided_by, found.decider_method)


def _settled_by(found: Approval) -> str:
    ran = found.execution
    return _person(ran.settled_by, ran.settled_method or CLAIMED.method)


def _person(name: str | None, method: str | None) -> str:
    if name is None:
        return ""
    return f"{name} ({method})" if method in AUTHENTICATED else person_text(name, method)


def _to_run(found: Approval, *, now_ns: int) -> str:
    """Return what runs an approved action that did not run; nothing where nothing does any more."""
    if found.status != Status.APPROVED or found.execution.state != "none":
        return ""
    if found.token_ends_ns is None or now_ns >= found.token_ends_ns:
        return "too late: its token ran out before anybody ran it; the agent asks again"
    if found.tool == REPLAY_TOOL:
        return f"{_replay_command(found)}, until {day_time(found.token_ends_ns)}"
    return (
        f"hansard.approvals.run_all_approved() in the program that has {found.tool}, "
        f"until {day_time(found.token_ends_ns)}; or wait_s= on the tool, next time"
    )


def _replay_command(found: Approval) -> str:
    named = str(found.arguments.get("replay_id"))
    return f"hansard replay {named if named.isalnum() else 'ID'} --continue"


def _print(found: Approval, events: list[StoredEvent], memories: list[str]) -> None:
    print_facts(
        [
            ("approval", found.approval_id),
            ("status", status_word(found.status)),
            ("action", found.description),
            ("agent", found.agent or ""),
            ("run", found.run_id or ""),
            ("batch", found.batch_id or ""),
            ("undoes", found.undo_of or ""),
            ("policy", found.policy.reason or ""),
            ("rules", ", ".join(found.policy.rule_ids)),
            ("expires", day_time(found.expires_ns) if found.is_pending else ""),
            ("requested by", ", ".join(found.requested_by)),
            ("decided by", _decided_by(found)),
            ("approvals", progress_text(found)),
            ("note", found.note or ""),
            ("reason", found.reason or ""),
            ("ran", _ran(found)),
            ("to run it", _to_run(found, now_ns=time.time_ns())),
            ("settled by", _settled_by(found)),
            ("who found", found.execution.settled_note or ""),
            ("error", found.execution.error or ""),
            ("memory written", ", ".join(short_id(one) for one in memories)),
        ]
    )
    print_lines([""])
    print_records(
        found.fields,
        {
            Column("argument"): lambda one: one.name,
            Column("value", may_cut=True): lambda one: one.value,
            Column("flag"): lambda one: f"{one.flag}: {one.why}" if one.flag else "",
        },
    )
    for draft in found.drafts or ():
        print_lines(["", f"draft {draft.revision} by {draft.by}: {draft.description}"])
        if draft.note is not None:
            claimed = " (claimed)" if draft.note_is_claimed else ""
            print_lines([f"  sent back by {draft.note_by}{claimed}: {draft.note}"])
        for one in draft.approval_notes:
            claimed = " (claimed)" if one.is_claimed else ""
            print_lines([f"  approved by {one.by}{claimed}: {one.note}"])
    print_lines([""])
    for event in events:
        print_lines(
            [f"{event.seq:>6}  {day_time(event.time_ns)}  {event.type} by {actor_text(event)}"]
        )


def actor_text(event: StoredEvent) -> str:
    """Return who did what an event tells, and whether nobody authenticated the name."""
    return f"{event.actor} {event.who}".rstrip() + (" (claimed)" if is_claimed(event) else "")
