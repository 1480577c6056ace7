"""Replays of one store: planned, recorded, made, each in a thread of its own.

`Replays.start` is where the API, the command line, the SDK and the page come together. Planning
reads the store and refuses; only then is a row written, and only then is anything sent.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from hansard._runtime.locks import FolderLock, try_lock
from hansard_compiler.calls import Json
from hansard_compiler.errors import HansardError
from hansard_compiler.policy.engine import Policy
from hansard_compiler.providers.transport import failures
from hansard_compiler.renamed import current_fields
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.live import Live, RecordedResult
from hansard_compiler.replay.mutations import parse_mutations, recipe_of
from hansard_compiler.replay.turns import Divergence
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.records import ApprovalClaim
from hansard_store.database.data_folder import DataFolder, make_private
from hansard_store.database.stored_json import json_of
from hansard_store.ids import new_id
from hansard_store.principals.model import Principal
from hansard_store.replays import (
    ReplayRow,
    State,
    add_replay,
    change_replay,
    claim_replay,
    get_replay,
    interrupt_replay,
    running_replays,
)
from hansard_store.steps.queries import StepSkeleton, get_step
from hansard_web.api.values import dump
from hansard_web.app.readers import Readers
from hansard_web.replay.changed_call import Making, changed_turn, compile_turn
from hansard_web.replay.fork.forward import MOST_TURNS, Fork, parting_body, recorded_results
from hansard_web.replay.fork.live import ForkState, LiveContext, LiveFork, call_again, context_of
from hansard_web.replay.fork.resume import Resumed, resumed
from hansard_web.replay.preview import Preview, preview_body
from hansard_web.replay.recompile import Recompiler
from hansard_web.replay.request import GoOn, ReplayInput
from hansard_web.replay.source import ReplayedStep, read_source
from hansard_web.replay.trace import ReplayRun, compile_json
from hansard_web.replay.transport.destinations import Reach
from hansard_web.replay.transport.provider_gate import (
    ReplayGate,
    permission_for,
    refusal_of,
    send_arguments,
)
from hansard_web.replay.transport.turn import ReplayTurn, exact_turn
from hansard_web.sidecar.errors import TooManyCalls
from hansard_web.sidecar.recorder import Outlet

# Who makes a replay, by something that ends with it however it ends: a lock that it holds.
#
# The number of a process is reused by later ones, in containers nearly always to the next. A
# lock is let go by the operating system when its process ends, so the lock tells who is there.

_NAME: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Holder:
    """One maker of replays. It is known to others from the first `hold` until `release`."""

    def __init__(self, folder: DataFolder) -> None:
        self._name = os.urandom(8).hex()
        self._place = folder.replaying / self._name
        self._lock: FolderLock | None = None

    def hold(self) -> str:
        """Return the name of this maker, which others find held from now on."""
        if self._lock is None:
            make_private(self._place)
            self._lock = try_lock(self._place)
        return self._name

    def release(self) -> None:
        """Let go: nothing is made any more."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self._place, ignore_errors=True)
            lock.release()


def is_held(folder: DataFolder, name: str) -> bool:
    """Whether a maker is there; what one that is gone left behind is removed."""
    if not _NAME.fullmatch(name):
        return False
    path = folder.replaying / name
    try:
        lock = try_lock(path)
    except OSError:
        return True  # there, and nobody here can look
    if lock is None:
        return path.exists()
    with suppress(OSError):
        shutil.rmtree(path)
    lock.release()
    return False


# The row of a replay as it begins, and the changes as its report keeps them.


def new_row(
    replay_id: str,
    request: ReplayInput,
    step: StepSkeleton,
    now_ns: int,
    *,
    holder: str = "",
) -> ReplayRow:
    """Return the row of a replay that begins now."""
    return ReplayRow(
        replay_id=replay_id,
        source_run_id=step.run_id,
        source_step_id=step.step_id,
        run_id=None,
        mode=request.kind,
        is_recorded=request.recorded,
        repeats=request.n,
        state="running",
        reason=None,
        request_hash=None,
        steps=[],
        started_ns=now_ns,
        ended_ns=None,
        holder=holder,
        report=None,
    )


def recipe_in(row: ReplayRow, request: ReplayInput, *, strict: bool) -> Json:
    """Return the changes as they are stored; of a refusal, as far as they could be read."""
    try:
        mutations = parse_mutations(request.mutations)
    except NotReplayable:
        if strict:
            raise
        mutations = []
    made = recipe_of(row.replay_id, row.source_run_id, row.source_step_id, mutations, request.notes)
    return {"recipe": made.model_dump(mode="json")}


# What went wrong after a replay began, as one of the closed list of reasons.

_REASONS = (
    (failures.KeyMissing, ReplayReason.KEY_MISSING),
    (failures.PackageMissing, ReplayReason.PACKAGE_MISSING),
    (failures.ModelUnknown, ReplayReason.MODEL_UNKNOWN),
    (failures.RequestRefused, ReplayReason.NOT_RENDERABLE),
    (failures.CallFailed, ReplayReason.PROVIDER_FAILED),
)


def reason_of(error: BaseException) -> ReplayReason:
    """Return the reason an error amounts to."""
    if isinstance(error, NotReplayable):
        return error.reason
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)), ReplayReason.INTERNAL
    )


def error_body(error: BaseException) -> Json:
    """Return an error as the report of a replay keeps it."""
    if isinstance(error, NotReplayable):
        return {"code": error.reason.value, "message": str(error), "details": error.facts}
    if not isinstance(error, HansardError):
        return {"code": "internal", "message": type(error).__name__, "details": {}}
    details: Json = {}
    if isinstance(error, failures.CallFailed):
        details = {
            "provider_status": error.http_status,
            "provider_code": error.provider_code,
            "retry_after_s": error.retry_after_s,
            "is_retryable": error.is_retryable,
        }
    return {"code": error.code, "message": str(error), "details": details}


MOST_AT_ONCE: Final = 8
_log = logging.getLogger("hansard.replays")
PLAN_MS: Final = 30_000


@dataclass(slots=True)
class _Work:
    """A replay that is being made."""

    row: ReplayRow
    report: Json
    claim: ApprovalClaim | None = None  # of the approval that it is sent under
    ended: threading.Event = field(default_factory=threading.Event)

    def add(self, step: Json, shortfall: BaseException | None = None) -> None:
        """Note one more step that was made."""
        self.row = self.row._replace(steps=[*self.row.steps, step])
        if shortfall is not None:
            self.report["notes"] = [*self.report["notes"], str(shortfall)]


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a replay ended, or what it waits for."""

    state: State
    reason: ReplayReason | None = None


def _approval_in(report: Json, found: Resumed) -> str | None:
    """Return the approval that was proposed for the next turn of a fork; None for none."""
    approval = report.get("approval") or {}
    return approval.get("approval_id") if approval.get("after") == found.at.step_id else None


def _approval_request(approval_id: str, arguments: Json) -> Json:
    """Return what it takes to send a first request that needs an approval."""
    return {
        "kind": "approval", "needs": "approval", "approval_id": approval_id, "step_id": None,
        "live_step_id": None, "calls": [], "estimate": None,
        "side_effects": arguments["side_effects"],
    }  # fmt: skip


class Replays:
    """What makes replays: one for an app or a command. The lock guards what is made."""

    def __init__(
        self,
        readers: Readers,
        outlet: Outlet,
        *,
        model_server: str | None = None,
        script: Json | None = None,
        policy: Callable[[], Policy | None] = lambda: None,
        gate: ReplayGate | None = None,
    ) -> None:
        self._readers = readers
        self._outlet = outlet
        self._model_server = model_server
        self._script = script
        self._policy = policy
        self._gate = gate  # None: nothing can be approved here, so nothing that needs it is sent
        self._lock = threading.Lock()
        self._works: dict[str, _Work] = {}
        self._holder = Holder(outlet.folder)
        self._settle()

    def acting(self, principal: Principal | None) -> Replays:
        """Return the same as a principal uses it: who requests an approval cannot grant it."""
        other = copy.copy(self)  # its lock, its works and its holder are shared
        other._gate = None if self._gate is None else self._gate.acting(principal)
        return other

    # ---- requests

    def plan(self, request: ReplayInput) -> ReplayTurn:
        """Return the first call of a replay, ready to be sent. Nothing is written.

        One that has side effects at its provider is blocked unless that is allowed. Raises
        NotReplayable, and NotFoundError or AmbiguousIdError for the step.
        """
        turn = self._plan(request)
        if turn.blocked is None and not request.allow_provider_side_effects:
            effects = turn.side_effects
            return replace(turn, blocked=refusal_of(effects)) if effects else turn
        return turn

    def _plan(self, request: ReplayInput) -> ReplayTurn:
        making = Making(self._reach(request), self._outlet.redactor, self._policy())
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            source = read_source(connection, request.step_id, now_ns=time.time_ns())
            if request.kind == "forward" and request.n > 1:
                detail = "a fork goes one way: n is for one call asked several times"
                raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)
            if source.is_compile:
                return compile_turn(connection, source, request, making)
            if request.kind == "mutated" or request.mutations:
                if request.kind == "exact":
                    detail = "an exact replay changes nothing: leave out the changes, or the mode"
                    raise NotReplayable(ReplayReason.MUTATION_INVALID, detail)
                return changed_turn(connection, source, request, making)
            return exact_turn(connection, source, request, making.reach)

    def preview(self, request: ReplayInput) -> Preview:
        """Return what a replay would send, without sending it; raises as `plan`."""
        return preview_body(self.plan(request), request, self._outlet.redactor)

    def start(self, request: ReplayInput) -> ReplayRow:
        """Begin a replay and return its row. A refusal is recorded too, and then raised.

        Raises as `plan`, and TooManyCalls when as many as may be are at work.
        """
        replay_id = new_id().hex()
        self._refuse_more()
        try:
            turn = self.plan(request)
            if turn.blocked is not None:
                raise turn.blocked
            if turn.side_effects:
                return self._wait_for_approval(replay_id, request, turn)
        except NotReplayable as why:
            why.replay_id = self._refused(replay_id, request, why)
            raise
        return self._begin(replay_id, request, turn)

    def go_on(self, replay_id: str, request: GoOn, *, by: str) -> ReplayRow:
        """Have a fork that stopped go on live, and return its row.

        Raises NotReplayable (then nothing has changed), NotFoundError, AmbiguousIdError, and
        TooManyCalls.
        """
        self._refuse_more()
        waiting = self.row(replay_id)
        if waiting.state == "waiting" and not waiting.steps:
            return self._send_approved(waiting)
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            found = resumed(
                connection,
                replay_id,
                request,
                by=by,
                outlet=self._outlet,
                reach=self._reach(request),
            )
        report = {**(found.row.report or {}), "live": found.live.json()}
        report.pop("error", None)
        claim = None
        if found.sends_at_once and (effects := found.at.turn.side_effects):
            if not request.allow_provider_side_effects and _approval_in(report, found) is None:
                raise refusal_of(effects)
            arguments = self._live_arguments(found)
            approval_id = _approval_in(report, found)
            if approval_id is None:
                return self._wait_live(found, report, arguments)
            claim = self._gated().claim(approval_id, arguments)
            granted = permission_for(effects, requests=arguments["most_requests"])
            found.permission.granted = granted.granted
            found.permission.requests_left = granted.requests_left
        report.pop("approval", None)
        row = self._take(found.row, report, claim)
        self._run(_Work(row, report, claim=claim), found.run, partial(self._resume, found))
        return row

    # ---- approved

    def _gated(self) -> ReplayGate:
        if self._gate is None:
            raise NotReplayable(
                ReplayReason.APPROVAL_REFUSED, "nothing can be approved in this process"
            )
        if self._outlet.mode is RetentionMode.METADATA_ONLY:
            detail = "a replay has to be kept while it waits for an approval"
            raise NotReplayable(ReplayReason.METADATA_ONLY, detail)
        return self._gate

    def _wait_for_approval(
        self, replay_id: str, request: ReplayInput, turn: ReplayTurn
    ) -> ReplayRow:
        """Propose to send a first request, and record the replay as waiting; nothing is sent."""
        arguments = self._first_arguments(replay_id, request, turn)
        what = f"Replay of {turn.render_input.model} ({request.kind})"
        approval_id = self._gated().propose(arguments, what=what)
        row = new_row(replay_id, request, turn.source.step, time.time_ns())._replace(
            state="waiting", reason=ReplayReason.NEEDS_APPROVAL.value, request_hash=turn.ref,
            ended_ns=time.time_ns(),
        )  # fmt: skip
        self._add(
            row,
            {
                "notes": list(turn.notes),
                **recipe_in(row, request, strict=True),
                "asked": request.model_dump(mode="json", exclude={"script"}),
                "approval": {"approval_id": approval_id, "after": None},
                "ask": _approval_request(approval_id, arguments),
            },
        )
        return row

    def _first_arguments(self, replay_id: str, request: ReplayInput, turn: ReplayTurn) -> Json:
        if request.kind != "forward":
            return send_arguments(replay_id, turn, requests=request.n)
        bounds = (
            {"max_turns": request.max_turns, "max_usd": request.max_usd} if request.live else {}
        )
        requests = MOST_TURNS + (request.max_turns if request.live else 0)
        return send_arguments(replay_id, turn, requests=requests, live=request.live, **bounds)

    def _live_arguments(self, found: Resumed) -> Json:
        live = found.live
        return send_arguments(
            found.row.replay_id, found.at.turn, requests=live.turns_left, live=True,
            after=found.at.step_id, max_turns=live.turns_left, max_usd=live.usd_left,
        )  # fmt: skip

    def _send_approved(self, row: ReplayRow) -> ReplayRow:
        """Send what waited for its approval: planned again, and held against what was approved."""
        report = row.report or {}
        if "approval" not in report or "asked" not in report:
            raise NotReplayable(ReplayReason.NOT_WAITING, "it waits for no approval")
        request = ReplayInput.model_validate(current_fields(report["asked"]))
        turn = self.plan(request)
        if turn.blocked is not None:
            raise turn.blocked
        arguments = self._first_arguments(row.replay_id, request, turn)
        claim = self._gated().claim(report["approval"]["approval_id"], arguments)
        report = {name: one for name, one in report.items() if name not in ("approval", "ask")}
        taken = self._take(row, report, claim)
        run = ReplayRun(
            self._outlet, row.replay_id, turn.source, mode=row.mode, is_recorded=False,
            permission=permission_for(turn.side_effects, requests=arguments["most_requests"]),
        )  # fmt: skip
        taken = taken._replace(run_id=run.trace_id)
        work = _Work(taken, report, claim=claim)
        self._run(work, run, lambda work: self._ask(work, request, turn, run))
        return taken

    def _wait_live(self, found: Resumed, report: Json, arguments: Json) -> ReplayRow:
        """Propose the next live turns of a fork; its request is stored meanwhile."""
        live = found.live
        what = f"Up to {live.turns_left} live turns of {found.at.turn.render_input.model}"
        approval_id = self._gated().propose(arguments, what=what)
        report["approval"] = {"approval_id": approval_id, "after": found.at.step_id}
        report["ask"] = call_again(report.get("ask"), live, found.row.steps) | {
            "needs": "approval", "approval_id": approval_id,
        }  # fmt: skip
        row = self._take(found.row, report, None)
        row = row._replace(
            state="waiting", reason=ReplayReason.NEEDS_APPROVAL.value, ended_ns=time.time_ns(),
            report=self._stored_report(report),
        )  # fmt: skip
        change_replay(self._outlet.folder, row)
        return row

    def _take(self, row: ReplayRow, report: Json, claim: ApprovalClaim | None) -> ReplayRow:
        """Return a stopped replay as running here; raises where somebody else took it."""
        holder = self._hold()
        report_fields = self._stored_report(report) or {}
        if not claim_replay(self._outlet.folder, row, holder=holder, report=report_fields):
            if claim is not None and self._gate is not None:
                self._gate.finish(claim, replay_id=row.replay_id, error="not sent: taken already")
            raise NotReplayable(ReplayReason.NOT_WAITING, "somebody else goes on with it")
        return row._replace(state="running", reason=None, ended_ns=None, holder=holder)

    def wait(self, replay_id: str, *, seconds: float) -> None:
        """Wait until a replay of this process has ended; at once for every other."""
        with self._lock:
            work = self._works.get(replay_id)
        if work is not None:
            work.ended.wait(seconds)

    def row(self, replay_id: str) -> ReplayRow:
        """Return a replay as it stands; raises NotFoundError or AmbiguousIdError."""
        with self._readers.read() as connection:
            return get_replay(connection, replay_id)

    def close(self) -> None:
        """Tell of what is still being made that this process does not wait for it."""
        with self._lock:
            works = list(self._works)
        for replay_id in works:
            interrupt_replay(self._outlet.folder, replay_id, now_ns=time.time_ns())
        with self._lock:
            self._holder.release()

    # ---- rows

    def _hold(self) -> str:
        with self._lock:
            return self._holder.hold()

    def _refuse_more(self) -> None:
        with self._lock:
            if len(self._works) >= MOST_AT_ONCE:
                raise TooManyCalls(MOST_AT_ONCE)

    def _reach(self, request: ReplayInput | GoOn) -> Reach:
        return Reach(
            model_server=self._model_server,
            timeout_s=request.timeout_s,
            # What the provider does besides answering was approved so many times: no retry.
            max_retries=0 if request.allow_provider_side_effects else request.max_retries,
            script=self._script if request.script is None else request.script,
            elsewhere=request.allow_other_address,
        )

    def _settle(self) -> None:
        """Tell of replays whose maker is gone that they came to nothing."""
        with self._readers.read() as connection:
            left = running_replays(connection)
        for replay_id, holder in left:
            if not is_held(self._outlet.folder, holder):
                interrupt_replay(self._outlet.folder, replay_id, now_ns=time.time_ns())

    def _refused(self, replay_id: str, request: ReplayInput, why: NotReplayable) -> str | None:
        with self._readers.read() as connection:
            step = get_step(connection, request.step_id, now_ns=time.time_ns())
        now_ns = time.time_ns()
        row = new_row(replay_id, request, step, now_ns)
        report = {"notes": [], "error": error_body(why), **recipe_in(row, request, strict=False)}
        self._add(row._replace(state="refused", reason=why.reason.value, ended_ns=now_ns), report)
        return replay_id

    def _begin(self, replay_id: str, request: ReplayInput, turn: ReplayTurn) -> ReplayRow:
        step = turn.source.step
        row = new_row(replay_id, request, step, time.time_ns(), holder=self._hold())
        # metadata_only keeps no digests either; a compile that no call used has no request.
        if turn.request and self._outlet.mode is not RetentionMode.METADATA_ONLY:
            row = row._replace(request_hash=turn.ref)
        report = {"notes": list(turn.notes), **recipe_in(row, request, strict=True)}
        run = ReplayRun(
            self._outlet, replay_id, turn.source, mode=row.mode, is_recorded=request.recorded
        )
        row = row._replace(run_id=run.trace_id)
        self._add(row, report)
        self._run(_Work(row, report), run, lambda work: self._ask(work, request, turn, run))
        return row

    def _run(self, work: _Work, run: ReplayRun, make: Callable[[_Work], _Ending]) -> None:
        """Have a replay made in a thread of its own."""
        with self._lock:
            self._works[work.row.replay_id] = work
        threading.Thread(
            target=self._make, args=(work, run, make), name="hansard-replay", daemon=True
        ).start()

    def _add(self, row: ReplayRow, report: Json) -> None:
        add_replay(self._outlet.folder, row._replace(report=self._stored_report(report)))

    def _stored_report(self, report: Json) -> Json | None:
        """Return a report without secrets; None where no content may be stored."""
        if self._outlet.mode is RetentionMode.METADATA_ONLY:
            return None
        if self._outlet.mode is RetentionMode.FULL_PAYLOADS:
            return report
        data = self._outlet.redactor.redact_bytes(dump(report), "application/json").data
        cleaned: Json = json_of(data.decode())
        return cleaned

    # ---- made

    def _make(self, work: _Work, run: ReplayRun, make: Callable[[_Work], _Ending]) -> None:
        """Make a replay, and tell how it ended whatever happens."""
        error: BaseException | None = None
        try:
            ending = make(work)
        except Exception as wrong:  # the thread's last resort: stored in the row
            error = wrong
            ending = _Ending("failed", reason_of(wrong))
            work.report["error"] = error_body(wrong)
        try:
            self._record_end(work, run, ending, error)
        except Exception as trouble:  # the store is gone: the next start says it was interrupted
            _log.warning("the end of replay %s was not kept: %s", work.row.replay_id, trouble)
        finally:
            with self._lock:
                self._works.pop(work.row.replay_id, None)
            work.ended.set()

    def _record_end(
        self, work: _Work, run: ReplayRun, ending: _Ending, error: BaseException | None
    ) -> None:
        row = work.row._replace(
            state=ending.state,
            reason=None if ending.reason is None else ending.reason.value,
            report=self._stored_report(work.report),
        )
        try:
            run.end(error)
        finally:
            change_replay(self._outlet.folder, row._replace(ended_ns=time.time_ns()))
            self._finish(work, ending)

    def _finish(self, work: _Work, ending: _Ending) -> None:
        """Record how what was approved ended; last, so that the receipt is of what happened."""
        if work.claim is None or self._gate is None:
            return
        error = None
        if ending.state == "failed":
            error = str((work.report.get("error") or {}).get("message") or ending.reason)[:2_000]
        self._gate.finish(work.claim, replay_id=work.row.replay_id, error=error)

    def _ask(self, work: _Work, request: ReplayInput, turn: ReplayTurn, run: ReplayRun) -> _Ending:
        """Make the calls of a replay, and return how it ended."""
        turn = run.compile(turn)
        if not turn.sends:
            work.add(self._numbers(compile_json(turn)))
            return _Ending("done")
        if request.kind == "forward":
            return self._go_on(work, request, turn, run)
        for _ in range(request.n):
            reply = run.ask(turn)
            work.add(self._numbers(reply.json(turn)), reply.answer.shortfall)
        return _Ending("done")

    def _numbers(self, step: Json) -> Json:
        """Return what the row keeps of a step, without digests where none are kept."""
        if self._outlet.mode is not RetentionMode.METADATA_ONLY:
            return step
        return {**step, "request_hash": None, "compile_hash": None}

    def _go_on(
        self, work: _Work, request: ReplayInput, turn: ReplayTurn, run: ReplayRun
    ) -> _Ending:
        """Make one turn after the other until the first answer that cannot be followed."""
        fork = Fork(request, Making(self._reach(request), self._outlet.redactor, self._policy()))
        for number in range(1, MOST_TURNS + 1):
            reply = run.ask(turn)
            work.add(self._numbers(reply.json(turn)), reply.answer.shortfall)
            pool: list[RecordedResult] = []
            with self._readers.read(timeout_ms=PLAN_MS) as connection:
                following = fork.after(connection, turn, reply)
                if isinstance(following, Divergence):
                    pool = recorded_results(connection, turn.source)
            if isinstance(following, Divergence):
                work.report |= parting_body(following, turn, reply, number=number, pool=pool)
                if not request.live:
                    return _Ending("diverged")
                live = Live(turns_left=request.max_turns, usd_left=request.max_usd)
                at = ForkState(turn, reply.answer, reply.step_id, number)
                return self._go_live(work, run, turn.source, pool, live, at)
            if following is None:
                return _Ending("done")
            if following.blocked is not None:
                raise following.blocked
            turn = run.compile(following)
        work.report["notes"] = [*work.report["notes"], f"stopped after {MOST_TURNS} turns"]
        return _Ending("done")

    # ---- live

    def _resume(self, found: Resumed, work: _Work) -> _Ending:
        return self._go_live(work, found.run, found.source, found.pool, found.live, found.at)

    def _go_live(
        self,
        work: _Work,
        run: ReplayRun,
        source: ReplayedStep,
        pool: Sequence[RecordedResult],
        live: Live,
        at: ForkState,
    ) -> _Ending:
        """Go on past a divergence until nothing is requested any more, or something is missing."""

        def note(live: Live, step: Json | None, shortfall: BaseException | None) -> None:
            work.report["live"] = live.json()
            if step is not None:
                work.add(self._numbers(step), shortfall)
            # As it stands, should the next call fail.
            work.report["ask"] = call_again(work.report["ask"], live, work.row.steps)

        def say(text: str) -> None:
            work.report["notes"] = list(dict.fromkeys([*work.report["notes"], text]))

        fork = LiveFork(live, source, pool, run, self._live_context(source, at), note, say)
        stop = fork.go(at)
        work.report |= {"live": stop.live.json(), "ask": stop.ask}
        for model in stop.live.unpriced:
            say(f"the price of {model} is unknown: only the number of turns bounds live calls")
        return _Ending("done") if stop.reason is None else _Ending("waiting", stop.reason)

    def _live_context(self, source: ReplayedStep, at: ForkState) -> LiveContext | None:
        """Return what compiles live turns; None where the source was not compiled."""
        if source.compilation is None or at.turn.source.compilation is None:
            return None
        compiler = Recompiler(source.compilation, self._outlet.redactor, self._policy())
        with self._readers.read(timeout_ms=PLAN_MS) as connection:
            return context_of(connection, at.turn, compiler)
