"""A replay as the API, the command line and the SDK say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_compiler.calls import Json, Message
from hansard_compiler.renamed import with_current_calls, with_current_code
from hansard_compiler.replay.errors import ReplayReason
from hansard_compiler.replay.spread import Repeat, spread_of
from hansard_store.bodies import Answer, Body, Description, Page, body_of
from hansard_store.ids import short_id
from hansard_store.replays import ReplayRow, State, list_replays, replays_of_run
from hansard_web.replay.descriptions import change_notes
from hansard_web.replay.preview import ReplaySource, comparison_body
from hansard_web.replay.request import Mode
from hansard_web.replay.source import REQUEST_REF, find_step

_IN_A_STEP: Final = 50
_IN_A_TREE: Final = 200  # replays of replays; more are found by their own steps
_DEEPEST: Final = 20
_EXACT: Final = (
    "exact: the request is the recorded one, byte for byte; a model may answer it otherwise"
)
_RECORDED: Final = "recorded: answered from the recording, nothing was sent"
_REBUILT: Final = "rebuilt from telemetry: the original request may have had more in it"
_CHANGED: Final = "mutated: the request was changed as asked"


class ReplaySummary(Body):
    """A replay in one line; `reason` is set where it was refused or failed."""

    replay_id: str
    short_id: str
    state: State
    reason: str | None
    reason_text: str | None
    mode: Mode
    recorded: bool
    n: int
    source: ReplaySource
    run_id: Annotated[str | None, Description("the run it made; null where it was refused")]
    step_ids: Annotated[list[str], Description("its model calls, in order")]
    request_hash: str | None
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    labels: Annotated[list[str], Description("what must be said of it wherever it is shown")]
    url: str


class ReplayBranch(ReplaySummary):
    """A replay with the replays of the steps it made."""

    replays: list[ReplayBranch]


class ReplayList(Page):
    items: list[ReplaySummary]


class ReplayBody(ReplaySummary, Answer):
    """Everything about a replay."""

    recorded_request_hash: str | None
    same_request: bool | None
    steps: list[Json]
    recipe: Annotated[Json | None, Description("null in metadata_only")]
    mutations: list[Json]
    changes: Annotated[list[str], Description("what was changed, in words")]
    user_notes: str | None
    notes: Annotated[list[str], Description("what could not be the same")]
    error: Json | None
    divergence: Annotated[Json | None, Description("where a fork parted, and how")]
    continuation: Annotated[Json | None, Description("what it takes to go on from there")]
    live: Annotated[
        Json | None,
        Description("of a fork that went on live: turns, money, and where each result came from"),
    ]
    spread: Annotated[Json | None, Description("of n > 1 answers")]
    comparison: Annotated[Json | None, Description("as `GET /v1/diff/steps` tells it")]
    replays: list[ReplayBranch]


def summary_body(row: ReplayRow) -> ReplaySummary:
    """Return a replay in one line: what a step shows of its replays."""
    return body_of(
        ReplaySummary,
        row,
        short_id=short_id(row.replay_id),
        reason_text=reason_text(row.reason),
        recorded=row.is_recorded,
        n=row.repeats,
        source={"run_id": row.source_run_id, "step_id": row.source_step_id},
        step_ids=[one["step_id"] for one in row.steps if one["step_id"]],
        duration_ms=None if row.ended_ns is None else (row.ended_ns - row.started_ns) / 1e6,
        labels=labels_of(row),
        url=f"/v1/replay/{row.replay_id}",
    )


def replay_body(
    connection: apsw.Connection, row: ReplayRow, *, now_ns: int, with_comparison: bool = True
) -> ReplayBody:
    """Return everything about a replay: changes, notes, answers, and the comparison."""
    report = row.report or {}
    error, recipe = report.get("error"), report.get("recipe")
    mutations = (recipe or {}).get("context_mutations", [])
    recorded_hash = _recorded_hash(connection, row, now_ns=now_ns)
    source, made = compared_steps(row)
    return body_of(
        ReplayBody,
        **summary_body(row),
        recorded_request_hash=recorded_hash,
        same_request=None if row.request_hash is None else row.request_hash == recorded_hash,
        steps=list(row.steps),
        recipe=recipe,
        mutations=mutations,
        changes=change_notes(mutations),
        user_notes=(recipe or {}).get("notes"),
        notes=report.get("notes", []),
        error=error and with_current_code(error, "code"),
        divergence=report.get("divergence"),
        continuation=_current(report.get("ask")),
        live=_current(report.get("live")),
        spread=_spread(connection, row, now_ns=now_ns),
        comparison=None
        if row.state == "running" or not with_comparison
        else comparison_body(connection, source, made, now_ns=now_ns),
        replays=_Tree(connection).below(row, depth=0),
    )


def _current(stored: Json | None) -> Json | None:
    return None if stored is None else with_current_calls(stored)


def replays_of_step(connection: apsw.Connection, step_id: str) -> list[ReplayBranch]:
    """Return the replays of a step, the newest first, each with the replays of what it made."""
    page = list_replays(connection, step_id=step_id, limit=_IN_A_STEP, cursor=None)
    tree = _Tree(connection)
    return [tree.branch(one, depth=1) for one in page.items]


class _Tree:
    """Replays of replays, as far as one answer can hold them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._left = _IN_A_TREE

    def branch(self, row: ReplayRow, *, depth: int) -> ReplayBranch:
        return {**summary_body(row), "replays": self.below(row, depth=depth)}

    def below(self, row: ReplayRow, *, depth: int) -> list[ReplayBranch]:
        """Return the replays of what a replay made: the next branches of the tree."""
        if row.run_id is None or depth >= _DEEPEST or self._left <= 0:
            return []
        found = replays_of_run(self._connection, row.run_id, limit=min(self._left, _IN_A_STEP))
        self._left -= len(found)
        return [self.branch(one, depth=depth + 1) for one in found]


def labels_of(row: ReplayRow) -> list[str]:
    """Return the labels that a replay has wherever it is shown."""
    labels = [_RECORDED] if row.is_recorded else []
    if row.steps and all(one["is_exact"] for one in row.steps):
        labels.append(_EXACT)
    elif row.mode == "mutated":
        labels.append(_CHANGED)
    if any(one["is_rebuilt"] for one in row.steps):
        labels.append(_REBUILT)
    number = next((n for n, one in enumerate(row.steps, 1) if one.get("is_live")), None)
    if number is not None:
        labels.append(f"live: from turn {number} on the model was asked past the recording")
    return labels


def reason_text(code: str | None) -> str | None:
    """Return the meaning of a reason; of one that this version does not know its code."""
    if code is None:
        return None
    return next((one.meaning for one in ReplayReason if one.value == code), code)


def compared_steps(row: ReplayRow) -> tuple[str, str | None]:
    """Return the two steps that are compared: the first, of a fork that parted where it did."""
    if not row.steps:
        return row.source_step_id, None
    parted = ((row.report or {}).get("divergence") or {}).get("step_id")
    last = -1 if row.state == "diverged" else 0
    one = next((one for one in row.steps if parted and one["step_id"] == parted), row.steps[last])
    return one["source_step_id"], one["step_id"] or one["compile_step_id"]


def _recorded_hash(connection: apsw.Connection, row: ReplayRow, *, now_ns: int) -> str | None:
    step = find_step(connection, row.source_step_id, now_ns=now_ns)
    if step is None:
        return None
    found = read_step(connection, step.id).view.attributes.get(REQUEST_REF)
    return found if isinstance(found, str) else None


def _spread(connection: apsw.Connection, row: ReplayRow, *, now_ns: int) -> Json | None:
    if row.repeats < 2 or not row.steps:
        return None
    repeats = [
        Repeat(
            one["step_id"],
            tuple(_output(connection, one["step_id"], now_ns=now_ns)),
            one["input_tokens"],
            one["output_tokens"],
            one["latency_ms"],
        )
        for one in row.steps
        if one["step_id"]
    ]
    return spread_of(repeats) if repeats else None


def _output(connection: apsw.Connection, step_id: str, *, now_ns: int) -> Sequence[Message]:
    step = find_step(connection, step_id, now_ns=now_ns)
    call = None if step is None else read_step(connection, step.id).normal.call
    return () if call is None else call.output
