"""`hansard repl`: approvals and their events by hand, with no agent and no model.

`/plan` stands for what an agent would propose; everything else is what a person does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from hansard_compiler.errors import HansardError
from hansard_store.approvals.records import PENDING, Approval, ApprovalFilter, Proposal, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import StoredEvent
from hansard_store.ids import short_id
from hansard_web.approvals.cli import SETTINGS, accounting, read_arguments
from hansard_web.cli.base import Command, setting_options
from hansard_web.cli.tables import plain
from hansard_web.ui.format import clock

_HELP: Final = (
    "/plan TOOL JSON        propose an action",
    "/revise ID NOTE        send it back with a note",
    "/repropose ID JSON     bring it back with a new draft",
    "/approve ID            let it run",
    "/reject ID [REASON]    end it",
    "/pending               what waits, by status",
    "/events                what happened",
    "/quit                  leave",
)
_SHOWN_EVENTS: Final = 50


@click.command(cls=Command)
@setting_options(*SETTINGS)
def repl(**options: Any) -> None:
    """Propose and decide actions by hand: /plan /revise /approve /reject /pending /events.

    Works on the data folder itself. Lines may come from a pipe; then they are shown as well.

    Example: hansard repl
    """
    with accounting(options, source="repl", creates=True) as approvals:
        talk = Repl(approvals)
        for line in _lines():
            if line.strip() in ("/quit", "/exit"):
                return
            for text in talk.answer(line):
                click.echo(plain(text).plain)


def _lines() -> Iterator[str]:
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            try:
                yield click.prompt("you", prompt_suffix="> ", default="", show_default=False)
            except click.Abort:
                return
            continue
        line = sys.stdin.readline()
        if not line:
            return
        click.echo(plain(f"you> {line.rstrip()}").plain)
        yield line


class Repl:
    """Answers lines; what it says begins with `bot> `."""

    def __init__(self, approvals: ApprovalService) -> None:
        self._approvals = approvals
        self._shown: dict[str, int] = {}  # which draft of which approval was shown here
        self._verbs: dict[str, Callable[[str], list[str]]] = {
            "/plan": self._plan,
            "/revise": self._revise,
            "/repropose": self._repropose,
            "/approve": self._approve,
            "/reject": self._reject,
            "/pending": self._pending,
            "/events": self._events,
            "/help": lambda _: [f"bot> {line}" for line in _HELP],
        }

    def answer(self, line: str) -> list[str]:
        """Run the command of a line; a refusal is a line of text."""
        verb, _, rest = line.strip().partition(" ")
        if not verb:
            return []
        act = self._verbs.get(verb)
        if act is None:
            return [f"bot> I know no {verb!r}; /help says what I know."]
        try:
            return act(rest.strip())
        except HansardError as error:
            return [f"bot> Not done: {error}"]

    def _plan(self, rest: str) -> list[str]:
        tool, _, arguments = rest.partition(" ")
        if not tool:
            return ["bot> Usage: /plan TOOL JSON"]
        made = self._approvals.propose(
            Proposal(tool=tool, arguments=read_arguments(arguments or "{}"))
        )
        approval = self._note(made.approval)
        lasts = _span(approval.expires_ns - approval.created_ns)
        return [
            f"bot> Created pending action {_short(approval)} ({approval.tool})",
            f"bot> Expires in {lasts}. Use /approve or /revise.",
        ]

    def _revise(self, rest: str) -> list[str]:
        approval_id, _, note = rest.partition(" ")
        back = self._approvals.revise(approval_id, note=note)
        return [f"bot> Revised {_short(back)} — note: {back.note}"]

    def _repropose(self, rest: str) -> list[str]:
        approval_id, _, arguments = rest.partition(" ")
        back = self._note(self._approvals.repropose(approval_id, read_arguments(arguments or "{}")))
        return [f"bot> Reproposed {_short(back)} — draft {back.revision}"]

    def _approve(self, rest: str) -> list[str]:
        found = self._approvals.approval(rest)
        revision = self._shown.get(found.approval_id)
        return [f"bot> Approved {_short(self._approvals.approve(rest, revision=revision))}"]

    def _note(self, shown: Approval) -> Approval:
        self._shown[shown.approval_id] = shown.revision
        return shown

    def _reject(self, rest: str) -> list[str]:
        approval_id, _, reason = rest.partition(" ")
        ended = self._approvals.reject(approval_id, reason=reason or None)
        reason_text = f" — reason: {ended.reason}" if ended.reason else ""
        return [f"bot> Rejected {_short(ended)}{reason_text}"]

    def _pending(self, _: str) -> list[str]:
        filters = ApprovalFilter(status=tuple(str(one) for one in PENDING))
        found = self._approvals.approvals(filters, limit=500)
        if not found:
            return ["bot> Nothing is pending."]
        lines = []
        for status in (Status.AWAITING, Status.REVISED):
            of_status = [one for one in found if one.status is status]
            if of_status:
                lines.append(f"bot> {status.capitalize()}:")
                lines += [
                    f"{_short(self._note(one))} {one.tool} — {_json(one)}" for one in of_status
                ]
        return lines

    def _events(self, _: str) -> list[str]:
        found = self._approvals.events(limit=_SHOWN_EVENTS)
        return [f"bot> {_event(one)}" for one in reversed(found)] or ["bot> Nothing happened yet."]


def _short(approval: Approval) -> str:
    return f"{short_id(approval.approval_id)}…"


def _json(approval: Approval) -> str:
    return json.dumps(approval.arguments, ensure_ascii=False)


def _event(event: StoredEvent) -> str:
    note = event.contents.get("note") or event.contents.get("reason")
    about = f'"{note}"' if note and event.approval_id else event.action
    return f"[{clock(event.time_ns)}] {event.type} by {event.actor} — {about}"


def _span(ns: int) -> str:
    seconds = ns // 1_000_000_000
    if seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"
