"""The outcome of each draft of an action, read from the audit log.

An approval has one state, its current one. A step proposed one draft of it: what is shown on the
step is the outcome of that draft, whatever became of later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import apsw

from hansard_store.audit.event_types import Actor, EventFilter, EventType, StoredEvent
from hansard_store.audit.events import read_events
from hansard_web.approvals.labels import clean
from hansard_web.audit.rows import body_of, step_of
from hansard_web.ui.format import WAITS

_AT_ONCE: Final = 500
_MOST_EVENTS: Final = 5_000  # of one run; a longer one shows its first calls so
_PROPOSES: Final = (EventType.ACTION_CREATED, EventType.ACTION_REPROPOSED)
_RUNS: Final = (EventType.ACTION_CLAIMED, EventType.ACTION_EXECUTED, EventType.TOOL_CALLED)


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """A draft: the step that proposed it, and what happened to it before the next one."""

    revision: int
    step_id: str  # "" where none is known
    arguments_hash: str
    edited_by: str = ""  # the person who wrote it over the one before, when approving
    sent_back_by: str = ""  # "": it was not sent back


def draft_outcomes(history: Iterable[StoredEvent]) -> list[DraftOutcome]:
    """Return the drafts of an approval in order; `history` are its events, the first first."""
    found: list[DraftOutcome] = []
    for event in history:
        if event.type in _PROPOSES:
            body = body_of(event)
            by = _name(event) if event.actor == Actor.ME else ""
            if by and found:  # an edit sends the draft back and answers it, in one
                found[-1] = replace(found[-1], sent_back_by="")
            revision = body.get("revision")
            found.append(
                DraftOutcome(
                    revision if isinstance(revision, int) else len(found) + 1,
                    step_of(event),
                    str(body.get("arguments") or ""),
                    edited_by=by,
                )
            )
        elif event.type == EventType.ACTION_REVISED and found:
            found[-1] = replace(found[-1], sent_back_by=_name(event))
    return found


def draft_of_step(
    drafts: Sequence[DraftOutcome], step_id: str, arguments_hash: str | None
) -> int | None:
    """Return which draft (its index) a step is of: by its arguments, then by who proposed it.

    The step that runs an approved draft names that draft's arguments; None where nothing fits.
    """
    same = [at for at, one in enumerate(drafts) if one.arguments_hash == arguments_hash]
    own = [at for at, one in enumerate(drafts) if one.step_id == step_id]
    both = [at for at in same if at in own]
    for found in (both, same, own):
        if found:
            return found[-1]
    return None


def next_draft(drafts: Sequence[DraftOutcome], at: int) -> DraftOutcome | None:
    """Return the draft that answered the note that sent one back; None while there is none."""
    return drafts[at + 1] if at + 1 < len(drafts) else None


def calls_not_run(connection: apsw.Connection, run_id: str) -> dict[str, tuple[str, str]]:
    """Return the steps of a run whose call the gate did not let run: label and state, by step id.

    A step counts by the events of the draft that it proposed.
    """
    drafts: dict[str, int] = {}  # the revision that a step proposed
    found: dict[str, tuple[str, str]] = {}
    for event in _events_of(connection, run_id):
        step_id = step_of(event)
        revision = body_of(event).get("revision")
        if event.type in _PROPOSES and isinstance(revision, int):
            is_edit = event.actor == Actor.ME
            if step_id not in drafts or is_edit:
                drafts[step_id] = revision
                found[step_id] = (WAITS, "wait")
        elif event.type == EventType.POLICY_BLOCKED:
            found[step_id] = ("blocked by policy", "fail")
        elif isinstance(revision, int) and drafts.get(step_id) != revision:
            continue  # an older store names the first step in events of later drafts
        elif event.type == EventType.ACTION_REVISED:
            found[step_id] = (f"sent back by {_name(event)}", "fail")
        elif event.type == EventType.ACTION_REJECTED:
            found[step_id] = (f"rejected by {_name(event)}", "fail")
        elif event.type == EventType.ACTION_EXPIRED:
            found[step_id] = ("nobody decided in time", "fail")
        elif event.type == EventType.ACTION_APPROVED:
            found[step_id] = (f"approved by {_name(event)}", "open")
        elif event.type in _RUNS:
            found.pop(step_id, None)
    found.pop("", None)
    return found


def _events_of(connection: apsw.Connection, run_id: str) -> list[StoredEvent]:
    wanted = EventFilter(trace_id=bytes.fromhex(run_id))
    events: list[StoredEvent] = []
    before: int | None = None
    while len(events) < _MOST_EVENTS:
        page = read_events(connection, wanted, before=before, limit=_AT_ONCE)
        events += page
        if len(page) < _AT_ONCE:
            break
        before = page[-1].seq
    return events[::-1]


def _name(event: StoredEvent) -> str:
    return clean(event.who or "somebody")
