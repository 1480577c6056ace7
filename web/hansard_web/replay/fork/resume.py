"""A fork that stopped, read back from the store to go on live: nothing of it is in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.live import Live, RecordedResult, live_from, with_results
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.replays import ReplayRow, get_replay
from hansard_store.steps.queries import get_step
from hansard_web.replay.fork.forward import recorded_results
from hansard_web.replay.fork.live import ForkState, standing_at
from hansard_web.replay.request import GoOn
from hansard_web.replay.source import ReplayedStep, read_source
from hansard_web.replay.trace import ReplayRun
from hansard_web.replay.transport.destinations import Reach
from hansard_web.replay.transport.provider_gate import Permission
from hansard_web.sidecar.recorder import Outlet


@dataclass(frozen=True, slots=True)
class Resumed:
    """Everything a fork needs to go on."""

    row: ReplayRow
    live: Live
    source: ReplayedStep  # the recorded call that it parted from
    pool: Sequence[RecordedResult]
    at: ForkState
    run: ReplayRun
    permission: Permission  # of its run; given before it goes on, where it needs one

    @property
    def sends_at_once(self) -> bool:
        """Whether the next turn is sent, as nothing is missing for it."""
        calls = self.live.of_turn(self.at.number)
        return bool(calls) and self.live.turns_left > 0 and all(
            one.state == "answered" for one in calls
        )  # fmt: skip


def resumed(
    connection: apsw.Connection,
    replay_id: str,
    request: GoOn,
    *,
    by: str,
    outlet: Outlet,
    reach: Reach,
) -> Resumed:
    """Return a fork ready to go on, with the results that were sent. Nothing is written.

    Raises NotReplayable, NotFoundError or AmbiguousIdError.
    """
    row = get_replay(connection, replay_id)
    parted = _parting(row, outlet.mode)
    if request.after not in (None, row.steps[-1]["step_id"]):
        raise NotReplayable(ReplayReason.NOT_WAITING, "it went on since that was asked; look again")
    now_ns = time.time_ns()
    source = read_source(connection, parted["source_step_id"], now_ns=now_ns)
    at = standing_at(connection, row.steps[-1]["step_id"], len(row.steps), reach)
    rebuilt = bool(row.steps[-1]["is_rebuilt"])
    at = replace(at, turn=replace(at.turn, is_rebuilt=rebuilt))
    first = get_step(connection, row.steps[0]["step_id"], now_ns=now_ns)
    permission = Permission()
    run = ReplayRun(
        outlet, row.replay_id, source, mode=row.mode, is_recorded=False,
        under=f"{row.run_id}-{first.parent_span_id}", permission=permission,
    )  # fmt: skip
    pool = recorded_results(connection, source)
    live = live_from((row.report or {}).get("live") or {}).with_calls(
        at.answer.call.output, at.number, pool
    )
    return Resumed(row, _with_request(live, request, by), source, pool, at, run, permission)


def _parting(row: ReplayRow, mode: RetentionMode) -> Json:
    """Return where a fork parted; raises NotReplayable for what cannot go on."""
    if mode is RetentionMode.METADATA_ONLY:
        raise NotReplayable(
            ReplayReason.METADATA_ONLY, "results have to be kept while a fork waits"
        )
    parted: Json | None = (row.report or {}).get("divergence")
    if row.state not in ("diverged", "waiting", "failed") or parted is None or row.is_recorded:
        state = "has not parted" if parted is None else "was answered from the recording"
        raise NotReplayable(
            ReplayReason.NOT_WAITING,
            f"it is {row.state}" if parted and not row.is_recorded else state,
        )
    return parted


def _with_request(live: Live, request: GoOn, by: str) -> Live:
    """Return the state of a fork with the results and bounds of a request."""
    live = with_results(
        replace(live, by=by),
        [one.model_dump() for one in request.results],
        [one.model_dump() for one in request.pending_calls],
        by=by,
    )
    if request.max_turns is not None:
        live = replace(live, turns_left=request.max_turns)
    if request.max_usd is not None:
        live = replace(live, usd_left=request.max_usd)
    return live
