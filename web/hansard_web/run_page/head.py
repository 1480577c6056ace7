"""What stands above the three readings of a run: its name, its totals, its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from hansard_store.approvals.records import ApprovalFilter, Status
from hansard_store.approvals.rows import list_approvals
from hansard_store.replays import ReplayRow, replay_that_made, replays_of_run
from hansard_store.runs.queries import RunItem
from hansard_store.runs.usage import SilentCalls
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import StepSkeleton, links_from, links_to_run
from hansard_store.steps.tree import Tree, TreeMark
from hansard_web.annotations.labels import ScoreChip, list_href, score_chips
from hansard_web.app.addresses import conversation_href, user_href
from hansard_web.approvals.labels import one_line
from hansard_web.replay_page.labels import made_by_words, runs_made
from hansard_web.ui.format import (
    WAITS,
    agent_words,
    clock,
    day_time,
    duration,
    percent,
    plural,
    without_data_urls,
)

_DAY_NS = 86_400 * 1_000_000_000
_MOST_LINKS = 5
_MOST_APPROVALS = 50
_MOST_REPLAYS = 50


@dataclass(frozen=True, slots=True)
class RunHead:
    """The header: what is said of the run beside its own fields."""

    run: RunItem
    title: str
    conversation_href: str | None
    user_href: str | None
    status_why: str
    started_text: str
    duration_label: str
    duration: str
    cached_pct: str | None
    silent: SilentCalls
    tags: tuple[tuple[str, str], ...]  # (tag, address of the list of all with it)
    scores: tuple[ScoreChip, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence about what was repaired, missing or refused, or about a linked run."""

    text: str
    icon: str = "info"
    href: str | None = None
    link: str = ""


def run_head(run: RunItem, silent: SilentCalls, *, length_ns: int, now_ns: int) -> RunHead:
    """Return the header of a run; `length_ns` is the extent of its spans."""
    tokens = run.tokens
    cached = tokens.cache_read if tokens else None
    return RunHead(
        run=run,
        title=f"“{without_data_urls(run.first_input)}”"
        if run.first_input
        else agent_words(run.name)
        if run.name
        else "Run without a name",
        conversation_href=None
        if run.conversation_id is None
        else conversation_href(run.conversation_id),
        user_href=user_href(run.user_id) if run.user_id else None,
        status_why=_status_why(run),
        started_text=_started(run.started_ns, now_ns),
        duration_label={"open": "so far", "no_end": "until the last update"}.get(
            run.status, "long"
        ),
        duration=duration(length_ns),
        cached_pct=None
        if tokens is None or not tokens.input or cached is None
        else percent(cached, tokens.input),
        silent=silent,
        tags=tuple((tag, list_href(tag=tag)) for tag in run.marks.tags),
        scores=score_chips(run.marks),
    )


def _status_why(run: RunItem) -> str:
    if run.status == "blocked":
        return "An action of it is not decided yet"
    if run.status == "open":
        return f"{plural(run.open_count, 'step')} still open"
    if run.status == "no_end":
        if run.has_keepalive:
            return "No end was received, and its process is not heard of any more"
        return "No end was received, and nothing was heard of it for 15 minutes"
    return ""


def _started(started_ns: int, now_ns: int) -> str:
    return clock(started_ns) if 0 <= now_ns - started_ns < _DAY_NS else day_time(started_ns)


def run_notes(
    connection: apsw.Connection, run: RunItem, tree: Tree, *, now_ns: int
) -> tuple[Note, ...]:
    """Say what is odd about a run: repairs, missing parents, duplicates, links from elsewhere."""
    replays = replays_of_run(connection, run.run_id, limit=_MOST_REPLAYS)
    made_by = replay_that_made(connection, run.run_id)
    notes = [*_replay_notes(replays, made_by), *_approval_notes(connection, run)]
    notes += _tree_notes(tree)
    notes += [Note(_counted(text, count), "warn") for text, count in sorted(run.notes.items())]
    if run.synthetic:
        notes.append(Note("Made from log records: no trace was received.", "log"))
    if made_by is None:  # else what it links to is named above
        notes += _links_of_roots(connection, run, tree, now_ns=now_ns)
    note = runs_made(replays)
    notes += [
        Note("Linked from", "link", f"/steps/{step.step_id}", _link_name(step))
        for step in links_to_run(connection, run.run_id, now_ns=now_ns, limit=_MOST_LINKS)
        if step.run_id not in note
    ]
    return tuple(notes)


def _replay_notes(replays: Sequence[ReplayRow], made_by: ReplayRow | None) -> list[Note]:
    """Say that a replay made a run, and which steps of it were replayed."""
    notes = []
    if made_by is not None:
        words = made_by_words(made_by)
        text = f"Made by {words.say}; nothing of the recorded run was changed:"
        notes.append(Note(text, "replay", words.href, f"replay {words.short_id}"))
        name = f"step {made_by.source_step_id[-16:]} of run {made_by.source_run_id[:8]}"
        notes.append(Note("It is of", "link", words.source_href, name))
    steps = Counter(row.source_step_id for row in replays)
    notes += [
        Note("A step was replayed:", "replay", f"/replay/{step}", plural(many, "replay"))
        for step, many in steps.most_common(_MOST_LINKS)
    ]
    return notes


def _approval_notes(connection: apsw.Connection, run: RunItem) -> list[Note]:
    """Say which actions of a run wait for a decision, and where those are that were decided."""
    found = list_approvals(connection, ApprovalFilter(run_id=run.run_id), limit=_MOST_APPROVALS)
    waiting = [one for one in found if one.is_pending]
    notes = [
        Note(
            f"{WAITS.capitalize()}:"
            if one.status is Status.AWAITING
            else "Sent back to its agent:",
            "blocked",
            f"/approvals/{one.approval_id}",
            one_line(one.description, 100),
        )
        for one in waiting[:_MOST_LINKS]
    ]
    if len(found) > len(notes):
        more = "at least " if len(found) == _MOST_APPROVALS else ""
        say = f"This run has {more}{plural(len(found), 'approval')}:"
        notes.append(Note(say, "approval", f"/approvals?run={run.run_id}", "show them"))
    return notes


def _links_of_roots(
    connection: apsw.Connection, run: RunItem, tree: Tree, *, now_ns: int
) -> list[Note]:
    """Say which steps of other runs the tops of this one link to: what started it, as a rule."""
    tops = [
        node.id
        for node, parent in zip(tree.nodes, tree.parents, strict=True)
        if parent == -1 and node.flags & SpanFlag.HAS_LINKS
    ]
    ends = links_from(connection, tops, now_ns=now_ns, limit=_MOST_LINKS) if tops else []
    return [
        Note("Linked to", "link", f"/steps/{end.step.step_id}", _link_name(end.step))
        if end.step is not None
        else Note(f"Linked to a step of run {end.run_id[:8]} that was not received.", "link")
        for end in ends
        if end.run_id != run.run_id
    ]


def _tree_notes(tree: Tree) -> list[Note]:
    marks = Counter(tree.marks)
    orphans = sum(count for mark, count in marks.items() if mark & TreeMark.ORPHAN)
    loops = sum(count for mark, count in marks.items() if mark & TreeMark.LOOP)
    tops = tree.parents.count(-1) - orphans - loops
    notes = []
    if orphans:
        stands = "stands" if orphans == 1 else "stand"
        whose = "its parent was" if orphans == 1 else "their parents were"
        notes.append(
            Note(f"{plural(orphans, 'step')} {stands} at the top because {whose} never received.",
                 "missing")
        )  # fmt: skip
    if loops:
        notes.append(
            Note(f"{plural(loops, 'loop')} of parents was cut at its earliest step.", "replay")
        )
    if tops > 1:
        notes.append(Note(f"This run has {tops} roots.", "tree"))
    return notes


def _counted(text: str, count: int) -> str:
    sentence = text[:1].upper() + text[1:]
    return sentence if count == 1 else f"{sentence} ({plural(count, 'step')})"


def _link_name(step: StepSkeleton) -> str:
    return f"{step.name[:60]} of run {step.run_id[:8]}"
